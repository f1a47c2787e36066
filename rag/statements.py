"""The model's reply to statements, as it arrives; whatever it holds, nothing here raises."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from rag.text import visible

_START = re.compile(r'"statements"\s*:\s*\[|\A\s*(?:```(?:json)?\s*)?\[')
_EMPTY = re.compile(rf"(?:{_START.pattern})\s*\]")
# The text of a statement, as far as it is written; half an escape at its end is left out.
_UNFINISHED = re.compile(r'"text"\s*:\s*"(?P<text>(?:[^"\\]|\\.)*)')
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_ESCAPED = {'"': '"', "\\": "\\", "/": "/"}
# Characters of it that are looked at.
_LONGEST_SHOWN = 4_000
# In text whose runs of blanks are single. More digits than these are no sentence's number.
_REFERENCE = re.compile(r" ?\[ ?\d{1,6}(?: ?[,;–-] ?\d{1,6})* ?\]")


@dataclass(frozen=True, slots=True)
class Draft:
    """A statement as the model wrote it: text, sentence numbers, and numbers it had no right to."""

    text: str
    evidence: tuple[int, ...]
    unknown: tuple[str, ...] = ()


def schema(numbers: Collection[int], most: int) -> dict[str, Any]:
    """The JSON schema of a reply: only the given sentence numbers can be cited."""
    statement = {
        "type": "object",
        "properties": {
            "text": {"type": "string", "minLength": 1},
            "evidence": {
                "type": "array",
                "items": {"type": "integer", "enum": sorted(numbers)},
                "minItems": 1,
                "maxItems": 4,
            },
        },
        "required": ["text", "evidence"],
        "additionalProperties": False,
    }
    statements = {"type": "array", "items": statement, "minItems": 1, "maxItems": most}
    return {
        "type": "object",
        "properties": {"statements": statements},
        "required": ["statements"],
        "additionalProperties": False,
    }


class StatementStream:
    """Feed it the reply piece by piece; it gives each statement once, when it is complete.

    >>> stream = StatementStream({1, 2})
    >>> stream.feed('{"statements": [{"evidence": [2], "text": "A is B')
    []
    >>> stream.feed('."}]}')
    [Draft(text='A is B.', evidence=(2,), unknown=())]
    """

    def __init__(self, numbers: Collection[int]) -> None:
        self._numbers = frozenset(numbers)
        self._buffer = ""
        self._waiting: list[str] = []
        self._position: int | None = None
        self._found = False

    @property
    def understood(self) -> bool:
        """Whether the reply so far holds a statement, or an empty list of them."""
        whole = self._buffer + "".join(self._waiting)
        return self._found or _EMPTY.search(whole) is not None

    @property
    def writing(self) -> str:
        """The text of the statement that is not complete yet, as far as it goes."""
        tail = self._buffer[self._position or 0 :] + "".join(self._waiting)
        found = _UNFINISHED.search(tail[:_LONGEST_SHOWN])
        if found is None:
            return ""
        text = _ESCAPE.sub(lambda m: _ESCAPED.get(m[1], " "), found["text"])
        return " ".join(visible(text).split())

    def feed(self, piece: str) -> list[Draft]:
        """Statements completed by `piece`."""
        self._waiting.append(piece)
        # Only these begin a list or end an object: looking at every piece would be quadratic.
        if "[" not in piece and "}" not in piece:
            return []
        self._buffer += "".join(self._waiting)
        self._waiting.clear()
        if self._position is None:
            start = _START.search(self._buffer)
            if start is None:
                return []
            self._position = start.end()
        drafts = []
        while (found := self._next()) is not None:
            drafts += found
        return drafts

    def _next(self) -> list[Draft] | None:
        """The next complete object, as a list of no or one draft; None when there is none yet."""
        assert self._position is not None
        start = self._buffer.find("{", self._position)
        if start < 0:
            return None
        try:
            value, end = json.JSONDecoder(strict=False).raw_decode(self._buffer, start)
        except (ValueError, RecursionError):
            return None
        self._position = end
        draft = self._draft(value)
        return [draft] if draft else []

    def _draft(self, value: dict[str, Any]) -> Draft | None:
        text = value.get("text")
        text = self._without_references(text) if isinstance(text, str) else ""
        if not text:
            return None
        cited = value.get("evidence", [])
        cited = cited if isinstance(cited, list) else [cited]
        known: list[int] = []
        unknown: list[str] = []
        for number in cited:
            plain = _whole(number)
            if plain in self._numbers:
                known += [plain] if plain is not None and plain not in known else []
            else:
                unknown.append(str(number)[:40])
        self._found = True
        return Draft(text, tuple(known), tuple(unknown))

    def _without_references(self, text: str) -> str:
        """Drop "[3]" where 3 is a sentence number: those are ours; other brackets are content."""

        def keep(match: re.Match[str]) -> str:
            inside = {int(number) for number in re.findall(r"\d+", match.group())}
            return "" if inside <= self._numbers else match.group()

        text = " ".join(visible(text).split())
        return " ".join(_REFERENCE.sub(keep, text).split())


def _whole(number: object) -> int | None:
    if isinstance(number, bool):
        return None
    if isinstance(number, int):
        return number
    if isinstance(number, str) and number.strip("[] ").isascii() and number.strip("[] ").isdigit():
        return int(number.strip("[] ")[:9])
    return None
