"""Paragraphs that only announce what follows: "I have these questions:"."""

from __future__ import annotations

from collections.abc import Sequence

from rag.review import courtesies
from rag.review.blocks import Block
from rag.review.sentences import Sentence

# Characters; what is longer says something itself.
_LONGEST = 600
_MOST_WORDS = 15
_MOST_WORDS_OF_HEADING = 6


def is_lead(
    plain: str, block: Block, following: Block | None, sentences: Sequence[Sentence]
) -> bool:
    """Whether a block of `plain` only announces the one that follows it."""
    if following is None or block.end - block.start > _LONGEST:
        return False
    if any(sentence.signs.question for sentence in sentences):
        return False
    text = plain[block.start : block.end]
    closes = text.endswith((":", ":-", "：", ":**"))
    few = len(text.split()) <= _MOST_WORDS
    if not following.listed:
        return closes and few and courtesies.LEAD.search(text) is not None
    if block.listed:
        counts = few and len(sentences) == 1 and courtesies.COUNTS.search(text) is not None
        return _is_above(block, following) and (closes or counts)
    return closes or _announces(text, few, sentences)


def leads_to_fault(plain: str, block: Block, sentences: Sequence[Sentence]) -> bool:
    """Whether the announcement says what is wrong with what follows: "It is not compared with:"."""
    text = plain[block.start : block.end]
    return any(s.signs.asks for s in sentences) and courtesies.LEAD.search(text) is None


def _is_above(block: Block, following: Block) -> bool:
    """Whether `following` is a point under the point `block`."""
    if following.indent > block.indent:
        return True
    if block.number is None or following.number == block.number:
        return False
    return (following.number or "").startswith(block.number)


def _announces(text: str, few: bool, sentences: Sequence[Sentence]) -> bool:
    """Of a paragraph before a list: a heading without marks, "Some issues are", "See below"."""
    if few and len(sentences) == 1 and courtesies.COUNTS.search(text) is not None:
        return True
    heads = len(text.split()) <= _MOST_WORDS_OF_HEADING and text[-1] not in ".!"
    if heads and not sentences[0].signs.asks:
        return True
    void = any(sentence.signs.void for sentence in sentences)
    return void and courtesies.LEAD.search(text) is not None
