"""How a table is written: delimiter, header and columns, guessed from the file's beginning."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rag.readers import delimited, fields
from rag.readers.delimited import DELIMITERS, Dialect, Row
from rag.readers.names import plain
from rag.text import visible

# Lines above the header: what was searched, when, and by whom.
_MOST_PREAMBLE = 20
_LONGEST_NAME = 80
# A column most of whose cells are longer holds abstracts, or other long texts.
_LONG = 200
# What share of the rows must have the same number of cells, where no name is known.
_SAME_WIDTH = 0.8

# Column names beside those of `rag.readers.fields`, as `plain` makes them, of Scopus, Web of
# Science, Embase, PubMed, Zotero and Rayyan: enough to know a header by.
ABSTRACTS = frozenset(fields.ABSTRACT)
KEYWORDS = frozenset(
    "keywords keyword authorkeywords indexkeywords keywordsplus manualtags automatictags tags "
    "meshterms subjects emtreedrugindexterms emtreemedicalindexterms de".split()
)
_OTHERS = frozenset(
    "author authors authornames authorfullnames authorsfullnames firstauthor firstauthors "
    "pmcid url link uturl utuniquewosid arxivid issn isbn openurllink citation "
    "year date publicationyear yearpublished publicationdate createdate "
    "venue journal journalbook sourcetitle publicationtitle conference conferencename booktitle "
    "source volume issue pages startpage publisher language itemtype documenttype typeofreference "
    "notes note pt au so py".split()
)
KNOWN = ABSTRACTS | KEYWORDS | _OTHERS | frozenset((*fields.TITLE, *fields.ID, "doi", "do"))

# The field tags that head Web of Science's tab-delimited export; there, "ID" are keywords.
# https://images.webofknowledge.com/images/help/WOS/hs_wos_fieldtags.html
_WOS_SIGN = frozenset({"PT", "AU", "TI", "SO"})
_WOS_ID = "Keywords Plus"

_SEPARATOR = re.compile(r"\s*\"?sep=(.)\"?[,;\t]*\s*\Z", re.I)
_NO_NAME = re.compile(r"[\"{}=<>\\]")
_RULE = re.compile(r"\s*:?-{2,}:?\s*\Z")


@dataclass(frozen=True, slots=True)
class Layout:
    """How a table is written; `skip` lines stand before its first row.

    `names` are those of the columns, or none where each row is one field of a record (vertical);
    `headed` says that the table names them itself.
    """

    dialect: Dialect
    names: tuple[str, ...]
    skip: int
    vertical: bool = False
    headed: bool = True


def layout_of(head: Sequence[str], columns: Mapping[str, str]) -> Layout | None:
    """How the table that begins with the lines of `head` is written; None if it is none.

    `columns` is what the user says of the columns; its values are names to look for.
    """
    declared = _SEPARATOR.match(head[0]) if head else None
    delimiters = (declared[1],) if declared else DELIMITERS
    first = 1 if declared else 0
    return (
        _vertical(head, first, delimiters)
        or _headed(head, first, delimiters, {plain(name) for name in columns.values()})
        or _unknown(head, first, delimiters)
        or _single(head, first)
    )


def _headed(
    head: Sequence[str], first: int, delimiters: Sequence[str], wanted: set[str]
) -> Layout | None:
    """The line with the most known names, if it has two, or one that is the abstract's."""
    best: tuple[int, Layout] | None = None
    for at in range(first, min(len(head), first + _MOST_PREAMBLE)):
        for delimiter in delimiters:
            if delimiter not in head[at] or head[at].startswith("|"):
                continue
            row = next(delimited.rows(head[at : at + _MOST_PREAMBLE], Dialect(delimiter), 0), None)
            if not isinstance(row, Row) or not _is_header(row.cells):
                continue
            names = [plain(cell) for cell in row.cells]
            score = len(KNOWN.intersection(names)) + 2 * len(wanted.intersection(names))
            if score < 2 and not ABSTRACTS.intersection(names):
                continue
            if (best is None or score > best[0]) and not _is_ruled(head, at + 1, delimiter):
                best = score, _with_header(row.cells, delimiter, at, head)
    return best[1] if best else None


def _with_header(cells: Sequence[str], delimiter: str, at: int, head: Sequence[str]) -> Layout:
    spaced = len(cells) > 1 and all(cell[:1] == " " for cell in cells[1:])
    # A cell of the header may hold line ends.
    lines = 1 + sum(cell.count("\n") for cell in cells)
    names = [" ".join(visible(cell).split()) for cell in cells]
    while names and not names[-1]:
        names.pop()
    if set(names) >= _WOS_SIGN:
        names = [_WOS_ID if name == "ID" else name for name in names]
    return Layout(Dialect(delimiter, spaced), _distinct(names), min(at + lines, len(head)))


