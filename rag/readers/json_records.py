"""JSON arrays, objects and lines whose records have an abstract, under its usual names."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rag.papers import MAX_ID_LENGTH, metadata_value
from rag.text import visible
from rag.types import MetaValue, Record, Rejected, Source

# Field names without case, `_`, `-` and spaces; the first that holds a value counts.
ID_FIELDS = ("id", "paperid", "forum", "key", "doi", "arxivid", "corpusid", "citationkey")
TITLE_FIELDS = ("title", "papertitle")
ABSTRACT_FIELDS = ("abstract", "abstracttext", "abstractnote", "paperabstract", "summary", "text")
_MAX_KEYS_SHOWN = 12
# Characters that tell JSONL from one document.
_SAMPLE = 1_000_000

_LOOKS_LIKE_JSON = re.compile(r"\s*(?:\{\s*[\"}]|\[\s*[\[{\"\]])")
_NOT_SPACE = re.compile(r"[^ \t\n\r]|\Z")
_FIRST_KEY = re.compile(r"\{\s*(\"(?:[^\"\\]|\\.){0,100}\")\s*:")
# Raised by the decoder: JSONDecodeError or an overlong number, and nesting beyond Python's stack.
_BROKEN = (ValueError, RecursionError)


def looks_like_json(text: str) -> bool:
    """Whether `text` begins as a JSON object or array does ("[12] We ..." does not)."""
    return _LOOKS_LIKE_JSON.match(text) is not None


def records(text: str, file: str, *, lines: bool = False) -> Iterator[Record | Rejected]:
    """Every record of a JSON document, or of one document a line; `position` counts from 1.

    What is no record (broken JSON, no object, no abstract) comes out as `Rejected`.
    `lines` says that the file's ending promises JSONL.
    """
    start = _skip_space(text, 0)
    if lines or (text[start : start + 1] != "[" and _is_jsonl(text)):
        yield from _from_lines(text, file)
    elif text[start : start + 1] == "[":
        yield from _from_array(text, start + 1, file)
    else:
        yield from _from_object(text, file)


def record_of(value: object, source: Source, key: str | None = None) -> Record | Rejected:
    """A decoded JSON value as a record; `key` is its name in an object that is keyed by ID."""
    if not isinstance(value, Mapping):
        return _rejected(source, f"It is {_kind(value)}, not an object with an abstract.")
    fields = _fields(value)
    names = _names(fields)
    abstract_name = _first(fields, names, ABSTRACT_FIELDS, _text)
    if abstract_name is None:
        return _rejected(source, _no_abstract(fields, names))
    id_name = _first(fields, names, ID_FIELDS, _identifier)
    title_name = _first(fields, names, TITLE_FIELDS, _text)
    used = {abstract_name, id_name, title_name}
    return Record(
        source=source,
        abstract=_text(fields[abstract_name]) or "",
        id=_identifier(fields[id_name]) if id_name else key,
        title=_text(fields[title_name]) if title_name else None,
        metadata=_metadata(fields, used),
    )


def _from_lines(text: str, file: str) -> Iterator[Record | Rejected]:
    # Only "\n": other line separators may stand inside a JSON string.
    lines = (line for line in text.split("\n") if line.strip())
    for position, line in enumerate(lines, start=1):
        source = Source(file, position)
        try:
            value = json.loads(line)
        except _BROKEN as error:
            yield _rejected(source, f"The line is not JSON: {_reason(error)}.")
        else:
            yield record_of(value, source)


def _from_array(text: str, at: int, file: str) -> Iterator[Record | Rejected]:
    """The elements from `at`, one by one, so that those before and after a break are not lost."""
    decode = json.JSONDecoder().raw_decode
    first_key = _FIRST_KEY.match(text, _skip_space(text, at))
    next_record = re.compile(r"\{\s*" + re.escape(first_key[1]) + r"\s*:") if first_key else None
    position = 0
    while True:
        at = _skip_space(text, at)
        if text[at : at + 1] == "]" or (position and at >= len(text)):
            break
        position += 1
        source = Source(file, position)
        try:
            value, at = decode(text, at)
        except _BROKEN as error:
            resumed = next_record.search(text, at + 1) if next_record else None
            yield _rejected(source, _break(error, text, at, position, resumed is not None))
            if resumed is None:
                return
            at = resumed.start()
            continue
        yield record_of(value, source)
        at = _skip_space(text, at)
        at += text[at : at + 1] == ","
    rest = text[at + 1 :].strip()
    if at >= len(text) or rest:
        what = f"is followed by {_shown(rest[:40])}" if rest else "has no end: it may be cut off"
        yield _rejected(Source(file, position + 1), f"The JSON array {what}. Check the export.")


def _from_object(text: str, file: str) -> Iterator[Record | Rejected]:
    try:
        document = json.loads(text, object_pairs_hook=_Pairs)
    except _BROKEN as error:
        array = re.search(r":\s*\[(?=\s*\{)", text)
        if array is None:
            yield _rejected(Source(file, 1), f"The file is not JSON: {_reason(error)}.")
        else:
            yield from _from_array(text, array.end(), file)
        return
    for position, (key, value) in enumerate(_members(document), start=1):
        yield record_of(value, Source(file, position), key)


class _Pairs(dict[str, Any]):
    """An object that remembers members whose key occurs again, as a list keyed by ID may have."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


