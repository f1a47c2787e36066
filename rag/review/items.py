"""A review -> every question and every concern that asks for an answer, in the reviewer's words.

What is an item:

- A question, with the statements that lead up to it and those that go on about it. Each question
  is its own item, also of several in one paragraph, also one asked before or asked rhetorically:
  a rebuttal answers it all the same. A question without matter of its own ("Could you please
  comment?", "Why?") or that only goes on ("Or is ...?", "For example, ...?") stays with the one
  before it.
- A fault, lack, doubt or wish, with its explanation. A further one in the same paragraph
  ("Moreover, ...", "Also, ...") is another item, and so is each part of "(a) ... (b) ..." or
  "1. ... 2. ..."; of several requests ("Please ... I wonder ...") each.
- In weaknesses, questions and suggestions all that is not praise or courtesy is an item, typos
  too; in other sections only what asks by its words; in the summary nothing.

Not items: pointers ("see weaknesses"), "N/A", verdicts and offers to raise the score, what the
reviewer says of himself, lists of references.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rag.review.blocks import Block, find_blocks, is_wrapped
from rag.review.enumerations import parts
from rag.review.grouping import ALL_ASK, groups
from rag.review.headings import Role
from rag.review.leads import is_lead, leads_to_fault
from rag.review.runs import split_runs
from rag.review.sections import find_sections
from rag.review.sentences import Sentence, is_reference, masked, read_sentences

_EDGES = " \t\n\r\f\v*_#>"
# Characters; "ok" and "-" ask nothing.
_SHORTEST = 4


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """A question or concern: `review[start:end] == text`.

    `number` is the reviewer's own ("3", "Q1", "2(a)"), None where there is none; `section` the
    usual name of the section ("weaknesses"), "" outside any.
    """

    number: str | None
    section: str
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Found:
    """An item without its text; `block` is the place of its block in the section."""

    number: str | None
    start: int
    end: int
    block: int


@dataclass(frozen=True, slots=True)
class _Page:
    """The review masked, and whether its lines were broken at a column."""

    plain: str
    wrapped: bool

    def sentences(self, start: int, end: int) -> list[Sentence]:
        return read_sentences(self.plain, start, end, wrapped=self.wrapped)


def find_items(text: str) -> tuple[ReviewItem, ...]:
    """The items of a review in its order; they never overlap. Any text will do."""
    page = _Page(masked(text), is_wrapped(text))
    items: list[ReviewItem] = []
    for section in find_sections(text):
        if section.role is Role.NONE:
            continue
        blocks = find_blocks(page.plain, section.start, section.end)
        blocks = split_runs(page.plain, blocks, all_ask=section.role in ALL_ASK)
        for found in _in_section(page, blocks, section.role):
            start, end = _trimmed(text, found.start, found.end)
            if start < end:
                items.append(ReviewItem(found.number, section.name, text[start:end], start, end))
    return tuple(items)


def _in_section(page: _Page, blocks: Sequence[Block], role: Role) -> list[_Found]:
    found: list[_Found] = []
    lead: int | None = None
    for n, block in enumerate(blocks):
        if block.end - block.start < _SHORTEST:
            continue
        if _is_reference(page.plain, block):
            _extend_by_reference(found, n, block)
            continue
        sentences = page.sentences(block.start, block.end)
        if is_lead(page.plain, block, blocks[n + 1] if n + 1 < len(blocks) else None, sentences):
            lead = block.start if leads_to_fault(page.plain, block, sentences) else None
            continue
        here = _in_block(page, block, role, sentences, n)
        if here and lead is not None and block.listed:
            here[0] = replace(here[0], start=lead)
        lead = None
        found.extend(here)
    return found


def _in_block(
    page: _Page, block: Block, role: Role, sentences: list[Sentence], n: int
) -> list[_Found]:
    pieces = parts(page.plain, block, sentences)
    found = []
    for piece in pieces:
        if piece.fragment:
            found.append(_Found(piece.number, piece.start, piece.end, n))
            continue
        inside = sentences if len(pieces) == 1 else page.sentences(piece.start, piece.end)
        spans = groups(page.plain, inside, Role.MIXED if piece.rest else role)
        if not spans and block.listed and role is Role.CONCERNS:
            spans = _whole(inside)
        found.extend(_Found(piece.number, start, end, n) for start, end in spans)
    return found


def _whole(sentences: Sequence[Sentence]) -> list[tuple[int, int]]:
    """A point among weaknesses is one, even if its words could be praise."""
    told = [s for s in sentences if not s.signs.void]
    return [(told[0].start, told[-1].end)] if told else []


def _is_reference(plain: str, block: Block) -> bool:
    text = plain[block.start : block.end]
    # With its marker: "[3]" begins an entry of a list of references.
    if block.listed and plain[: block.start].rstrip()[-1:] == "]":
        text = f"[{block.number}] {text}"
    return is_reference(text)


def _extend_by_reference(found: list[_Found], n: int, block: Block) -> None:
    """A reference directly below a point belongs to it."""
    if found and not block.apart and found[-1].block == n - 1:
        found[-1] = replace(found[-1], end=block.end, block=n)


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and (text[start].isspace() or text[start] in _EDGES):
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end
