"""All that determines an answer, named: two runs of one identity would answer alike."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import rag
from rag import prompts
from rag.config import Settings
from rag.llm.model_files import QWEN
from rag.store.schema import Fingerprint

SHORT = 16

# Whose code shapes vectors, rankings or replies. An endpoint's own software cannot be known.
_LIBRARIES = (
    "PyStemmer", "chromadb", "numpy", "onnxruntime", "tokenizers", "jinja2", "tiktoken",
    "sentence-transformers", "torch", "xllamacpp",
)  # fmt: skip

# Asks and shows, but answers nothing.
_NOT_ANSWERING = "cli"


def identity(
    settings: Settings, model: str, embedder: str, fingerprint: Fingerprint, corpus: str
) -> dict[str, str]:
    """What answers of these settings by `model`, with vectors of `embedder`, depend on.

    `corpus` is the digest of what the papers say, `fingerprint` that of what indexed them. An
    endpoint is its address and the model's name: what it changes behind them cannot be seen.

    Raises:
        OSError: the model's file cannot be read.
    """
    return {
        "model": model,
        "endpoint": settings.llm.base_url or f"this machine, {_model_file(settings)}",
        "context_tokens": str(settings.llm.context_tokens),
        "prompts": prompts_digest(),
        "answer": settings.answer.model_dump_json(),
        "retrieval": settings.retrieval.model_dump_json(),
        "seed": str(settings.answer.seed),
        "embedding": f"{embedder}; {fingerprint}",
        "corpus": corpus,
        "code": code_digest(),
        "libraries": ", ".join(f"{name} {found}" for name, found in _versions()),
    }


def made_with(named: Mapping[str, str]) -> str:
    """The identity in 16 hexadecimal digits of its SHA-256."""
    text = json.dumps(dict(named), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:SHORT]


def prompts_digest() -> str:
    """Of every template's name and content; 16 hexadecimal digits of SHA-256."""
    return _digest(prompts.directory(), sorted(prompts.directory().glob(f"*{prompts.SUFFIX}")))


def code_digest() -> str:
    """Of this package's sources, those of its command line left out."""
    top = Path(rag.__file__).parent
    files = sorted(top.rglob("*.py"))
    return _digest(top, [f for f in files if f.relative_to(top).parts[0] != _NOT_ANSWERING])


def _digest(top: Path, files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        digest.update(f"{file.relative_to(top).as_posix()}\0{content}\n".encode())
    return digest.hexdigest()[:SHORT]


def _model_file(settings: Settings) -> str:
    path = settings.llm.model_path
    if path is None:
        return f"sha256:{QWEN.sha256[:SHORT]}"
    with path.expanduser().open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()[:SHORT]}"


def _versions() -> Iterable[tuple[str, str]]:
    for name in _LIBRARIES:
        try:
            yield name, version(name)
        except PackageNotFoundError:
            continue
