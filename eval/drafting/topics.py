"""How near papers are to each other and to a term, by their embedded passages."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
from numpy.typing import NDArray

from rag.embed import Embedder
from rag.store import Store
from rag.types import Paper

# Papers that stand for all others.
_SAMPLED = 200

# Below it a shared term is no topic. Of the 71 terms that 2 to 6 of 56 papers without keywords
# share, the 22 above are nearly all what one would group papers by ("social choice", "point
# cloud"), those below mostly not ("training process", "black-box"). A keyword is one by its
# author's word, unless others are nearly as near to it: then it is only mentioned ("cognitive
# science", "data filtering").
TOPIC, KEYWORD = 2.5, 1.9


class Nearness:
    """Cosine similarities of terms and papers; a paper is as near as its best passage."""

    def __init__(
        self, store: Store, embedder: Embedder, papers: Sequence[Paper], random: Random
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._known: dict[tuple[str, int], list[str]] = {}
        self._sampled = [p.id for p in random.sample(papers, min(_SAMPLED, len(papers)))]

    def topicality(self, term: str, holders: Sequence[Paper]) -> float:
        """How much nearer to the term its holders are than others, in standard deviations.

        (mean over holders - mean over others) / standard deviation over others; 0 without others.
        """
        vector = self._embedder.queries([term])[0]
        ids = {paper.id for paper in holders}
        others = [self._cosine(i, vector) for i in self._sampled if i not in ids]
        spread = float(np.std(others)) if others else 0.0
        if spread < 1e-9:
            return 0.0
        own = [self._cosine(i, vector) for i in sorted(ids)]
        return (float(np.mean(own)) - float(np.mean(others))) / spread

    def neighbours(self, paper: Paper, most: int) -> list[str]:
        """IDs of the papers nearest to a paper's mean passage, nearest first."""
        if (paper.id, most) not in self._known:
            mean = self._store.chunks(paper.id)[1].mean(axis=0)
            length = float(np.linalg.norm(mean)) or 1.0
            nearest = self._store.nearest((mean / length).astype(np.float32), most + 1)
            others = [paper_id for paper_id, _ in nearest if paper_id != paper.id]
            self._known[paper.id, most] = others[:most]
        return self._known[paper.id, most]

    def _cosine(self, paper_id: str, vector: NDArray[np.float32]) -> float:
        return float((self._store.chunks(paper_id)[1] @ vector).max())
