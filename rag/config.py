"""All settings in one typed object: defaults < `rag.toml` < environment (`RAG_*`) < flags.

Unknown keys are errors. Keys are secrets: they come from the environment alone, never from a file
or a flag, and `repr` never shows them.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import platformdirs
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_serializer,
    field_validator,
)

from rag.errors import ConfigError

CONFIG_FILE = "rag.toml"
ENVIRONMENT = "the environment"
BUNDLED = "bundled"
# The one host for which the OpenAI client's own variable is honoured: its key goes nowhere else.
OPENAI_HOST = "api.openai.com"


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """A store on a Chroma server. `cache` is where this machine keeps its copy of it."""

    url: str
    cache: Path
    tenant: str = "default_tenant"
    database: str = "default_database"

    def __str__(self) -> str:
        return self.url

    def absolute(self) -> ServerAddress:
        """Itself; a directory has a method of this name."""
        return self


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    @field_validator("base_url", mode="after", check_fields=False)
    @classmethod
    def _http_url(cls, value: str | None) -> str | None:
        if value is None:
            return None
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("must be a full address such as http://127.0.0.1:8080/v1")
        if parts.username or parts.password:
            raise ValueError("must not hold a password; the key comes from the environment")
        _ = parts.port  # ValueError where it is none
        return value.rstrip("/")

    @field_validator("store", "cache_dir", "model_path", mode="after", check_fields=False)
    @classmethod
    def _path(cls, value: Path | ServerAddress | None) -> Path | ServerAddress | None:
        if value is not None and "\0" in str(value):
            raise ValueError("must not hold a NUL character")
        return value


class LLMSettings(_Section):
    """The language model: the bundled one unless `base_url` or `model_path` names another."""

    base_url: str | None = Field(None, description="an OpenAI-compatible endpoint")
    model: str | None = Field(None, description="the model's name at that endpoint")
    model_path: Path | None = Field(None, description="a GGUF file to run on this machine")
    allow_download: bool = Field(False, description="let the bundled model come from its model hub")
    context_tokens: int = Field(4096, ge=1024, description="context window of the model")
    timeout_seconds: float = Field(
        300.0, gt=0, le=86_400, allow_inf_nan=False, description="longest wait for one answer"
    )
    max_retries: int = Field(2, ge=0, le=10, description="tries after a failed request")


class EmbeddingSettings(_Section):
    """The embedding model: the bundled one, a sentence-transformers model, or an endpoint."""

    model: str = Field(BUNDLED, description="'bundled', or a sentence-transformers name or path")
    base_url: str | None = Field(None, description="an OpenAI-compatible embeddings endpoint")
    allow_download: bool = Field(False, description="let sentence-transformers ask its model hub")
    timeout_seconds: float = Field(
        60.0, gt=0, le=86_400, allow_inf_nan=False, description="longest wait for one batch"
    )
    max_tokens: int = Field(
        512, ge=16, description="most tokens the endpoint's model reads at once"
    )


class RetrievalSettings(_Section):
    """How papers are found. Defaults were tuned on public benchmarks; see the README."""

    papers: int = Field(6, ge=1, le=50, description="papers handed on to the answer")
    candidates: int = Field(100, ge=10, description="papers each ranking contributes to the fusion")


class AnswerSettings(_Section):
    """How answers are made."""

    evidence_sentences: int = Field(8, ge=1, le=100, description="most sentences the model sees")
    evidence_tokens: int = Field(700, ge=50, description="most tokens of evidence the model sees")
    max_answer_tokens: int = Field(320, ge=16, description="longest answer")
    seed: int = Field(0, description="sampling seed; the temperature is 0")


class PriceSettings(_Section):
    """Money for a million tokens, in any currency."""

    input: float = Field(ge=0, allow_inf_nan=False, description="for tokens that the model reads")
    output: float = Field(ge=0, allow_inf_nan=False, description="for tokens that it writes")


class Settings(_Section):
    """Everything that can be set."""

    cache_dir: Path | None = Field(None, description="where model files are kept")
    store_tenant: str = Field("default_tenant", min_length=1, description="tenant of a server")
    store_database: str = Field("default_database", min_length=1, description="database there")
    # After those that say which store of a server it is.
    store: Path | ServerAddress = Field(
        Path("vectorstore"), description="directory of the index, or address of a Chroma server"
    )
    llm: LLMSettings = LLMSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    retrieval: RetrievalSettings = RetrievalSettings()
    answer: AnswerSettings = AnswerSettings()
    prices: Mapping[str, PriceSettings] = Field(
        default_factory=dict, description="prices of models, by name; from the file alone"
    )

    @field_serializer("store")
    def _shown(self, value: Path | ServerAddress) -> str:
        return str(value)

    @field_validator("store", mode="before")
    @classmethod
    def _on_a_server(cls, value: Any, info: ValidationInfo) -> Any:
        if not isinstance(value, str) or not is_address(value):
            return value
        names = {name: info.data.get(f"store_{name}", "") for name in ("tenant", "database")}
        return ServerAddress(_origin(value), cache_directory(info.data.get("cache_dir")), **names)


def cache_directory(own: Path | None) -> Path:
    """The directory of the settings, or the user's cache directory of this system."""
    return own.expanduser() if own else Path(platformdirs.user_cache_dir("citewise", False))


