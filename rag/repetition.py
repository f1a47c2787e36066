"""Statements that say nothing new: said before, or taken from the question; pure."""

from __future__ import annotations

from rag.lexical import tokens
from rag.polarity import negated
from rag.sentences import sentence_spans
from rag.types import Statement


def echoes(text: str, question: str) -> bool:
    """Whether a sentence of the question, not one that asks, holds every word in that order."""
    return any(
        not said.rstrip(" \"')").endswith("?") and _holds_in_order(said, text)
        for said in (question[span.start : span.end] for span in sentence_spans(question))
    )


def repeats(statement: Statement, known: Statement) -> bool:
    """Whether `known` says it all: every word in that order, no denial more or less, the papers."""
    if statement.supported > known.supported or negated(statement.text) != negated(known.text):
        return False
    cited, before = ({c.paper_id for c in s.citations} for s in (statement, known))
    return cited <= before and _holds_in_order(known.text, statement.text)


def _holds_in_order(text: str, words: str) -> bool:
    rest = iter(tokens(text))
    return all(word in rest for word in tokens(words))
