"""Points that run on in one line: "1. The proof is missing. 2. The code is not released."."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rag.review.blocks import Block
from rag.review.sentences import read_sentences
from rag.sentences import sentence_spans

# The marker of a point, at the end of what stands before it.
_MARKER = re.compile(
    r"(?<![\w.])(?P<open>[(\[]?)(?P<word>[^\W\d_]{0,9})[ #.-]?(?P<count>\d{1,4})"
    r"[*_]{0,2}(?P<close>[)\]]?[.:,]?)[*_\s–—-]*\Z"
)
_LONGEST_MARKER = 40
_FIRST = re.compile(r"(?<![\w.])(?P<open>)(?P<word>[QWC]?)(?P<count>1)(?P<close>[.:])[*_]{0,2}\s")
_BEGINS = r"[*_]{0,2}\s+(?=[^\W\d_]|[\"“'‘$\\(\[`*])"


@dataclass(frozen=True, slots=True)
class _Mark:
    """A number in the text: its place with the white space after it."""

    number: str
    start: int
    end: int


def split_runs(plain: str, blocks: Sequence[Block], *, all_ask: bool) -> tuple[Block, ...]:
    """The blocks of a section, each parted where numbers inside it count on at sentences.

    They count on from the block's own number, unless another block has the next one, or from 1:
    then, unless `all_ask` in the section, only where each part asks by its own words.
    """
    numbers = {block.number for block in blocks}
    return tuple(part for block in blocks for part in _parted(plain, block, numbers, all_ask))


def _parted(plain: str, block: Block, numbers: set[str | None], all_ask: bool) -> Iterator[Block]:
    marks = _counting_on(plain, block, numbers)
    if not marks:
        marks = _from_one(plain, block)
        if not all_ask and marks and not _all_ask(plain, block, marks):
            marks = []
    if not marks:
        yield block
        return
    starts = [block.start, *(mark.end for mark in marks)]
    ends = [*(mark.start for mark in marks), block.end]
    names = [block.number, *(mark.number for mark in marks)]
    for n, (number, start, stop) in enumerate(zip(names, starts, ends, strict=True)):
        end = start + len(plain[start:stop].rstrip(" \t\n*_"))
        listed, apart = block.listed or n > 0, block.apart and n == 0
        if start < end:
            yield replace(block, number=number, listed=listed, apart=apart, start=start, end=end)


def _counting_on(plain: str, block: Block, numbers: set[str | None]) -> list[_Mark]:
    style = _own_style(plain, block)
    if style is None or block.number is None:
        return []
    count = int(style["count"]) + 1
    if _counted(block.number, count) in numbers:
        return []
    return _marks(plain, block, style, block.number, count)


def _from_one(plain: str, block: Block) -> list[_Mark]:
    style = _FIRST.search(plain, block.start, block.end)
    if style is None:
        return []
    number = f"{block.number}.1" if block.number else f"{style['word']}1"
    marks = _marks(plain, block, style, number, 1)
    return marks if len(marks) > 1 else []


def _all_ask(plain: str, block: Block, marks: Sequence[_Mark]) -> bool:
    ends = [*(mark.start for mark in marks[1:]), block.end]
    parts = (
        read_sentences(plain, mark.end, end, wrapped=True)
        for mark, end in zip(marks, ends, strict=True)
    )
    return all(any(sentence.signs.asks for sentence in part) for part in parts)


def _own_style(plain: str, block: Block) -> re.Match[str] | None:
    """The marker before the block, if it counts."""
    if not block.listed or not (block.number or "")[-1:].isdigit():
        return None
    line = plain.rfind("\n", max(0, block.start - _LONGEST_MARKER), block.start) + 1
    return _MARKER.search(plain, max(line, block.start - _LONGEST_MARKER), block.start)


def _counted(number: str, count: int) -> str:
    return re.sub(r"\d+\Z", str(count), number)


def _marks(plain: str, block: Block, style: re.Match[str], number: str, count: int) -> list[_Mark]:
    """The marks in the style of another that count on from `count` without a gap."""
    close = "[.:]" if style["close"] in (".", ":") else re.escape(style["close"])
    word = re.escape(style["word"]) + "[ #.-]?" if style["word"] else ""
    before = rf"(?<![\w.])[*_]{{0,2}}{re.escape(style['open'])}{word}"
    mark = re.compile(rf"{before}(?P<count>\d{{1,4}})[*_]{{0,2}}{close}{_BEGINS}")
    found: list[_Mark] = []
    opens: set[int] | None = None
    for here in mark.finditer(plain, block.start, block.end):
        if int(here["count"]) != count:
            continue
        opens = _openings(plain, block) if opens is None else opens
        if here.start() in opens or _is_announced(plain, here.start()):
            found.append(_Mark(_counted(number, count), here.start(), here.end()))
            count += 1
    return found


def _is_announced(plain: str, at: int) -> bool:
    return plain[max(0, at - 4) : at].rstrip()[-1:] in (":", ";")


def _openings(plain: str, block: Block) -> set[int]:
    """Where the sentences of the block begin."""
    return {block.start + s.start for s in sentence_spans(plain[block.start : block.end])}
