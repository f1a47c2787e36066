"""Plain-text lists: an optional header, then abstracts parted by blank lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice, pairwise

from rag.types import Record, Rejected, Source

# A header says what is listed; longer ones are an abstract's first lines.
_MAX_HEADER_WORDS = 12
_MAX_HEADER_CHARACTERS = 120
_MAX_HEADER_LINES = 3
# A line that is an abstract by itself, in a list without blank lines.
_MIN_ABSTRACT_WORDS = 40
# A marked item of fewer belongs to an enumeration inside an abstract.
_MIN_ITEM_WORDS = 8

# Abstracts that say whether the list is numbered or bulleted.
_SAMPLE = 200
# Longer blocks are lists without blank lines.
_MAX_BLOCK_LINES = 2_000

_Part = tuple[int, str]

_RULE = re.compile(r"\s*[-=*_#~+—]{3,}\s*\Z")
_MARKER = re.compile(r"\s*(?:\[\d{1,4}\]|\(\d{1,4}\)|\d{1,4}[.)]|[-*+•–])\s+")
_ENDS_LIKE_A_SENTENCE = re.compile(r"[.!?。！？…][\"'”’」)\]]*\s*\Z")
_HYPHENATED = re.compile(r"(?<=[a-z])-\n(?=[a-z])")


def records(
    lines: Iterable[str], file: str, columns: Mapping[str, str]
) -> Iterator[Record | Rejected]:
    """One record a block, in order; `position` counts from 1, without the header.

    Markers of numbered and bulleted lists are not part of the abstracts. Line breaks are kept for
    the original; cleaning joins the lines. A list has no fields: what `columns` names stays
    missing.
    """
    del columns
    parts = _parts(lines)
    first = list(islice(parts, _SAMPLE))
    if len(first) > 1 and _is_header(first[0][1]):
        first = first[1:]
    listed = sum(_MARKER.match(block) is not None for _, block in first) * 2 >= len(first)
    for position, (line, block) in enumerate(chain(first, parts), start=1):
        abstract = _MARKER.sub("", block, count=1) if listed and _MARKER.match(block) else block
        yield Record(Source(file, position), _HYPHENATED.sub("-", abstract), line=line)


def _parts(lines: Iterable[str]) -> Iterator[_Part]:
    """Header and abstracts, each with the line where it begins."""
    blocks = _blocks(lines)
    for number, block in islice(blocks, 1):
        header, _, rest = block.partition("\n")
        if rest and _heads(header, rest.partition("\n")[0]):
            yield number, header
            yield from _by_line(number + 1, rest)
        else:
            yield from _by_line(number, block)
    for number, block in blocks:
        yield from _by_line(number, block)


def _blocks(lines: Iterable[str]) -> Iterator[_Part]:
    """What stands between blank lines or rules, without the blanks at both ends of its lines."""
    block: list[str] = []
    for number, raw in enumerate(lines, start=1):
        line = "" if _RULE.match(raw) else raw.strip()
        if line:
            block.append(line)
        # A list without blank lines is cut where an abstract ends, to be read as a stream.
        whole = len(block) >= _MAX_BLOCK_LINES and _ENDS_LIKE_A_SENTENCE.search(line)
        if block and (not line or whole):
            yield number - len(block) + bool(line), "\n".join(block)
            block.clear()
    if block:
        yield number - len(block) + 1, "\n".join(block)


def _heads(line: str, following: str) -> bool:
    """Whether a line is a header directly above its list, not the first of wrapped lines."""
    item = _MARKER.match(following) is not None and len(following.split()) >= _MIN_ITEM_WORDS
    return (
        (item or len(following) >= 4 * len(line))
        and not following[:1].islower()
        and _is_header(line)
    )


def _by_line(number: int, block: str) -> list[_Part]:
    """The lines of a block that are abstracts of their own: each marked, or long and closed."""
    lines = block.split("\n")
    if len(lines) == 1 or all(_is_abstract(line) for line in lines):
        return list(enumerate(lines, start=number))
    marked = [_MARKER.match(line) is not None for line in lines]
    if not marked[0] or sum(marked) < 2 or not _are_abstracts(lines, marked):
        return [(number, block)]
    starts = [n for n, is_marked in enumerate(marked) if is_marked] + [len(lines)]
    return [(number + a, "\n".join(lines[a:b])) for a, b in pairwise(starts)]


def _are_abstracts(lines: list[str], marked: list[bool]) -> bool:
    """Whether items are long, so that they are not an enumeration inside one abstract."""
    words = sum(len(line.split()) for line in lines)
    return words >= _MIN_ITEM_WORDS * sum(marked)


def _is_abstract(line: str) -> bool:
    closed = _ENDS_LIKE_A_SENTENCE.search(line) is not None
    return closed and len(line.split()) >= _MIN_ABSTRACT_WORDS


def _is_header(block: str) -> bool:
    lines = block.split("\n")
    return (
        len(lines) <= _MAX_HEADER_LINES
        and len(block) <= _MAX_HEADER_CHARACTERS
        and len(block.split()) <= _MAX_HEADER_WORDS
        and _ENDS_LIKE_A_SENTENCE.search(block) is None
        and _MARKER.match(block) is None
    )
