"""The papers closest to a concern that no paper answers, and why each may help."""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass

from rag.lexical import tokens
from rag.retrieve import RatedSentence, Retriever
from rag.text import visible

# Papers named for a concern.
MOST = 3

# Words of the concern that are named as found in a paper, and the shortest.
MOST_WORDS = 4
SHORTEST_WORD = 3

_WORD = re.compile(r"[^\W_]+(?:-[^\W_]+)*")

# What abstracts say whatever they are about, stemmed: no reason to read one.
_COMMON = frozenset(
    tokens(
        "achieve algorithm analysis approach author base better certain compare consider different "
        "enough enable experiment find first further furthermore give improve introduce "
        "investigate large less main make method model new novel number paper perform "
        "performance problem propose provide require result setting several show specific "
        "study such task technique two use various well work "
        "after any choice even given include kind many more most much need often one only other "
        "possible question rather same see size still than then thus time type way whether without"
    )
)

# Cosine of a paper's best sentence with the concern, below which the paper is of something else.
# Of 103 papers known to be meant by a reviewer's question 99 % have more; asked of a corpus on
# aerodynamics, the best paper for 287 such questions has less in 31 %.
RELATED = 0.64

# Cosine from which a sentence is near that shares no word; the median of papers that are meant.
AKIN = 0.76


@dataclass(frozen=True, slots=True)
class Close:
    """A paper near a concern; `why` quotes the sentence that brings it near."""

    paper_id: str
    title: str
    why: str


def closest(retriever: Retriever, concern: str, besides: str | None = None) -> tuple[Close, ...]:
    """Up to `MOST` papers, best first, without the one of the ID `besides`; none if none is near.

    Near is a paper with a sentence that is close in meaning and shares a telling word, or is very
    close.

    Raises:
        UsageError: the concern is empty or too long.
        RagError: the concern could not be embedded, or the store fails.
    """
    found = retriever.retrieve(concern, MOST + (besides is not None))
    best: dict[str, RatedSentence] = {}
    for row in found.sentences:  # best first
        best.setdefault(row.evidence.paper_id, row)
    papers = [hit.paper for hit in found.hits if hit.paper.id != besides][:MOST]
    said = frozenset(token for token in tokens(concern) if _tells(token))
    rated = ((paper, best[paper.id]) for paper in papers if paper.id in best)
    return tuple(
        Close(paper.id, paper.title, why)
        for paper, row in rated
        if (why := _why(said, row)) is not None
    )


def _why(said: Set[str], row: RatedSentence) -> str | None:
    """Why the sentence makes its paper worth reading; None if it does not."""
    sentence = visible(row.evidence.text)
    words = _shared(said, sentence)
    if row.cosine < (RELATED if words else AKIN):
        return None
    reason = f"It speaks of {', '.join(words)}" if words else "It is close in meaning"
    return f"{reason}: “{sentence}”"


def _shared(said: Set[str], sentence: str) -> list[str]:
    """The longest words of the sentence that the concern has too, each once, in their order."""
    found: dict[str, re.Match[str]] = {}
    for match in _WORD.finditer(sentence):
        if not said.isdisjoint(tokens(match[0])):
            found.setdefault(match[0].casefold(), match)
    longest = sorted(found.values(), key=lambda match: -len(match[0]))[:MOST_WORDS]
    return [f'"{match[0]}"' for match in sorted(longest, key=lambda match: match.start())]


def _tells(token: str) -> bool:
    return len(token) >= SHORTEST_WORD and not token.isdecimal() and token not in _COMMON
