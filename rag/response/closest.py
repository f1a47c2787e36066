"""The papers closest to a concern that no paper answers, and why each may help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag.highlight import supporting
from rag.lexical import tokens
from rag.retrieve import RatedSentence, Retriever
from rag.text import visible

# Papers named for a concern.
MOST = 3

# Words of the concern that are named as found in a paper, and the shortest.
MOST_WORDS = 4
SHORTEST_WORD = 3

# What abstracts say whatever they are about, stemmed: no reason to read one.
_COMMON = frozenset(
    tokens(
        "achieve algorithm analysis approach author base better certain compare consider different "
        "enough enable experiment find first further furthermore give improve introduce "
        "investigate large less main make method model new novel number paper perform "
        "performance problem propose provide require result setting several show specific "
        "study such task technique two use various well work"
    )
)

# Cosine of a paper's best sentence with the concern, below which the paper is of something else.
# Of 103 papers known to be meant by a reviewer's question 99 % have more; asked of a corpus on
# aerodynamics, the best paper for 287 such questions has less in 31 %.
RELATED = 0.64


@dataclass(frozen=True, slots=True)
class Close:
    """A paper near a concern; `why` quotes the sentence that brings it near."""

    paper_id: str
    title: str
    why: str


def closest(retriever: Retriever, concern: str, besides: str | None = None) -> tuple[Close, ...]:
    """Up to `MOST` papers, best first, without the one of the ID `besides`; none if none is near.

    Raises:
        UsageError: the concern is empty or too long.
    """
    found = retriever.retrieve(concern, MOST + (besides is not None))
    best: dict[str, RatedSentence] = {}
    for row in found.sentences:  # best first
        best.setdefault(row.evidence.paper_id, row)
    papers = [hit.paper for hit in found.hits if hit.paper.id != besides][:MOST]
    return tuple(
        Close(paper.id, paper.title, _why(concern, best[paper.id].evidence.text))
        for paper in papers
        if paper.id in best and best[paper.id].cosine >= RELATED
    )


def _why(concern: str, sentence: str) -> str:
    shown = visible(sentence)
    words = _shared(concern, shown)
    said = f"It speaks of {', '.join(words)}" if words else "It is close in meaning"
    return f"{said}: “{shown}”"


def _shared(concern: str, sentence: str) -> Sequence[str]:
    """The longest stretches of telling words that the concern has too, in the sentence's order."""
    spans = [s for s in supporting(sentence, [concern]) if _tells(sentence[s.start : s.end])]
    longest = sorted(spans, key=lambda span: span.start - span.end)
    found = {sentence[s.start : s.end].casefold(): s for s in reversed(longest)}
    kept = sorted(found.values(), key=lambda span: span.start - span.end)[:MOST_WORDS]
    return [f'"{sentence[s.start : s.end]}"' for s in sorted(kept, key=lambda span: span.start)]


def _tells(words: str) -> bool:
    return any(len(t) >= SHORTEST_WORD and t not in _COMMON for t in tokens(words))
