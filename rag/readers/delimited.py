"""Rows of a delimited file, one at a time; a quote left open costs its own row, not the rest."""

from __future__ import annotations

import csv
import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

DELIMITERS = ("\t", ",", ";", "|")

# A row of more characters over several lines has a quote that nothing closes.
_LONGEST_ROW = 1_000_000
# Where a broken row is read once more, quote by quote: an abstract and all that goes with it.
_LONGEST_MENDED = 65_536
_MOST_LINES_MENDED = 50
# Lines passed over in search of the next row.
_MOST_LINES_SKIPPED = 1_000
# So many lines inside one row that are rows themselves were swallowed; fewer may be a quoted table.
_SWALLOWED = 10
# csv refuses cells over 131,072 characters by default; full texts are longer.
_LONGEST_CELL = 2**31 - 1

# Quotes escaped by a backslash; after a letter it is an accent of LaTeX's.
_BACKSLASHED = re.compile(r'(?<!\w)\\"|\\"(?![\w{])')


@dataclass(frozen=True, slots=True)
class Dialect:
    """What parts the cells; `spaced` where a blank follows each delimiter, as the header shows."""

    delimiter: str
    spaced: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """The cells of a row; `line` is where it begins, from 1."""

    cells: list[str]
    line: int


@dataclass(frozen=True, slots=True)
class Broken:
    """Lines that are no row, from `line` on, and why."""

    line: int
    reason: str


def rows(
    lines: Iterable[str], dialect: Dialect, width: int, line: int = 1
) -> Iterator[Row | Broken]:
    r"""The rows of `lines`, of which the first is number `line`; empty rows too.

    `width` is how many cells a row has (0: not known). It tells where a row begins after a broken
    one; rows of other widths come out as they are.

    >>> list(rows(['1,"a\n', "2,b\n"], Dialect(","), 2))[1]
    Row(cells=['2', 'b'], line=2)
    """
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_CELL))
    feed = _Feed(lines, line)
    reader = _reader(feed, dialect)
    while True:
        cells: list[str] | None = None
        try:
            cells = next(reader)
        except StopIteration:
            return
        except (csv.Error, _RunawayError):
            pass
        if cells is not None and (len(feed.taken) == 1 or _is_whole(cells, feed, dialect, width)):
            yield Row(cells, feed.line)
            feed.accept(len(feed.taken))
            continue
        mended = _mended(feed, dialect, width)
        count = mended[0] if mended else _skipped(feed, dialect, width)
        yield Row(mended[1], feed.line) if mended else _broken(feed.line, count)
        feed.accept(count)
        reader = _reader(feed, dialect)


def trimmed(cells: list[str], width: int) -> list[str]:
    """The cells without blank ones beyond `width`, which is none where it is 0."""
    while len(cells) > width > 0 and not cells[-1].strip():
        cells = cells[:-1]
    return cells


class _RunawayError(Exception):
    """A row is longer than any that is meant."""


class _Feed:
    """Lines for a csv.reader, kept until their row is accepted so that they can be read anew."""

    def __init__(self, lines: Iterable[str], line: int) -> None:
        self._lines = iter(lines)
        self._again: deque[str] = deque()
        self._length = 0
        self.taken: list[str] = []
        self.line = line

    def __iter__(self) -> _Feed:
        return self

    def __next__(self) -> str:
        if self._length > _LONGEST_ROW:
            raise _RunawayError
        line = self._again.popleft() if self._again else next(self._lines)
        self.taken.append(line)
        self._length += len(line)
        return line

    def reaches(self, index: int) -> bool:
        """Whether `taken[index]` exists, if need be after taking more lines."""
        while len(self.taken) <= index:
            try:
                next(self)
            except (StopIteration, _RunawayError):
                return False
        return True

    def accept(self, count: int) -> None:
        """The row is over after `count` lines of those taken; the others come again."""
        if count < len(self.taken):
            self._again.extendleft(reversed(self.taken[count:]))
        self.line += count
        self.taken.clear()
        self._length = 0


def _reader(lines: Iterable[str], dialect: Dialect) -> Iterator[list[str]]:
    return csv.reader(
        lines, delimiter=dialect.delimiter, skipinitialspace=dialect.spaced, strict=True
    )


