"""From raw model output to unit vectors, for every model: nothing truncated, nothing NaN."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from rag.chunk import pieces
from rag.errors import ModelError, UsageError
from rag.types import Span


def embed_in_full(
    texts: Sequence[str],
    encode: Callable[[list[str]], NDArray[np.float32]],
    fits: Callable[[str], bool],
) -> NDArray[np.float32]:
    """Unit vectors of `texts`, shape (n, d), whatever their length.

    A text that does not fit the model is embedded in pieces of whole words; its vector is the mean
    of the pieces' unit vectors, brought to unit length again.

    Raises:
        UsageError: a text without any visible character.
        ModelError: the model gave NaN, infinity or a zero vector.
    """
    groups = [_pieces(text, fits) for text in texts]
    if not groups:
        return np.zeros((0, 0), dtype=np.float32)
    vectors = unit(encode([piece for group in groups for piece in group]))
    firsts = np.cumsum([0, *(len(group) for group in groups)])[:-1]
    if len(vectors) == len(groups):
        return vectors
    return unit(np.add.reduceat(vectors, firsts, axis=0))


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows scaled to length 1; [[3, 4]] -> [[0.6, 0.8]].

    Raises:
        ModelError: a row is not finite or has no length.
    """
    wide = np.asarray(vectors, dtype=np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    if not np.isfinite(lengths).all() or (lengths == 0).any():
        raise ModelError(
            "The embedding model gave a vector that is empty or not a number; nothing was stored. "
            "Choose another model (RAG_EMBEDDING_MODEL) or check the endpoint; see `rag doctor`."
        )
    scaled: NDArray[np.float32] = (wide / lengths).astype(np.float32)
    return scaled


def _pieces(text: str, fits: Callable[[str], bool]) -> list[str]:
    # Lone surrogates (from a badly decoded command line) cannot be encoded by any tokenizer.
    text = text.encode("utf-8", "replace").decode()
    if not text.strip():
        raise UsageError("An empty text cannot be searched for. Write a question or some words.")
    return [text[s.start : s.end] for s in pieces(text, Span(0, len(text)), fits)]
