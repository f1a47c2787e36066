"""Sentences of papers with their vectors, computed once for as long as the program runs."""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from rag.chunk import pieces
from rag.embed import Embedder
from rag.sentences import sentence_spans
from rag.types import Paper, Span

# Of 33,000 sentences in abstracts the longest has 888 characters. What is longer (a text without
# full stops) is cut between words: a quote of a whole book convinces nobody.
LONGEST = 1_000


# Papers whose sentences are kept, those asked for last: some 13 KB each with 384 dimensions.
MOST_PAPERS = 5_000


class Passages:
    """A cache of sentence spans and unit vectors by paper text; threads may share it."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self._kept: dict[tuple[str, str], tuple[list[Span], NDArray[np.float32]]] = {}
        self._turn = threading.Lock()

    def sentences(self, paper: Paper) -> tuple[list[Span], NDArray[np.float32]]:
        """The paper's sentences and their unit vectors, shape (sentences, d)."""
        key = (paper.id, paper.text)
        with self._turn:
            if key in self._kept:
                self._kept[key] = self._kept.pop(key)  # at the end, as the last one asked for
                return self._kept[key]
        # Two threads may embed the same paper at once; waiting for one another would cost more.
        found = self._embedded(paper)
        with self._turn:
            self._kept[key] = found
            while len(self._kept) > MOST_PAPERS:
                del self._kept[next(iter(self._kept))]
        return found

    def _embedded(self, paper: Paper) -> tuple[list[Span], NDArray[np.float32]]:
        spans = [
            part
            for span in sentence_spans(paper.text)
            for part in pieces(paper.text, span, lambda text: len(text) <= LONGEST)
        ]
        texts = [paper.text[span.start : span.end] for span in spans]
        return spans, self.embedder.documents(texts)

    def cosines(self, paper: Paper, vector: NDArray[np.float32]) -> tuple[list[Span], list[float]]:
        """The paper's sentences and each one's cosine similarity to a unit vector."""
        spans, vectors = self.sentences(paper)
        return spans, [float(value) for value in vectors @ vector]
