"""What `rag export` writes: a paper a line, as a store has it, with every place it was read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

from rag.papers import MAX_ID_LENGTH, metadata_value
from rag.text import visible
from rag.types import Listing, Record, Rejected, Source

# The first field of every line, and its value: the version of the format.
MARK = "citewise"
VERSION = 1

_BEGINNING = f'{{"{MARK}": '


def looks_like(head: str) -> bool:
    """Whether a text begins as an export does."""
    return head.lstrip().startswith(_BEGINNING)


def records(
    lines: Iterable[str], file: str, columns: Mapping[str, str]
) -> Iterator[Record | Rejected]:
    """The papers of an export; `columns` do not apply, since its names are our own."""
    del columns
    position = 0
    for number, line in enumerate(lines, start=1):
        if line.strip():
            position += 1
            yield _record(line, Source(file, position), number)


def _record(line: str, source: Source, number: int) -> Record | Rejected:
    try:
        value = json.loads(line)
        if not isinstance(value, dict) or MARK not in value:
            raise TypeError
        if value[MARK] != VERSION:
            reason = "It was exported by a newer version of this program: use that one."
            return Rejected(source.file, source.position, reason, number)
        return _whole(value, source, number)
    except (ValueError, TypeError, KeyError, RecursionError):
        reason = "It is no paper as `rag export` writes it. Put papers of your own in another file."
        return Rejected(source.file, source.position, reason, number)


def _whole(value: Mapping[str, object], source: Source, number: int) -> Record:
    title, abstract, metadata = value["title"], value["abstract"], value["metadata"]
    if not isinstance(title, str) or not isinstance(abstract, str):
        raise TypeError
    if not isinstance(metadata, dict):
        raise TypeError
    kept = {visible(k).strip(): metadata_value(v) for k, v in metadata.items()}
    return Record(
        source=source,
        abstract=abstract,
        id=_identifier(value["id"]),
        title=title,
        metadata={name: held for name, held in kept.items() if name and held is not None},
        line=number,
        title_derived=value["title_derived"] is True,
        listings=tuple(_listing(place) for place in _list(value["sources"])) or (Listing(source),),
    )


def _listing(place: object) -> Listing:
    if not isinstance(place, dict):
        raise TypeError
    file, position = place["file"], place["position"]
    # SQLite's integers have 64 bits.
    if not isinstance(file, str) or not isinstance(position, int) or not 0 <= position < 2**63:
        raise TypeError
    known = {name: _optional(place.get(name)) for name in ("id", "doi", "arxiv")}
    digest = _optional(place.get("text_hash"))
    if digest is not None and len(bytes.fromhex(digest)) < 8:
        raise ValueError
    return Listing(Source(visible(file), position), **known, content_hash=digest)


def _identifier(value: object) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= MAX_ID_LENGTH:
        raise TypeError
    return value


def _optional(value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise TypeError
    return visible(value) if value is not None else None


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise TypeError
    return value