def _is_header(cells: Sequence[str]) -> bool:
    """Whether these are names: short, not code or markup, and most of them there."""
    named = [cell for cell in cells if cell.strip()]
    return (
        len(cells) > 1
        and len(named) * 2 > len(cells)
        and all(len(cell) <= _LONGEST_NAME and not _NO_NAME.search(cell) for cell in named)
        and all(cell.count("(") == cell.count(")") for cell in named)
    )


def _is_ruled(head: Sequence[str], at: int, delimiter: str) -> bool:
    """Whether a line of dashes follows, as under the header of a Markdown table."""
    return at < len(head) and any(_RULE.match(cell) for cell in head[at].split(delimiter))


def _vertical(head: Sequence[str], first: int, delimiters: Sequence[str]) -> Layout | None:
    """A table each of whose rows is a field, its name first: Embase's "fields by row"."""
    for delimiter in delimiters:
        found = _sample(head, first, Dialect(delimiter))
        starts = Counter(plain(row.cells[0]) for row in found if len(row.cells) > 1)
        known = sum(count for name, count in starts.items() if name in KNOWN)
        # In a header the second cell is a name, too.
        headed = bool(found) and any(plain(cell) in KNOWN for cell in found[0].cells[1:])
        if known * 2 > len(found) and starts.keys() & ABSTRACTS and len(starts) > 2 and not headed:
            return Layout(Dialect(delimiter), (), first, vertical=True)
    return None


def _unknown(head: Sequence[str], first: int, delimiters: Sequence[str]) -> Layout | None:
    """A table without known names: most of its rows have the same number of cells."""
    best: tuple[float, int, Layout] | None = None
    for delimiter in delimiters:
        dialect = Dialect(delimiter)
        found = _sample(head, first, dialect)
        widths = Counter(len(row.cells) for row in found).most_common(1)
        width, count = widths[0] if widths else (0, 0)
        share = count / len(found) if found else 0.0
        fitting = [row for row in found if len(row.cells) == width]
        if width < 2 or share < _SAME_WIDTH or _is_text(head, first, delimiter, fitting):
            continue
        layout = Layout(dialect, _numbered(width), first, headed=False)
        if fitting[0] is found[0] and _are_names(fitting):
            at = first + fitting[0].line - 1
            layout = _with_header(fitting[0].cells, delimiter, at, head)
        if best is None or (share, width) > best[:2]:
            best = share, width, layout
    return best[2] if best else None


def _are_names(found: Sequence[Row]) -> bool:
    """Whether the first row names the columns of the others, among which one is long."""
    first, rest = found[0].cells, found[1:]
    long = any(is_long([row.cells[n] for row in rest]) for n in range(len(first)))
    words = all(re.match(r"[^\W\d]", cell.strip()) for cell in first)
    return long and words and _is_header(first) and len(set(map(plain, first))) == len(first)


def _is_text(head: Sequence[str], first: int, delimiter: str, found: Sequence[Row]) -> bool:
    """Whether blanks follow the commas, as in sentences, or the bars are those of Markdown."""
    if delimiter == "|":
        return found[0].cells[0] == "" or _is_ruled(head, first + 1, delimiter)
    if delimiter == "\t":
        return False
    inner = [cell for row in found for cell in row.cells[1:] if cell]
    return sum(cell.startswith(" ") for cell in inner) * 5 > len(inner)


def _single(head: Sequence[str], first: int) -> Layout | None:
    """A table of one column, which the abstract's name heads."""
    for at, line in enumerate(head[first:], start=first):
        if line.strip():
            name = line.strip().strip('"').strip()
            known = plain(name) in ABSTRACTS
            return Layout(Dialect("\t"), (name,), at + 1, headed=False) if known else None
    return None


def _sample(head: Sequence[str], first: int, dialect: Dialect) -> list[Row]:
    found = delimited.rows(head[first:], dialect, 0)
    return [row for row in found if isinstance(row, Row) and any(map(str.strip, row.cells))]


def _numbered(width: int) -> tuple[str, ...]:
    return tuple(f"column {number}" for number in range(1, width + 1))


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    """The names, those of blank and repeated headers with a number."""
    found: dict[str, None] = {}
    for number, name in enumerate(names, start=1):
        unique = name or f"column {number}"
        while unique in found:
            unique = f"{name or 'column'} {number}" if unique == name else f"{unique}'"
        found[unique] = None
    return tuple(found)


def is_long(cells: Sequence[str]) -> bool:
    """Whether most cells of a column are as long as abstracts."""
    return sum(len(cell) > _LONG for cell in cells) * 2 > len(cells)
