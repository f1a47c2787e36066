"""A file -> the reviews in it: text of any encoding, or the JSON that a conference site exports."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag.errors import ReadError
from rag.readers.encoding import decode
from rag.readers.json_records import looks_like
from rag.review.headings import is_rating, known_heading
from rag.text import visible

_JSON_ENDINGS = frozenset({".json", ".jsonl", ".ndjson"})
# Of a note or its content, in this order: its whole text, where no field is named after a section.
_TEXTS = ("review", "text", "comment", "comments", "body", "metareview", "main_review")
_LISTS = ("notes", "reviews", "replies", "direct_replies")
# Fields of a submission or of the site, not of a review.
_NOT_REVIEW = frozenset(
    "title abstract keywords tldr tl_dr authors authorids venue venueid pdf bibtex _bibtex id "
    "forum number replyto invitation invitations signatures readers writers nonreaders license "
    "supplementary_material primary_area paperhash flag_for_ethics_review".split()
)
_MOST_FIELDS_SHOWN = 10
_GIVE = "Give the file of a review."
# Of a field that no form is known to have; fewer are a choice from a menu.
_FEWEST_WORDS = 4
_DEEPEST = 20
# Of what is no file on a disk, such as a pipe, which may have no end.
_MOST_BYTES = 20_000_000


@dataclass(frozen=True, slots=True)
class Review:
    """One review. `text` is what the offsets of its items refer to.

    `number` counts the file's reviews from 1. Of a file with one text that is the file as decoded,
    of JSON the fields put together, each under a heading of its name.
    """

    file: str
    number: int
    id: str | None
    text: str


def read_reviews(path: Path) -> tuple[Review, ...]:
    r"""The reviews of one file or pipe, at least one.

    `Review.file` is the path as given, with "\udcff" for a byte 0xFF that is no UTF-8.

    Raises:
        ReadError: the file is missing, unreadable, empty, no text, or JSON without a review; or a
            pipe gives more than 20 MB.
    """
    try:
        if path.is_dir():
            raise ReadError(f"{_shown(path)} is a folder. {_GIVE}")
        with path.open("rb") as file:
            on_disk = path.is_file()
            data = file.read() if on_disk else file.read(_MOST_BYTES + 1)
    # ValueError: a zero character in the name.
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:
        raise ReadError(f"{_shown(path)} does not exist or is no file. {_GIVE}") from error
    except OSError as error:
        why = (error.strerror or os.strerror(error.errno or 0)).lower()
        advice = "Check its permissions." if isinstance(error, PermissionError) else _GIVE
        raise ReadError(f"{_shown(path)} cannot be read: {why}. {advice}") from error
    if len(data) > _MOST_BYTES and not on_disk:
        raise ReadError(f"{_shown(path)} gives more than {_MOST_BYTES // 10**6} MB. {_GIVE}")
    return reviews_in(data, str(path))


def reviews_in(data: bytes, name: str) -> tuple[Review, ...]:
    """The reviews in `data`, at least one; `name` is what `Review.file` will say.

    Raises:
        ReadError: it is empty, no text, or JSON without a review.
    """
    shown, name = _shown(name), _printable(name)
    try:
        text = decode(data)
    except ReadError as error:
        raise ReadError(f"{shown} cannot be read. {error}") from error
    if not visible(text).strip():
        raise ReadError(f"{shown} is empty. Give a review as text, Markdown or JSON.")
    promised = Path(name).suffix.lower() in _JSON_ENDINGS
    if not promised and not looks_like(text):
        return (Review(name, 1, None, text),)
    try:
        value = _parsed(text)
    except (ValueError, RecursionError) as error:
        if not promised:
            return (Review(name, 1, None, text),)
        why = _why(error)
        where = f" at line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise ReadError(
            f"{shown} is not JSON: {why}{where}. Mend it, or give the review as text."
        ) from error
    # A site's export may hold a note both as a reply and as a direct reply.
    found = dict.fromkeys(
        (key, body, n if key is None else 0)
        for n, (key, body) in enumerate(_texts(value, None, 0), start=1)
    )
    if not found:
        raise ReadError(_no_review(shown, value))
    return tuple(Review(name, n, key, body) for n, (key, body, _) in enumerate(found, start=1))


def _why(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return error.msg
    deep = isinstance(error, RecursionError)
    return "it is nested too deeply" if deep else "a number in it is too long"


def _parsed(text: str) -> Any:
    """One JSON document, or a list of one a line."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        lines = [line for line in text.split("\n") if line.strip()]
        if len(lines) < 2 or not all(line.lstrip().startswith("{") for line in lines):
            raise
        return [json.loads(line) for line in lines]


