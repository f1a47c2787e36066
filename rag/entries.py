"""Papers made ready to be stored: cut into chunks, and the chunks embedded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rag.chunk import chunks, embedding_text
from rag.embed import Embedder
from rag.papers import content_hash
from rag.store.schema import Entry
from rag.types import Chunk, Paper

# Texts that an embedder is given at once, so that it can be stopped in between.
AT_ONCE = 128

Vectors = Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class Cut:
    """A paper, its chunks, and the text of each that is embedded."""

    paper: Paper
    chunks: Sequence[Chunk]
    texts: Sequence[str]


def cut(paper: Paper, embedder: Embedder) -> Cut:
    """The paper cut as `embedder` reads it."""
    count, most = embedder.count_tokens, embedder.max_tokens
    windows = chunks(paper, count, most)
    return Cut(paper, windows, [embedding_text(paper, window, count, most) for window in windows])


def entries(
    papers: Sequence[Paper], embedder: Embedder, known: Vectors | None = None
) -> list[Entry]:
    """Papers with their chunks and vectors; texts in `known` are not embedded again."""
    made = [cut(paper, embedder) for paper in papers]
    return filled(made, embedded(made, embedder, known or {}))


def embedded(
    made: Sequence[Cut],
    embedder: Embedder,
    known: Vectors,
    goes_on: Callable[[], bool] = lambda: True,
) -> dict[str, NDArray[np.float32]]:
    """The vectors of all texts, those in `known` taken from there; fewer if it does not go on.

    Longest first: texts of one length fill a batch without padding, and processors that share them
    end together.
    """
    vectors = dict(known)
    texts = dict.fromkeys(text for paper in made for text in paper.texts)
    missing = sorted((t for t in texts if t not in vectors), key=len, reverse=True)
    for start in range(0, len(missing), AT_ONCE):
        if not goes_on():
            break
        some = missing[start : start + AT_ONCE]
        vectors.update(zip(some, embedder.documents(some), strict=True))
    return vectors


def filled(made: Sequence[Cut], vectors: Vectors) -> list[Entry]:
    """Entries from cut papers and the vectors of all their texts."""
    return [
        Entry(
            one.paper,
            content_hash(one.paper.text),
            one.chunks,
            np.stack([vectors[text] for text in one.texts]),
        )
        for one in made
    ]
