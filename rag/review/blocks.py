"""The paragraphs and list points of a section, with the number that the reviewer gave each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

_NUMBERED = (
    r"\(?\d{1,2}(?:\.\d{1,2}){0,2}\s?(?:\)[.,:]?|[.:](?=\s)|-(?=\s))"
    r"|\d{1,2}\.\d{1,2}(?=\s)|\[\d{1,2}\](?=\s)"
)
_LETTERED = r"\(?(?:[a-hA-H]|[ivx]{1,4})\)[.,:]?|[a-hA-H][.:](?=\s)"
_CODED = (
    r"[\[(]?(?:[QWCSR]|[Qq]uestion|[Ww]eakness|[Cc]oncern|[Cc]omment|[Pp]oint|[Ii]ssue)"
    r"\s?[-#.]?\s?\d{1,2}(?:\.\d{1,2})?[\])]?\s?(?:[.:)\-–—]|(?=\*)|(?=\s+[A-Z]))"
)
_NUMBER = f"{_CODED}|{_NUMBERED}|{_LETTERED}"


def _marked(number: str) -> re.Pattern[str]:
    return re.compile(
        r"(?P<indent>[^\S\n]*)(?:>\s?)?(?P<bullet>(?:[-*+•●◦▪‣∙·–—]|\+\))(?=\s)\s*)?"
        rf"(?:(?P<bold>[*_]{{1,2}})?(?P<number>{number})(?P=bold)?(?:[*_]{{1,2}}(?=\s))?)?[^\S\n]*"
    )


_MARKER = _marked(_NUMBER)
_LONG_MARKER = _marked(_NUMBER.replace(r"\d{1,2}", r"\d{1,4}"))
# Longer numbers are years and the like, unless they count on.
_MOST_OF_TWO_DIGITS = 99
# Some sites paste a bullet as one character without a space.
_TIGHT_BULLET = re.compile(r"(?P<indent>[^\S\n]*)(?P<bullet>[•●◦▪‣])(?P<number>)(?P<bold>)[^\S\n]*")
# Lines broken at a column are no longer than this and, mostly, no shorter than this share of it.
_WRAPPED = 100
_FULL = 0.7
# Broken any narrower, each line is a remark.
_NARROW = 40


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph or point `[start, end)` without its marker.

    `number` is as the reviewer counts ("2", "Q1", "2(a)"), `listed` says that a marker stood there,
    `indent` is its column, and `apart` that an empty line stands before it.
    """

    number: str | None
    listed: bool
    indent: int
    apart: bool
    start: int
    end: int


def find_blocks(text: str, start: int, end: int) -> tuple[Block, ...]:
    """The blocks of `text[start:end]` in order; none is empty.

    A paragraph between two numbers of one list belongs to the first, and an indented one to the
    point above it.
    """
    return tuple(_numbered_within(text, _joined(_lines(text, start, end))))


