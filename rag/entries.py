"""Papers made ready to be stored: cut into chunks, and the chunks embedded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from rag.chunk import chunks, embedding_text
from rag.embed import Embedder
from rag.papers import content_hash
from rag.store.schema import Entry
from rag.types import Paper


def entries(
    papers: Sequence[Paper],
    embedder: Embedder,
    known: Mapping[str, NDArray[np.float32]] | None = None,
) -> list[Entry]:
    """Papers with their chunks and vectors; texts in `known` are not embedded again."""
    cut = [chunks(paper, embedder.count_tokens, embedder.max_tokens) for paper in papers]
    texts = [
        [embedding_text(paper, c, embedder.count_tokens, embedder.max_tokens) for c in windows]
        for paper, windows in zip(papers, cut, strict=True)
    ]
    vectors = dict(known or {})
    missing = list(dict.fromkeys(t for group in texts for t in group if t not in vectors))
    if missing:
        vectors.update(zip(missing, embedder.documents(missing), strict=True))
    return [
        Entry(paper, content_hash(paper.text), windows, np.stack([vectors[t] for t in group]))
        for paper, windows, group in zip(papers, cut, texts, strict=True)
    ]
