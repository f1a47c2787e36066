"""Whether a statement affirms what its quote denies, or the other way round.

>>> polarity_differs("Combining preserves calibration.", "Combining does not preserve calibration.")
True
>>> polarity_differs("It is sparse.", "It is sparse, without any supervision.")
False
"""

from __future__ import annotations

import re

from rag.lexical import tokens

_NEGATION = re.compile(
    r"\b(?:not|no|never|neither|nor|without|cannot|none|fails?|failed|lacks|lacked|unable|hardly)\b|n['’]t\b",
    re.IGNORECASE,
)
_CLAUSE_END = re.compile(r"[,;:()—–]|\b(?:but|while|whereas|although|though|and|yet|however)\b")

# A statement restates a clause when this share of the content words of either stands in the other.
RESTATED = 0.6


def negated(text: str) -> bool:
    """Whether any word of `text` denies."""
    return _NEGATION.search(text) is not None


def polarity_differs(statement: str, quote: str) -> bool:
    """Compare the statement with those clauses of the quote that it restates.

    A statement that denies differs only from a quote that denies nothing at all: which clause its
    denial belongs to cannot be told.
    """
    if negated(statement):
        return not negated(quote)
    said = set(tokens(statement))
    return any(negated(c) for c in _CLAUSE_END.split(quote) if _covers(said, c))


def _covers(said: set[str], clause: str) -> bool:
    words = set(tokens(_NEGATION.sub(" ", clause)))
    shared = len(words & said)
    return shared > 1 and shared / min(len(words), len(said)) >= RESTATED
