"""Texts to unit vectors, behind one protocol: the bundled model, a local one, or an endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rag.config import BUNDLED, Settings, api_key
from rag.embedding.bundled import BundledEmbedder
from rag.embedding.endpoint import EndpointEmbedder
from rag.embedding.transformer import SentenceTransformerEmbedder
from rag.errors import ConfigError


class Embedder(Protocol):
    """Turns texts into vectors of length 1, so that a dot product is a cosine similarity.

    `identity` names everything that shapes the vectors (model, revision, prompts, pooling): equal
    identities give comparable vectors. `max_tokens` is the most that one vector can stand for.
    """

    @property
    def identity(self) -> str: ...  # noqa: D102

    @property
    def max_tokens(self) -> int: ...  # noqa: D102

    def count_tokens(self, text: str) -> int:
        """Tokens that `text` takes of `max_tokens` when embedded as a document."""
        ...

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of passages, shape (n, d)."""
        ...

    def queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of questions, shape (n, d). One longer than `max_tokens` is read in pieces."""
        ...


def open_embedder(settings: Settings) -> Embedder:
    """The embedder that the settings name; an endpoint is not contacted before the first text.

    Raises:
        ConfigError: an endpoint is set without the name of its model.
        ModelError: the model is not installed or cannot be loaded.
    """
    chosen = settings.embedding
    if chosen.base_url is not None:
        if chosen.model == BUNDLED:
            raise ConfigError(
                f"The embeddings endpoint {chosen.base_url} needs the name of its model: "
                "set RAG_EMBEDDING_MODEL."
            )
        return EndpointEmbedder(chosen, api_key("embedding", chosen.base_url))
    if chosen.model == BUNDLED:
        return BundledEmbedder()
    return SentenceTransformerEmbedder(chosen.model, allow_download=chosen.allow_download)
