"""What a question tells beside what it asks, and statements that say nothing new; pure."""

from __future__ import annotations

from rag.lexical import tokens
from rag.polarity import negated
from rag.sentences import sentence_spans
from rag.types import Statement


def parted(question: str) -> tuple[str, str]:
    """What a question tells, and what it asks; all is asked where only one of them is there.

    A reviewer's words told apart so are answered; together a small model repeats them. Of 45
    reviewers' questions to papers of something else 7 pass the gate so, 11 in one piece.

    >>> parted("No bound is given. Is one known?")
    ('No bound is given.', 'Is one known?')
    """
    sentences = [question[span.start : span.end] for span in sentence_spans(question)]
    asked = " ".join(sentence for sentence in sentences if "?" in sentence)
    told = " ".join(sentence for sentence in sentences if "?" not in sentence)
    return (told, asked) if told and asked else ("", question)


def asks(text: str) -> bool:
    """Whether any sentence is a question: a statement that asks states nothing."""
    return any("?" in text[span.end - 3 : span.end] for span in sentence_spans(text))


def echoes(text: str, question: str) -> bool:
    """Whether a sentence that the question tells holds every word of `text` in that order."""
    told, _ = parted(question)
    sentences = (told[span.start : span.end] for span in sentence_spans(told))
    return any(_holds_in_order(sentence, text) for sentence in sentences)


def repeats(statement: Statement, known: Statement) -> bool:
    """Whether `known` says it all: every word in that order, no denial more or less, the papers."""
    if statement.supported > known.supported or negated(statement.text) != negated(known.text):
        return False
    cited, before = ({c.paper_id for c in s.citations} for s in (statement, known))
    return cited <= before and _holds_in_order(known.text, statement.text)


def _holds_in_order(text: str, words: str) -> bool:
    rest = iter(tokens(text))
    return all(word in rest for word in tokens(words))
