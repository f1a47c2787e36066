"""An embedder whose vectors a reader can compute by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

WORDS = ("graph", "image", "language", "protein", "reward", "noise")


class WordCountEmbedder:
    """Counts of `WORDS`, then a constant 1, scaled to unit length.

    "graph graph image" -> (2, 1, 0, 0, 0, 0, 1) / sqrt(6). A token is a blank-separated word.
    `embedded` keeps every document text given, so that a test can see what was embedded again.
    """

    def __init__(self, identity: str = "word-counts", max_tokens: int = 64) -> None:
        self.identity = identity
        self.max_tokens = max_tokens
        self.embedded: list[str] = []

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.embedded.extend(texts)
        return self.queries(texts)

    def queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = [[*(text.lower().count(word) for word in WORDS), 1] for text in texts]
        counts = np.array(rows, dtype=np.float64).reshape(len(rows), len(WORDS) + 1)
        return (counts / np.linalg.norm(counts, axis=1, keepdims=True)).astype(np.float32)
