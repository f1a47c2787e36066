"""Tables of any delimiter: Scopus, Web of Science, Embase, PubMed, Zotero, Rayyan and plain CSV."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from rag.readers import delimited
from rag.readers.delimited import Broken, Dialect, Row, trimmed
from rag.readers.fields import ID, record_from
from rag.readers.mapping import Sought, absent, listed
from rag.readers.names import Names, plain
from rag.readers.table_layout import (
    ABSTRACTS,
    KEYWORDS,
    KNOWN,
    Layout,
    is_long,
    layout_of,
)
from rag.types import Record, Rejected, Source

# How much the guesses see, in characters.
_HEAD = 65_536
# Longer cells are no column names.
_LONGEST_NAME = 200
# The name of a column that only numbers the rows.
_ROW_NUMBER = "record number"
# The share of rows as wide as the header that makes a table of one without known names.
_SAME_WIDTH = 0.9

_OTHERWISE_PARTED = re.compile(r"[;|\n]|\A\s*\[")
# Embase: "cyst (diagnosis, surgery), article".
_BETWEEN_COMMAS = re.compile(r"(?:[^,(]++|\([^()]*+\)|\()++")
# Embase: "Journal of Cysts (2004) 102:4 (253-258). Date of Publication: 25 Aug 2004".
_EMBASE_SOURCE = re.compile(r"(?P<venue>[^()]+?) \((?P<year>\d{4})\)")


def looks_like(head: str) -> bool:
    """Whether `head`, the beginning of a file, is a table with a header and a row of its width.

    Lists of abstracts and Markdown are none, whatever commas and bars they hold.
    """
    lines = [f"{line}\n" for line in re.split(r"\r\n?|\n", head)]
    layout = layout_of(lines, {})
    if layout is None or not layout.headed or layout.vertical:
        return layout is not None and layout.vertical
    width = len(layout.names)
    body = delimited.rows(lines[layout.skip :], layout.dialect, width)
    found = [row for row in body if isinstance(row, Row) and any(row.cells)]
    names = {plain(name) for name in layout.names}
    fitting = sum(len(trimmed(row.cells, width)) == width for row in found)
    if not layout.dialect.spaced and (len(names & KNOWN) > 1 or names & ABSTRACTS):
        return width > 1 and fitting * 2 > len(found)
    return width > 1 and fitting > 1 and fitting >= _SAME_WIDTH * len(found)


def records(
    lines: Iterable[str], file: str, columns: Mapping[str, str]
) -> Iterator[Record | Rejected]:
    """Every row that is not blank and no header; `position` counts them from 1.

    `columns` says which column holds what, as in {"abstract": "Summary"}. Where it names no
    abstract and no header does, the one column of long texts is taken; of two, neither.
    """
    stream = iter(lines)
    head = _head(stream)
    layout = layout_of(head, columns)
    if layout is None:
        reason = (
            "It is no table: no comma, semicolon, tab or bar parts its lines into columns. "
            "Give a list of abstracts as .txt."
        )
        if any(line.strip() for line in head):
            yield Rejected(file, 0, reason)
        return
    guessed, missing = _abstract_column(head, layout, columns)
    # A name that no column has is a slip of the pen: better no papers than some without a DOI.
    if not layout.vertical:
        missing = _not_there(layout, columns) or missing
    numbering = "" if "id" in columns else _numbering_column(head, layout)
    body = chain(head[layout.skip :], stream)
    found = _stacked(body, layout) if layout.vertical else _rows(body, layout)
    for position, item in enumerate(found, start=1):
        if isinstance(item, Broken):
            yield Rejected(file, position, item.reason, item.line)
        elif missing is not None:
            yield Rejected(file, position, missing, item.line)
        else:
            if numbering in item.fields:
                item.fields[_ROW_NUMBER] = item.fields.pop(numbering)
            yield record_from(item.fields, Source(file, position), item.line, guessed)


@dataclass(frozen=True, slots=True)
class _Fields:
    """A record as the table has it: column name -> value."""

    fields: dict[str, object]
    line: int


def _head(stream: Iterator[str]) -> list[str]:
    head = []
    length = 0
    for line in stream:
        head.append(line)
        length += len(line)
        if length >= _HEAD and len(head) > 1:
            break
    return head


def _rows(lines: Iterable[str], layout: Layout) -> Iterator[_Fields | Broken]:
    width = len(layout.names)
    for row in delimited.rows(lines, layout.dialect, width, layout.skip + 1):
        if isinstance(row, Broken):
            yield row
            continue
        cells = trimmed(row.cells, width)
        if not any(cell.strip() for cell in cells) or _is_header(cells, layout.names):
            continue
        if len(cells) > width or (len(cells) == 1 < width):
            yield Broken(row.line, _other_width(len(cells), width, layout.dialect))
        else:
            cells += [""] * (width - len(cells))
            yield _Fields(_fields(zip(layout.names, cells, strict=True)), row.line)


def _is_header(cells: Sequence[str], names: Sequence[str]) -> bool:
    """Whether a row repeats the column names, as tables that were put together do."""
    # A numbered name ("title 2") stands where the table repeats one.
    return len(cells) == len(names) and all(
        cell == name
        or (len(cell) <= _LONGEST_NAME and plain(cell) == plain(name))
        or name.startswith(f"{cell.strip()} ")
        for cell, name in zip(cells, names, strict=True)
    )


def _stacked(lines: Iterable[str], layout: Layout) -> Iterator[_Fields | Broken]:
    """Records of a vertical table: a blank row, or the first one's name again, ends one."""
    pairs: list[tuple[str, str]] = []
    line = 0
    for row in delimited.rows(lines, layout.dialect, 0, layout.skip + 1):
        if isinstance(row, Broken):
            yield row
            continue
        cells = [cell.strip() for cell in row.cells if cell.strip()]
        if pairs and (not cells or cells[0] == pairs[0][0]):
            yield _Fields(_fields(pairs), line)
            pairs = []
        if cells:
            line = line if pairs else row.line
            pairs.append((cells[0], "; ".join(cells[1:])))
    if pairs:
        yield _Fields(_fields(pairs), line)