def _is_whole(cells: list[str], feed: _Feed, dialect: Dialect, width: int) -> bool:
    """Whether a row over several lines is one row, and not several that a quote joined."""
    inner = feed.taken[1:]
    swallowed = sum(_fits([line], dialect, width) for line in inner)
    if not width or len(trimmed(cells, width)) == width:
        return swallowed < _SWALLOWED or swallowed * 2 < len(inner)
    return not swallowed


def _fits(lines: list[str], dialect: Dialect, width: int) -> bool:
    """Whether a row of the right width begins with the first line and, a line alone, ends there.

    In prose a blank follows each comma and semicolon; in tables hardly ever.
    """
    alone = len(lines) == 1
    if alone and (lines[0].count('"') % 2 or lines[0].count(dialect.delimiter) < max(width - 1, 1)):
        return False
    try:
        cells = trimmed(next(_reader(lines, dialect), []), width)
    except csv.Error:
        return False
    return (len(cells) == width if width else len(cells) > 1) and not _is_prose(cells)


def _is_prose(cells: list[str]) -> bool:
    return any(cell[:1] == " " for cell in cells[1:])


def _mended(feed: _Feed, dialect: Dialect, width: int) -> tuple[int, list[str]] | None:
    """How many lines the row takes, and its cells, where quotes stand in it unescaped."""
    plain = trimmed(feed.taken[0].rstrip("\n").split(dialect.delimiter), width)
    # Many programs write these without any quoting: a quote is part of the text.
    if dialect.delimiter in "\t|" and len(plain) == width:
        return 1, plain
    text = ""
    for index in range(_MOST_LINES_MENDED):
        if not feed.reaches(index) or (index and _fits([feed.taken[index]], dialect, width)):
            break
        text += feed.taken[index]
        if len(text) > _LONGEST_MENDED:
            break
        cells = trimmed(_tolerantly(text, dialect) or [], width)
        if len(cells) == width:
            return index + 1, cells
        if len(cells) > width:
            break
    return (1, plain) if len(plain) == width > 1 and not _is_prose(plain) else None


def _tolerantly(text: str, dialect: Dialect) -> list[str] | None:
    """The cells of `text`, where only a quote before a delimiter or the end closes; None if open.

    A quote behind a delimiter opens a cell, so that the one before it is open still.

    >>> _tolerantly('1,"He said "no", and left"', Dialect(","))
    ['1', 'He said "no", and left']
    """
    delimiter = re.escape(dialect.delimiter)
    then = rf"(?:{delimiter}{'' if dialect.spaced else '(?! )'}|\n?\Z)"
    quoted = re.compile(rf'"((?:[^"]++|""|(?<!{delimiter})"(?![ \t]*{then}))*+)"[ \t]*(?={then})')
    plain = re.compile(rf"[^{delimiter}\n]*")
    cells = []
    at = 0
    while True:
        if dialect.spaced:
            at += text[at:].startswith(" ")
        found = (quoted if text.startswith('"', at) else plain).match(text, at)
        if found is None:
            return None
        cell = found[1].replace('""', '"') if found.re is quoted else found[0]
        cells.append(_BACKSLASHED.sub('"', cell))
        at = found.end() + 1
        if at > len(text) or text[at - 1] == "\n":
            return cells


def _skipped(feed: _Feed, dialect: Dialect, width: int) -> int:
    """How many lines to pass over: up to the next with which a row of the right width begins."""
    count = 1
    while count < _MOST_LINES_SKIPPED and feed.reaches(count):
        if _fits([feed.taken[count]], dialect, width):
            break
        feed.reaches(count + _MOST_LINES_MENDED)
        if _fits(list(islice(feed.taken, count, count + _MOST_LINES_MENDED)), dialect, width):
            break
        count += 1
    return count


def _broken(line: int, count: int) -> Broken:
    where = f"Line {line} is" if count == 1 else f"Lines {line} to {line + count - 1} are"
    return Broken(
        line,
        f"{where} no row of the table: a quote is not closed, or closed too early. "
        'Double the quotes inside a cell ("") or export it again.',
    )