def _members(document: _Pairs) -> list[tuple[str | None, object]]:
    """The records in an object: itself, those of its lists, or its values by ID."""
    fields = _fields(document)
    names = _names(fields)
    if _first(fields, names, ABSTRACT_FIELDS, _text) is not None:
        return [(None, document)]
    lists = [
        value
        for value in document.values()
        if isinstance(value, list) and any(isinstance(element, dict) for element in value)
    ]
    if lists:
        return [(None, element) for found in lists for element in found]
    if any(isinstance(value, dict) for value in document.values()):
        return list(document.pairs)
    return [(None, document)]


def _is_jsonl(text: str) -> bool:
    """Whether most lines are objects of their own, and not parts of one document."""
    lines = [line.strip() for line in text[:_SAMPLE].split("\n") if line.strip()]
    objects = sum(line.startswith("{") and line.endswith("}") for line in lines)
    return len(lines) > 1 and objects * 2 > len(lines)


def _fields(value: Mapping[str, Any]) -> dict[str, Any]:
    """A record's fields; OpenReview's `content` and its `{"value": ...}` wrappers are opened."""
    content = value.get("content")
    merged = {**value, **content} if isinstance(content, Mapping) else dict(value)
    if isinstance(content, Mapping):
        merged.pop("content", None)
    return {
        k: v["value"] if isinstance(v, Mapping) and "value" in v else v for k, v in merged.items()
    }


def _first(
    fields: Mapping[str, Any],
    names: Mapping[str, Sequence[str]],
    wanted: Sequence[str],
    usable: Callable[[object], str | None],
) -> str | None:
    """The name of the first wanted field whose value is usable."""
    present = (name for field in wanted for name in names.get(field, ()))
    return next((name for name in present if usable(fields[name]) is not None), None)


def _text(value: object) -> str | None:
    if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
        value = "\n".join(value)
    return value if isinstance(value, str) and value.strip() else None


def _identifier(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        identifier = visible(str(value)).strip()
    except ValueError:  # an integer of more digits than Python prints
        return None
    return identifier if 0 < len(identifier) <= MAX_ID_LENGTH else None


def _metadata(fields: Mapping[str, Any], used: set[str | None]) -> dict[str, MetaValue]:
    kept = ((name, metadata_value(value)) for name, value in fields.items() if name not in used)
    return {name: value for name, value in kept if value is not None}


def _no_abstract(fields: Mapping[str, Any], names: Mapping[str, Sequence[str]]) -> str:
    present = next((names[field][0] for field in ABSTRACT_FIELDS if field in names), None)
    if present is not None:
        value = fields[present]
        found = _kind(value) if value and not isinstance(value, str) else "empty"
        return f"No abstract: the field {_shown(present)} is {found}."
    shown = ", ".join(_shown(key) for key in list(fields)[:_MAX_KEYS_SHOWN]) or "none"
    more = ", ..." if len(fields) > _MAX_KEYS_SHOWN else ""
    return f'No abstract: the field "abstract" is missing; its fields are {shown}{more}.'


def _break(error: Exception, text: str, at: int, position: int, resumes: bool) -> str:
    line = text.count("\n", 0, at) + 1
    then = "reading goes on with the next one" if resumes else "what follows it was not read"
    return (
        f"Record {position}, from line {line}, is broken or cut off: {_reason(error)}; {then}. "
        "Check the export."
    )


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at line {error.lineno}, column {error.colno}"
    return "nested too deeply" if isinstance(error, RecursionError) else "a number is too long"


def _skip_space(text: str, at: int) -> int:
    found = _NOT_SPACE.search(text, at)
    return found.start() if found else len(text)


def _rejected(source: Source, reason: str) -> Rejected:
    return Rejected(source.file, source.position, reason)


def _names(fields: Mapping[str, Any]) -> dict[str, list[str]]:
    """Normalised field name -> the names as they stand: "id" and "_id" are both `id`."""
    names: dict[str, list[str]] = {}
    for name in fields:
        names.setdefault(re.sub(r"[_\-\s]", "", name.lower()), []).append(name)
    return names


def _shown(name: str) -> str:
    return json.dumps(visible(name)[:40], ensure_ascii=False)


def _kind(value: object) -> str:
    if value is None:
        return "null"
    kinds = {bool: "true or false", str: "a text", list: "a list", dict: "an object"}
    return next((name for type_, name in kinds.items() if isinstance(value, type_)), "a number")
