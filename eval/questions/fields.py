"""One question as a file has it, checked field by field; every complaint is a ValueError."""

from __future__ import annotations

import difflib
import json
import re
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from rag.answer import Turn
from rag.retrieve import MAX_QUESTION

FIELDS = (
    "id",
    "kind",
    "question",
    "gold",
    "must_include",
    "must_not_include",
    "history",
    "note",
    "from",  # the sentences that a draft of `rag eval questions` was made from
)
KINDS = ("fact", "method", "compare", "list", "unanswerable", "reviewer", "followup")
# What a question has that only wants an answer: nothing is expected of it.
UNLABELLED = "unlabelled"

# As the answers are searched.
REGEX_FLAGS = re.IGNORECASE | re.DOTALL


def checked_fields(raw: object) -> dict[str, Any]:
    """The values of a `Question`, each of its type; an optional field may be absent or null.

    Raises:
        ValueError: a field is missing, of another type or without sense; the message names it.
    """
    if not isinstance(raw, dict):
        raise ValueError(f"it is {_kind_of(raw)}, not an object {{...}}")
    _require_text(raw)
    given = {name: value for name, value in raw.items() if value is not None}
    return {
        "id": _identifier(given),
        "kind": _text(given, "kind"),
        "question": _question(given),
        "gold": _gold(given.get("gold", [])),
        "must_include": _patterns(given, "must_include"),
        "must_not_include": _patterns(given, "must_not_include"),
        "history": _history(given.get("history", [])),
        "note": _text({"note": "", **given}, "note", empty=True),
    }


def unknown_fields(raw: Mapping[str, object]) -> dict[str, str]:
    """What is said of each field that no question has: `{"must_inlcude": "... is ignored ..."}`."""
    return {
        name: f"the field {name!r} is unknown and ignored{_meant(name, FIELDS)}"
        for name in raw
        if name not in FIELDS
    }


def doubtful_kind(kind: str) -> str | None:
    """What is said of a kind that is hardly meant: "unanswerabel". Others may be anyone's own."""
    meant = "" if kind in KINDS else _meant(kind, KINDS)
    return f"the kind {kind!r} is unknown and counts as answerable{meant}" if meant else None


def _require_text(raw: object) -> None:
    try:
        json.dumps(raw, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError("it holds half of a surrogate pair (\\ud8..), which is no text") from error


def _meant(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name.casefold(), known, n=1, cutoff=0.75)
    return f" (is {close[0]!r} meant?)" if close else ""


def _identifier(given: Mapping[str, object]) -> str:
    value = given.get("id")
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return _text(given, "id")


def _question(given: Mapping[str, object]) -> str:
    text = _text(given, "question")
    if not any(character.isalnum() for character in text):
        raise ValueError("the field 'question' is empty")
    if len(text) > MAX_QUESTION:
        raise ValueError(
            f"the field 'question' has {len(text):,} characters; at most {MAX_QUESTION:,} can be "
            "read at once"
        )
    return text


def _text(given: Mapping[str, object], name: str, *, empty: bool = False) -> str:
    if name not in given:
        raise ValueError(f"the field {name!r} is missing")
    value = given[name]
    if not isinstance(value, str):
        raise ValueError(f"the field {name!r} is {_kind_of(value)}, not a text")
    if not empty and not value.strip():
        raise ValueError(f"the field {name!r} is empty")
    return value


def _texts(value: object, name: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(part, str) for part in value):
        raise ValueError(f"{name} is not a list of texts")
    return tuple(value)


def _gold(value: object) -> tuple[tuple[str, ...], ...]:
    if not isinstance(value, list):
        raise ValueError(f"the field 'gold' is {_kind_of(value)}, not a list of groups [[...]]")
    groups = tuple(
        _texts(group, f"group {number} of the field 'gold'")
        for number, group in enumerate(value, start=1)
    )
    for number, group in enumerate(groups, start=1):
        if not all(alternative.strip() for alternative in group) or not group:
            raise ValueError(f"group {number} of the field 'gold' names no paper")
    return groups


def _patterns(given: Mapping[str, object], name: str) -> tuple[str, ...]:
    patterns = _texts(given.get(name, []), f"the field {name!r}")
    for pattern in patterns:
        try:
            with warnings.catch_warnings(action="ignore"):
                re.compile(pattern, REGEX_FLAGS)
        except (re.error, OverflowError, RecursionError) as error:
            shown = pattern if len(pattern) <= 60 else f"{pattern[:60]}..."
            raise ValueError(
                f"the field {name!r} holds a bad regular expression: {shown!r}: {error}"
            ) from error
    return patterns


def _history(value: object) -> tuple[Turn, ...]:
    return tuple(map(_turn, value if isinstance(value, list) else [None]))


def _turn(value: object) -> Turn:
    parts = (value.get("question"), value.get("answer")) if isinstance(value, dict) else (None,) * 2
    question, answer = parts
    if not isinstance(question, str) or not isinstance(answer, str):
        raise ValueError(
            'the field \'history\' is not a list of turns {"question": text, "answer": text}'
        )
    return Turn(question, answer)


def _kind_of(value: object) -> str:
    kinds = {bool: "true or false", int: "a number", float: "a number", str: "a text"}
    return {**kinds, list: "a list", dict: "an object"}.get(type(value), "null")
