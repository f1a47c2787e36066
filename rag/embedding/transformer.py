"""Any sentence-transformers model, by name or path. The only import of sentence-transformers."""

from __future__ import annotations

import copy
import hashlib
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag.embedding.pooling import embed_in_full
from rag.errors import ModelError

# A model that states no limit of its own gets BERT's, which any encoder reads.
DEFAULT_MAX_TOKENS = 512

_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")


class SentenceTransformerEmbedder:
    """A sentence-transformers model on this machine; no network unless `allow_download`.

    Raises:
        ModelError: the model is not on this machine, cannot be downloaded, or cannot be loaded.
    """

    def __init__(self, name_or_path: str, *, allow_download: bool = False) -> None:
        from sentence_transformers import SentenceTransformer
        from transformers.utils.logging import disable_progress_bar

        disable_progress_bar()  # type: ignore[no-untyped-call]
        try:
            model = SentenceTransformer(name_or_path, local_files_only=not allow_download)
        except Exception as error:  # the library raises a dozen kinds, depending on what is missing
            raise ModelError(_advice(name_or_path, allow_download, error)) from error
        self._model: Any = model
        # A tokenizer is told how long a text may be before it reads one: threads that shared it
        # would cut one another's texts. Counting has one of its own, so as not to wait for vectors.
        self._turn, self._counting = threading.Lock(), threading.Lock()
        self._tokenizer: Any = copy.deepcopy(model.tokenizer)
        prompts = model.prompts or {}
        self._prompts = {kind: prompts.get(kind) or "" for kind in ("query", "document")}
        self.max_tokens = int(model.max_seq_length or DEFAULT_MAX_TOKENS)
        self.identity = _identity(name_or_path, model, self.max_tokens)

    def count_tokens(self, text: str) -> int:
        """Tokens the model reads for `text` as a document, with its prompt and special tokens."""
        return self._count(self._prompts["document"] + text)

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, shape (n, d), with the model's document prompt."""
        return self._embed(texts, self._model.encode_document, self._prompts["document"])

    def queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, shape (n, d), with the model's query prompt."""
        return self._embed(texts, self._model.encode_query, self._prompts["query"])

    def _embed(self, texts: Sequence[str], encode: Any, prompt: str) -> NDArray[np.float32]:
        def run(pieces: list[str]) -> NDArray[np.float32]:
            vectors: NDArray[np.float32] = encode(pieces, show_progress_bar=False)
            return vectors

        with self._turn:
            return embed_in_full(
                texts, run, lambda text: self._count(prompt + text) <= self.max_tokens
            )

    def _count(self, text: str) -> int:
        # verbose=False: counting a text longer than the model reads is the point, not a mistake.
        with self._counting:
            return len(self._tokenizer(text, truncation=False, verbose=False)["input_ids"])


def _identity(name: str, model: Any, max_tokens: int) -> str:
    """A hub model's name and revision or a local one's content, and what else shapes vectors."""
    local = Path(name).is_dir()
    weights = _content_hash(Path(name)) if local else _revision(model)
    modules = [(type(m).__name__, getattr(m, "pooling_mode", "")) for m in model]
    settings = repr((max_tokens, sorted((model.prompts or {}).items()), modules))
    digest = hashlib.sha256(settings.encode()).hexdigest()
    return f"sentence-transformers:{'local' if local else name}@{weights[:12]}+{digest[:8]}"


def _revision(model: Any) -> str:
    config = getattr(getattr(model[0], "auto_model", None), "config", None)
    return getattr(config, "_commit_hash", None) or "unknown-revision"


def _content_hash(directory: Path) -> str:
    digest = hashlib.sha256()
    for pattern in _WEIGHTS:
        for path in sorted(directory.rglob(pattern)):
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def _advice(name: str, allow_download: bool, error: Exception) -> str:
    reason = " ".join(str(error).split())[:300]
    if allow_download:
        return (
            f"The embedding model {name!r} could not be loaded: {reason}. "
            "Check its name and the network."
        )
    return (
        f"The embedding model {name!r} is not on this machine or cannot be loaded: {reason}. "
        "Give the path of its directory in RAG_EMBEDDING_MODEL, or set "
        "RAG_EMBEDDING_ALLOW_DOWNLOAD=true to fetch it from its hub."
    )
