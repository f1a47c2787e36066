"""One file -> its records, by the reader of its format."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from rag.errors import ReadError
from rag.readers.mapping import NEEDED, Sought, absent
from rag.readers.stream import Stream, opened
from rag.types import Record, Rejected

_Outcomes = Iterator[Record | Rejected]
_Reader = Callable[[Stream, str, Mapping[str, str]], _Outcomes]

_LINES = frozenset({".jsonl", ".ndjson"})
_JSON = frozenset({".json"}) | _LINES
_RIS = frozenset({".ris", ".nbib", ".enw"})
_TABLES = frozenset({".csv", ".tsv", ".tab"})
# Text that may show a table or an entry without being one.
_PROSE = frozenset({".md", ".markdown", ".rst"})
# As plain text their markup would pass for abstracts.
_MARKUP = re.compile(r"\s*<(?:\?xml\b|!doctype\b|html\b)", re.I)


def read(
    path: Path,
    name: str,
    columns: Mapping[str, str] | None = None,
    on_bytes: Callable[[int], None] | None = None,
) -> Iterator[Record | Rejected]:
    """Every record of one file, in order, either as a `Record` or as `Rejected` with the reason.

    `path` may be a pipe, or `-` for standard input; gzip is told by its first bytes. `name` is
    what `Source.file` will say, `columns` which of the source's fields is which of ours, as for
    `rag.readers.fields.record_from`. `on_bytes` is told how many bytes were read at each time.

    The format is that which the first 64 Ki characters look like, tried in this order: our own
    export, JSON, BibTeX, RIS or PubMed, a table. Where they look like none, the ending decides;
    otherwise it is a text list. Of a damaged gzip, what stands before the damage is read.

    Where no record has a field that `columns` names, the last outcome says so, at position 0.

    Raises:
        ReadError: the file is missing, unreadable, empty, no text or of a format not read. It can
            come after some records.
    """
    with opened(path, on_bytes) as stream:
        ending = _ending(path)
        if ending == ".xml" or _MARKUP.match(stream.head):
            raise ReadError(
                "It is XML or HTML, which is not read. Give it as JSON Lines, one object with "
                '"title" and "abstract" a line, or as a table or a text list.'
            )
        sought = Sought(columns or {})
        reader, cuts = _reader(stream.head, ending, sought)
        yield from _with_damage(reader(stream, name, sought), stream, name, cuts)
        # An export's names are our own.
        if sought.missing and reader is not _exported:
            yield from _without(sought, name, listed=reader is _text_list)


def _reader(head: str, ending: str, columns: Mapping[str, str]) -> tuple[_Reader, bool]:
    """A format's reader, and whether it takes a record that is cut off for a whole one."""
    from rag.readers import bibtex, exported, json_records, ris, tables

    if exported.looks_like(head):
        return _exported, False
    prose = ending in _PROSE
    if json_records.looks_like(head):
        return (_json_lines if ending in _LINES else _json), False
    if not prose and bibtex.looks_like(head):
        return _bibtex, True
    if not prose and ris.looks_like(head):
        return _ris, True
    if not prose and (tables.looks_like(head) or _is_header(head, columns)):
        return _table, True
    return _by_ending(ending)


def _by_ending(ending: str) -> tuple[_Reader, bool]:
    if ending in _JSON:
        return (_json_lines if ending in _LINES else _json), False
    if ending == ".bib":
        return _bibtex, True
    if ending in _RIS:
        return _ris, True
    return (_table if ending in _TABLES else _text_list), True


def _is_header(head: str, columns: Mapping[str, str]) -> bool:
    """Whether the first line has all the columns that the user names, and more."""
    first, _, rest = head.lstrip().partition("\n")
    parted = re.search(r"[,;\t|]", first) is not None
    return bool(columns and rest and parted) and all(name in first for name in columns.values())


def _exported(stream: Stream, name: str, columns: Mapping[str, str]) -> _Outcomes:
    from rag.readers import exported

    return exported.records(stream.lines(), name, columns)


def _json(stream: Stream, name: str, columns: Mapping[str, str]) -> _Outcomes:
    from rag.readers import json_records

    return json_records.records(stream.blocks(), name, columns)


def _json_lines(stream: Stream, name: str, columns: Mapping[str, str]) -> _Outcomes:
    from rag.readers import json_records

    return json_records.records(stream.blocks(), name, columns, lines=True)


def _bibtex(stream: Stream, name: str, columns: Mapping[str, str]) -> _Outcomes:
    from rag.readers import bibtex

    return bibtex.records(stream.lines(), name, columns)


def _ris(stream: Stream, name: str, columns: Mapping[str, str]) -> _Outcomes:
    from rag.readers import ris

    return ris.records(stream.lines(), name, columns)


def _table(stream: Stream, name: str, columns: Mapping[str, str]) -> _Outcomes:
    from rag.readers import tables

    return tables.records(stream.lines(), name, columns)


def _text_list(stream: Stream, name: str, columns: Mapping[str, str]) -> _Outcomes:
    from rag.readers import text_list

    return text_list.records(stream.lines(), name, columns)


def _with_damage(outcomes: _Outcomes, stream: Stream, name: str, cuts: bool) -> _Outcomes:
    """The outcomes; if the text ended too early, the last is no record, and why is said."""
    last: Record | Rejected | None = None
    for outcome in outcomes:
        # BibTeX entries that waited in vain come last, but are not what the damage cut off.
        if stream.damage and _place(outcome) < _place(last):
            yield outcome
            continue
        if last is not None:
            yield last
        last = outcome
    position, line = _place(last)
    if stream.damage and cuts and isinstance(last, Record):
        last = Rejected(name, position, "The record is cut off where the file is damaged.", line)
    if last is not None:
        yield last
    if stream.damage:
        yield Rejected(name, position + 1, stream.damage)


def _without(sought: Sought, name: str, *, listed: bool) -> _Outcomes:
    """Says what `--map` names in vain, but for what each record was rejected for."""
    missing = sought.missing if listed else sought.missing.difference(NEEDED)
    if missing:
        named = absent(sought, missing)
        why = "a list of abstracts has no fields" if listed else "no record of the file has it"
        yield Rejected(name, 0, f"--map names the field {named}, but {why}.")


def _place(outcome: Record | Rejected | None) -> tuple[int, int]:
    if isinstance(outcome, Record):
        return outcome.source.position, outcome.line
    return (outcome.position, outcome.line) if outcome else (0, 0)


def _ending(path: Path) -> str:
    """The ending in lower case, that of what is packed for gzip."""
    inner = Path(path.stem) if path.suffix.lower() == ".gz" else path
    return inner.suffix.lower()
