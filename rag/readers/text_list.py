"""Plain-text lists: an optional header, then abstracts parted by blank lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from rag.types import Record, Rejected, Source

# A header says what is listed; longer ones are an abstract's first lines.
_MAX_HEADER_WORDS = 12
_MAX_HEADER_CHARACTERS = 120
_MAX_HEADER_LINES = 3
# A line that is an abstract by itself, in a list without blank lines.
_MIN_ABSTRACT_WORDS = 40
# A marked item of fewer belongs to an enumeration inside an abstract.
_MIN_ITEM_WORDS = 8

_RULE = re.compile(r"^[^\S\n]*[-=*_#~+—]{3,}[^\S\n]*$", re.M)
_BLANK = re.compile(r"\n(?:[^\S\n]*\n)+")
_MARKER = re.compile(r"\s*(?:\[\d{1,4}\]|\(\d{1,4}\)|\d{1,4}[.)]|[-*+•–])\s+")
_ENDS_LIKE_A_SENTENCE = re.compile(r"[.!?。！？…][\"'”’」)\]]*\s*\Z")
_HYPHENATED = re.compile(r"(?<=[a-z])-\n(?=[a-z])")


def records(text: str, file: str) -> Iterator[Record | Rejected]:
    """One record a block, in order; `position` counts from 1, without the header.

    Markers of numbered and bulleted lists are not part of the abstracts. Line breaks are kept for
    the original; cleaning joins the lines.
    """
    blocks = _blocks(text)
    if len(blocks) > 1 and _is_header(blocks[0]):
        blocks = blocks[1:]
    listed = sum(_MARKER.match(block) is not None for block in blocks) * 2 >= len(blocks)
    for position, block in enumerate(blocks, start=1):
        abstract = _MARKER.sub("", block, count=1) if listed and _MARKER.match(block) else block
        yield Record(Source(file, position), _HYPHENATED.sub("-", abstract))


def _blocks(text: str) -> list[str]:
    parted = (block.strip("\n") for block in _BLANK.split(_RULE.sub("", text)))
    blocks = ["\n".join(line.strip() for line in b.split("\n")) for b in parted if b.strip()]
    if not blocks:
        return []
    first = blocks[0].split("\n")
    if len(first) > 1 and _heads(first[0], first[1]):
        blocks[:1] = [first[0], "\n".join(first[1:])]
    return [part for block in blocks for part in _by_line(block)]


def _heads(line: str, following: str) -> bool:
    """Whether a line is a header directly above its list, not the first of wrapped lines."""
    item = _MARKER.match(following) is not None and len(following.split()) >= _MIN_ITEM_WORDS
    return (
        (item or len(following) >= 4 * len(line))
        and not following[:1].islower()
        and _is_header(line)
    )


def _by_line(block: str) -> list[str]:
    """The lines of a block that are abstracts of their own: each marked, or long and closed."""
    lines = block.split("\n")
    if len(lines) == 1:
        return lines
    if all(_is_abstract(line) for line in lines):
        return lines
    marked = [_MARKER.match(line) is not None for line in lines]
    if not marked[0] or sum(marked) < 2 or not _are_abstracts(lines, marked):
        return [block]
    starts = [n for n, is_marked in enumerate(marked) if is_marked] + [len(lines)]
    return ["\n".join(lines[a:b]) for a, b in pairwise(starts)]


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