def is_address(store: str) -> bool:
    """Whether a store is on a server."""
    return store.lower().startswith(("http:", "https:"))


def _origin(address: str) -> str:
    parts = urlsplit(address)
    if parts.username or parts.password:
        raise ValueError("must not hold a password; the key comes from RAG_STORE_API_KEY")
    if not parts.hostname or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError("must be a directory, or an address such as http://127.0.0.1:8000")
    _ = parts.port  # ValueError where it is none
    return f"{parts.scheme.lower()}://{parts.netloc.lower()}"


# Read from the environment by `api_key`, never part of Settings.
_KEY_VARIABLES = {
    "llm": "RAG_LLM_API_KEY",
    "embedding": "RAG_EMBEDDING_API_KEY",
    "store": "RAG_STORE_API_KEY",
}


def load_settings(
    *,
    environ: Mapping[str, str] | None = None,
    directory: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Settings:
    """Resolve every setting; `overrides` are flags, `{"store": ..., "llm": {"model": ...}}`.

    Raises:
        ConfigError: an unknown key or a value that does not fit, with the place it came from.
    """
    environ = os.environ if environ is None else environ
    merged: dict[str, Any] = {}
    for origin, layer in (
        (CONFIG_FILE, _from_file((directory or Path()) / CONFIG_FILE)),
        (ENVIRONMENT, _from_environment(environ)),
        ("the command line", dict(overrides or {})),
    ):
        _check(layer, origin)
        merged = _merge(merged, layer)
    return Settings(**merged)


def api_key(
    section: str, base_url: str, environ: Mapping[str, str] | None = None
) -> SecretStr | None:
    """The key for the address of `section`, "llm", "embedding" or "store"; None where unset."""
    environ = os.environ if environ is None else environ
    key = environ.get(_KEY_VARIABLES[section])
    if not key and section != "store" and urlsplit(base_url).hostname == OPENAI_HOST:
        key = environ.get("OPENAI_API_KEY")
    return SecretStr(key) if key else None


def _from_file(path: Path) -> dict[str, Any]:
    try:
        if path.exists() and not path.is_file():  # a pipe would be waited for
            raise OSError("it is no regular file")
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(
            f"{path} is not a readable TOML file: {error}. Correct or remove it."
        ) from error


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    """`RAG_STORE=x` -> {"store": "x"}; `RAG_LLM_BASE_URL=u` -> {"llm": {"base_url": "u"}}."""
    sections = {place[0] for place in _places() if len(place) > 1}
    layer: dict[str, Any] = {}
    for variable, value in environ.items():
        if not variable.startswith("RAG_") or variable in _KEY_VARIABLES.values() or value == "":
            continue
        key = variable.removeprefix("RAG_").lower()
        section, _, rest = key.partition("_")
        if key in sections:
            raise ConfigError(f"{variable} is not a setting but begins several. Unset it.")
        if section == "prices":
            raise ConfigError(
                f"{variable}: prices cannot come from the environment. Unset it, and write into "
                f'{CONFIG_FILE}: [prices."MODEL"] with `input = ...` and `output = ...`.'
            )
        if section in sections and rest:
            layer.setdefault(section, {})[rest] = value
        else:
            layer[key] = value
    return layer


def _check(layer: dict[str, Any], origin: str) -> None:
    try:
        Settings(**layer)
    except ValidationError as error:
        problems = "; ".join(
            _problem([str(part) for part in e["loc"]], e["type"], e["msg"], origin)
            for e in error.errors(include_input=False, include_url=False)
        )
        # Without the cause: it would show the value, which may hold a password.
        raise ConfigError(
            f"Settings from {origin} do not fit: {problems}. Correct or remove them."
        ) from None


def _problem(place: list[str], kind: str, message: str, origin: str) -> str:
    name = _spelled(place, origin)
    if kind != "extra_forbidden":
        return f"{name}: {message.removeprefix('Value error, ')}"
    close = difflib.get_close_matches(name, [_spelled(p, origin) for p in _places()], n=1)
    return f"{name}: unknown setting" + (f" (is {close[0]} meant?)" if close else "")


def _spelled(place: list[str], origin: str) -> str:
    return "RAG_" + "_".join(place).upper() if origin == ENVIRONMENT else ".".join(place)


def _places() -> Iterator[list[str]]:
    """The way to every setting: ["store"], ["llm", "model"]."""
    for name, field in Settings.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, _Section):
            yield from ([name, inner] for inner in kind.model_fields)
        else:
            yield [name]


def _merge(base: dict[str, Any], layer: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in layer.items():
        if isinstance(value, Mapping) and isinstance(merged.get(key), dict):
            merged[key] = _merge(merged[key], value)
        else:
            merged[key] = value
    return merged