def _texts(value: Any, key: str | None, depth: int) -> Iterator[tuple[str | None, str]]:
    """(id, text) of every review in a decoded value, in order; a note exported twice is twice."""
    if depth > _DEEPEST:
        return
    if isinstance(value, list):
        for element in value:
            if isinstance(element, str) and element.strip():
                yield None, element
            else:
                yield from _texts(element, None, depth + 1)
    elif isinstance(value, Mapping):
        own = None if _by_authors(value) else _text_of(value)
        if own is not None:
            yield _id_of(value) or key, own
        keyed = own is None and all(isinstance(inner, Mapping) for inner in value.values())
        for name, inner in {**value, **_mapping(value.get("details"))}.items():
            if _snake(name) in _LISTS:
                yield from _listed(inner, depth + 1)
            elif _is_nested(name, inner) and not _by_authors(value):
                yield from _texts(inner, None, depth + 1)
            elif keyed and name not in ("content", "details"):
                yield from _texts(inner, name, depth + 1)


def _listed(value: Any, depth: int) -> Iterator[tuple[str | None, str]]:
    """The reviews of a list, or of a mapping of them by name."""
    if not isinstance(value, Mapping) or _text_of(value) is not None:
        yield from _texts(value, None, depth)
        return
    for name, inner in value.items():
        text = _string(inner)
        if text is not None and len(text.split()) >= _FEWEST_WORDS:
            yield name, text
        elif isinstance(inner, Mapping | list):
            yield from _texts(inner, name, depth + 1)


def _is_nested(name: str, value: Any) -> bool:
    """Whether a field of a whole text holds fields instead: {"review": {"weaknesses": ...}}."""
    return _snake(name) in _TEXTS and _string(value) is None


def _text_of(note: Mapping[str, Any]) -> str | None:
    """The text of a note: its fields under their names, or its one text field as it stands."""
    if isinstance(note.get("content"), str):
        return _string(note["content"])
    content = _mapping(note.get("content")) or note
    fields = {str(name): _string(value) for name, value in content.items()}
    kept = {name: text for name, text in fields.items() if text and _is_of_review(name, text)}
    if not any(_snake(name) in _TEXTS or _is_section(name) for name in kept):
        return None
    (name, text), *more = kept.items()
    if not more and _snake(name) in _TEXTS:
        return text
    return "\n\n".join(
        f"## {name.replace('_', ' ').strip().capitalize()}\n\n{text}" for name, text in kept.items()
    )


def _is_of_review(name: str, text: str) -> bool:
    """Whether it is text of the review: no mark, nothing of the site, no word of a menu."""
    snake = _snake(name)
    if snake in _NOT_REVIEW or is_rating(name.replace("_", " "), text):
        return False
    longest = max(len(paragraph.split()) for paragraph in text.split("\n\n"))
    return _is_section(name) or snake in _TEXTS or longest >= _FEWEST_WORDS


def _is_section(name: str) -> bool:
    return known_heading(name.replace("_", " ")) is not None and _snake(name) != "review"


def _string(value: Any) -> str | None:
    """A text, also as {"value": text} and as a list of texts, its paragraphs.

    None if it is no text or has only white space.
    """
    if isinstance(value, Mapping):
        value = value.get("value")
    if isinstance(value, list) and not any(isinstance(v, Mapping | list) for v in value):
        value = "\n\n".join(v for v in value if isinstance(v, str) and v.strip())
    return value if isinstance(value, str) and value.strip() else None


def _by_authors(note: Mapping[str, Any]) -> bool:
    """Whether the authors of the paper wrote it: a reply, not a review."""
    signatures = note.get("signatures")
    return isinstance(signatures, list) and any(str(s).endswith("/Authors") for s in signatures)


def _id_of(note: Mapping[str, Any]) -> str | None:
    value = note.get("id", note.get("review_id"))
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _snake(name: str) -> str:
    """The name in lower case: "directReplies" and "Direct Replies" are "direct_replies"."""
    return re.sub(r"[\s-]+|(?<=[a-z])(?=[A-Z])", "_", name.strip()).lower()


def _no_review(shown: str, value: Any) -> str:
    record = value[0] if isinstance(value, list) and value else value
    record = record.get("content", record) if isinstance(record, Mapping) else record
    has = "it is empty"
    if isinstance(record, Mapping) and record:
        names = [visible(str(name))[:40] for name in list(record)[:_MOST_FIELDS_SHOWN]]
        has = "its fields are " + ", ".join(names)
    elif value:
        has = "it holds no objects"
    return (
        f"{shown} holds no review: {has}. Name the text review, text or comment, or give the "
        "sections as summary, strengths, weaknesses, questions and limitations."
    )


def _shown(path: Path | str) -> str:
    return repr(_printable(str(path)))


def _printable(name: str) -> str:
    """The name without lone surrogates, which stand for bytes that are no UTF-8."""
    return name.encode("utf-8", "backslashreplace").decode()
