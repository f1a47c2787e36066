"""Sentences of papers with their vectors, computed once for as long as the program runs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rag.chunk import pieces
from rag.embed import Embedder
from rag.sentences import sentence_spans
from rag.types import Paper, Span

# Of 33,000 sentences in abstracts the longest has 888 characters. What is longer (a text without
# full stops) is cut between words: a quote of a whole book convinces nobody.
LONGEST = 1_000


class Passages:
    """A cache of sentence spans and unit vectors by paper text."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self._kept: dict[tuple[str, str], tuple[list[Span], NDArray[np.float32]]] = {}

    def sentences(self, paper: Paper) -> tuple[list[Span], NDArray[np.float32]]:
        """The paper's sentences and their unit vectors, shape (sentences, d)."""
        key = (paper.id, paper.text)
        if key not in self._kept:
            spans = [
                part
                for span in sentence_spans(paper.text)
                for part in pieces(paper.text, span, lambda text: len(text) <= LONGEST)
            ]
            texts = [paper.text[span.start : span.end] for span in spans]
            self._kept[key] = (spans, self.embedder.documents(texts))
        return self._kept[key]

    def cosines(self, paper: Paper, vector: NDArray[np.float32]) -> tuple[list[Span], list[float]]:
        """The paper's sentences and each one's cosine similarity to a unit vector."""
        spans, vectors = self.sentences(paper)
        return spans, [float(value) for value in vectors @ vector]
