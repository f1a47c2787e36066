"""Points counted inside a paragraph: "It is unclear (a) how ..., (b) why ..."."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rag.review import cues
from rag.review.blocks import Block, joined_number
from rag.review.sentences import Sentence
from rag.types import Span

_MARK = re.compile(
    r"(?:(?<=\s)|(?<=\A))(?P<mark>\((?:[a-h]|[A-H]|[1-9]|i{1,3}|iv|vi{0,3})\)|(?:[a-h]|[1-9]|i{1,3}|iv)\)"
    r"|[A-H]\.(?=\s[^.]))[.:,]?\s*"
)
_LETTERED = re.compile(r"\([a-hivx]{1,4}\)\Z")
_KINDS = ("abcdefgh", "ABCDEFGH", "123456789", ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii"))
# Below it the parts are names of things ("the (1) encoder and (2) decoder"), not matters.
_LEAST_WORDS = 3
_CLAUSE_END = re.compile(r"[,;:]\s+(?:and|but|while|whereas)\b")
_TAIL = re.compile(r"[\s,;]*(?:\b(?:and|or|and/or|as well as)[\s,;]*)?\Z")


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a block.

    `fragment` is less than a sentence and asks by the whole's words; `rest` follows the last part
    and asks only by its own.
    """

    number: str | None
    start: int
    end: int
    fragment: bool = False
    rest: bool = False


@dataclass(frozen=True, slots=True)
class _Mark:
    label: str
    start: int
    end: int


def parts(plain: str, block: Block, sentences: Sequence[Sentence]) -> list[Part]:
    """The block in its counted parts, what comes before the first mark with the first; else whole.

    Marks must count from the first on. Inside one sentence that sentence, or every part, must ask.
    """
    whole = [Part(block.number, block.start, block.end)]
    marks = next(
        (m for m in _sequences(plain, block) if _parts_ask(plain, block, m, sentences)), None
    )
    if marks is None:
        return whole
    lead = _own_question(sentences, block, marks[0])
    found = [Part(block.number, block.start, lead)] if lead > block.start else []
    for n, mark in enumerate(marks):
        # What announces the first part belongs to it.
        announced = n == 0 and plain[lead : mark.start].strip()
        end = marks[n + 1].start if n + 1 < len(marks) else block.end
        holder = next(s for s in sentences if s.start <= mark.start < s.end)
        found.extend(_part(plain, block, holder, mark, Span(lead if announced else mark.end, end)))
    return found


def _own_question(sentences: Sequence[Sentence], block: Block, first: _Mark) -> int:
    """Where the last question asked before the first mark ends; else where the block begins."""
    ends = [
        s.end for s in sentences if s.end <= first.start and s.signs.question and not s.signs.void
    ]
    return ends[-1] if ends else block.start


def _part(plain: str, block: Block, holder: Sentence, mark: _Mark, span: Span) -> Iterator[Part]:
    """The part `span` after `mark`, which stands in `holder`, and what follows it there."""
    outer = block.number
    if outer is not None and _LETTERED.search(outer) is not None:
        outer = _LETTERED.sub("", outer)
    label = "(" + mark.label.lstrip("(") if mark.label[-1] == ")" else mark.label.rstrip(".")
    number = joined_number(outer, label)
    if _opens(plain, holder, mark):
        yield Part(number, span.start, span.end)
        return
    end = _without_tail(plain, mark.end, min(span.end, holder.end))
    yield Part(number, span.start, end, fragment=True)
    if holder.end < span.end:
        yield Part(block.number, holder.end, span.end, rest=True)


def _opens(plain: str, holder: Sentence, mark: _Mark) -> bool:
    """Whether whole sentences follow the mark, not a part of the one that holds it."""
    before = plain[holder.start : mark.start].rstrip()
    return not before or before[-1] in ":.?!"


def _without_tail(plain: str, start: int, end: int) -> int:
    tail = _TAIL.search(plain, max(start, end - 14), end)
    return tail.start() if tail is not None else end


def _sequences(plain: str, block: Block) -> Iterator[list[_Mark]]:
    marks = [*_first(block)]
    marks += [
        _Mark(m["mark"], m.start(), m.end())
        for m in _MARK.finditer(plain, block.start, min(block.end, block.start + 20_000))
    ]
    if len(marks) < 2:
        return
    for kind in _KINDS:
        for style in ("()", ")", "."):
            counted: list[_Mark] = []
            for mark in marks:
                if len(counted) < len(kind) and mark.label == _marked(kind[len(counted)], style):
                    counted.append(mark)
            if len(counted) >= 2:
                yield counted


def _first(block: Block) -> Iterator[_Mark]:
    """The marker of the block itself, where it is a letter: "(a) Why? (b) How?"."""
    lettered = _LETTERED.search(block.number or "")
    if lettered is not None:
        yield _Mark(lettered[0], block.start, block.start)


def _marked(letter: str, style: str) -> str:
    return f"({letter})" if style == "()" else letter + style


def _parts_ask(
    plain: str, block: Block, marks: Sequence[_Mark], sentences: Sequence[Sentence]
) -> bool:
    ends = [*(mark.start for mark in marks[1:]), block.end]
    words = [len(plain[mark.end : end].split()) for mark, end in zip(marks, ends, strict=True)]
    if sum(words) < _LEAST_WORDS * len(marks):
        return False
    around = [s for s in sentences if any(s.start <= m.start < s.end for m in marks)]
    if not around or not all(sentence.signs.asks for sentence in around):
        return False
    holder, first = around[0], marks[0]
    if holder.signs.question or _opens(plain, holder, first):
        return True
    # What is asked of the parts stands right before them, not in another clause.
    clause = _CLAUSE_END.split(plain[holder.start : first.start])[-1]
    return any(cue.search(clause) for cue in (cues.PROBLEM, cues.REQUEST, cues.WONDER))