def _fields(pairs: Iterable[tuple[str, str]]) -> dict[str, object]:
    fields: dict[str, object] = {
        name: _keywords(cell) if cell and _holds_keywords(name) else cell for name, cell in pairs
    }
    source = fields.get("Source")
    if isinstance(source, str) and "Date of Publication" in source:
        found = _EMBASE_SOURCE.match(source)
        if found:
            venue, year = found["venue"], found["year"]
            fields = {"Publication Title": venue, "Publication Year": year, **fields}
    return fields


@lru_cache(maxsize=1024)
def _holds_keywords(name: str) -> bool:
    return plain(name).removesuffix("majorfocus") in KEYWORDS


def _keywords(cell: str) -> object:
    """Keywords parted by commas as a list, but not within parentheses; others as they are."""
    if _OTHERWISE_PARTED.search(cell):
        return cell
    return [part.strip() for part in _BETWEEN_COMMAS.findall(cell) if part.strip()]


def _abstract_column(
    head: Sequence[str], layout: Layout, columns: Mapping[str, str]
) -> tuple[Mapping[str, str], str | None]:
    """`columns`, with the abstract's guessed if need be, or why it cannot be."""
    names = {plain(name) for name in layout.names}
    if layout.vertical or names & ABSTRACTS or plain(columns.get("abstract", "")) in names:
        return columns, None
    name = _long_column(head, layout)
    return (
        (columns, _no_abstract(layout)) if name is None else ({**columns, "abstract": name}, None)
    )


def _not_there(layout: Layout, columns: Mapping[str, str]) -> str | None:
    """Why no row is read, if the user names columns that the header does not."""
    if isinstance(columns, Sought):
        columns.missing.clear()  # the header tells it of all rows
    names = Names(layout.names)
    unknown = [ours for ours, theirs in columns.items() if names.spelled(theirs) is None]
    if not unknown:
        return None
    return (
        f"--map names the column {absent(columns, unknown)}, which is missing; the columns are "
        f"{listed(layout.names)}."
    )


def _numbering_column(head: Sequence[str], layout: Layout) -> str:
    """The first column of IDs, if all that it does is to number the rows, from 0 or 1."""
    name = next(iter(Names(layout.names).present(ID)), None)
    if name is None or layout.vertical:
        return ""
    rows = _rows(head[layout.skip :], layout)
    cells = [item.fields.get(name) for item in rows if isinstance(item, _Fields)]
    starts = (range(start, start + len(cells)) for start in (0, 1))
    return name if any(cells == [str(n) for n in numbers] for numbers in starts) else ""


def _long_column(head: Sequence[str], layout: Layout) -> str | None:
    """The one column of the head most of whose cells are long."""
    found = [
        item.fields for item in _rows(head[layout.skip :], layout) if isinstance(item, _Fields)
    ]
    long = [name for name in layout.names if is_long([str(row.get(name, "")) for row in found])]
    return long[0] if len(long) == 1 else None


def _no_abstract(layout: Layout) -> str:
    return (
        "No column is known to hold the abstracts; the columns are "
        f"{listed(layout.names)}. "
        "Name it: --map abstract=COLUMN."
    )


def _other_width(count: int, width: int, dialect: Dialect) -> str:
    mark = {"\t": "a tab", ",": "a comma", ";": "a semicolon"}.get(dialect.delimiter, "a bar")
    cells = f"{count} cell{'s' if count > 1 else ''}"
    return (
        f"The row has {cells}, the header {width}: text that holds {mark} or a line end "
        "must stand in quotes."
    )