def is_wrapped(text: str) -> bool:
    """Whether the lines of `text` were broken at a column, so that a line's end ends nothing.

    Then none is long, and most that another line follows are nearly full.
    """
    lines = [len(line.rstrip()) for line in text.splitlines()]
    longest = max(lines, default=0)
    broken = sorted(here for here, after in pairwise(lines) if here and after)
    return (
        _NARROW <= longest <= _WRAPPED
        and bool(broken)
        and broken[len(broken) // 2] >= _FULL * longest
    )


def _lines(text: str, start: int, end: int) -> Iterator[Block]:
    """Paragraphs and points as they stand, split at empty lines and markers alone."""
    block: Block | None = None
    at, last, apart = start, start, True
    counted: dict[int, int] = {}
    for line in text[start:end].splitlines(keepends=True):
        here, at = at, at + len(line)
        if not line.strip():
            if block is not None:
                yield replace(block, end=last)
            block, apart = None, True
            continue
        marker = _TIGHT_BULLET.match(line) or _marker(line, counted)
        listed = marker is not None and bool(marker["bullet"] or marker["number"])
        if marker is not None and (listed or block is None):
            if block is not None:
                yield replace(block, end=last)
            number = _clean_number(marker["number"])
            column = _column(marker)
            counted[column] = _count(number, counted.get(column, 0))
            last = here + len(line.rstrip())
            block = Block(number, listed, column, apart, min(here + marker.end(), last), last)
        last = here + len(line.rstrip())
        apart = False
    if block is not None:
        yield replace(block, end=last)


def _marker(line: str, counted: Mapping[int, int]) -> re.Match[str] | None:
    """The marker of a line; above 99 its number must be the next after that `counted` there."""
    marker = _MARKER.match(line)
    if marker is None or counted.get(_column(marker), 0) < _MOST_OF_TWO_DIGITS:
        return marker
    long = _LONG_MARKER.match(line)
    expected = counted[_column(marker)] + 1
    if long is not None and _count(_clean_number(long["number"]), 0) == expected:
        return long
    return marker


def _column(marker: re.Match[str]) -> int:
    return len(marker["indent"].expandtabs(4))


def _count(number: str | None, before: int) -> int:
    """What a number counts, 3 of "Q3"; `before` where there is none or a letter."""
    digits = re.search(r"\d+\Z", number or "")
    return int(digits[0]) if digits is not None else before


def _clean_number(marker: str | None) -> str | None:
    """The bare number, "1" of "(1),"; "(a)" stays, since "a" alone reads badly after a number."""
    if not marker:
        return None
    bare = re.sub(r"\s|[-–—.,:]+$", "", marker)
    inner = bare.strip("()[]")
    if len(inner) <= 4 and inner.isalpha():
        return f"({inner})" if bare.endswith(")") else inner
    return inner.rstrip(".")


def _joined(blocks: Iterator[Block]) -> Iterator[Block]:
    """Blocks with the unmarked paragraphs put to the point that they continue."""
    waiting: list[Block] = []
    for block in blocks:
        if not block.listed and waiting:
            if len(waiting) == 1 and block.indent > waiting[0].indent + 1:
                waiting[0] = replace(waiting[0], end=block.end)
            else:
                waiting.append(block)
            continue
        if waiting:
            if len(waiting) > 1 and _continues(waiting[0], block):
                yield replace(waiting[0], end=waiting[-1].end)
            else:
                yield from waiting
        waiting = [block] if block.listed else []
        if not block.listed:
            yield block
    yield from waiting


def _continues(point: Block, following: Block) -> bool:
    """Whether `following` is the next number of the list that `point` stands in."""
    if point.number is None or following.number is None or point.indent != following.indent:
        return False
    ours, theirs = (re.search(r"\d+\Z", b.number or "") for b in (point, following))
    return ours is not None and theirs is not None and int(theirs[0]) == int(ours[0]) + 1


def _numbered_within(text: str, blocks: Iterator[Block]) -> Iterator[Block]:
    """Blocks with the number of the point that they stand under before their own."""
    above: list[Block] = []
    for block in blocks:
        if not block.listed:
            above = []
            if block.start < block.end:
                yield block
            continue
        lettered = block.number is not None and not any(c.isdigit() for c in block.number)
        while above and not _is_under(text, block, above[-1], lettered):
            above.pop()
        numbers = [b.number for b in above[-1:] if b.number]
        number = block.number
        if numbers and (number is None or lettered or block.indent > above[-1].indent):
            number = joined_number(numbers[0], number)
        numbered = replace(block, number=number)
        above.append(numbered)
        if block.start < block.end:
            yield numbered


def _is_under(text: str, block: Block, above: Block, lettered: bool) -> bool:
    if block.indent > above.indent:
        return True
    # Without any indentation "(a)" stands under the number before it, and bullets if it announces.
    counted = above.number is not None and any(c.isdigit() for c in above.number[-1:])
    announced = block.number is None and text[above.start : above.end].endswith(":")
    return counted and block.indent == above.indent and (lettered or announced)


def joined_number(outer: str | None, inner: str | None) -> str | None:
    """One number of two: "2(a)" of "2" and "(a)", "2.1" of "2" and "1", or of "2" and "2.1"."""
    if not outer or not inner:
        return outer or inner
    if inner.startswith(outer):
        return inner
    return f"{outer}.{inner}" if inner[0].isdigit() and outer[-1].isdigit() else outer + inner
