from __future__ import annotations

import os
from pathlib import Path

import pytest

from rag.config import Settings, api_key, load_settings
from rag.errors import ConfigError


def load(environ: dict[str, str] | None = None, **overrides: object) -> Settings:
    return load_settings(environ=environ or {}, overrides=overrides)


def refused(environ: dict[str, str] | None = None, **overrides: object) -> str:
    with pytest.raises(ConfigError) as caught:
        load(environ, **overrides)
    assert caught.value.exit_code == 2
    return str(caught.value)


def test_defaults() -> None:
    settings = load()
    assert settings.store == Path("vectorstore")
    assert settings.llm.base_url is None
    assert settings.embedding.model == "bundled"
    assert settings.retrieval.papers == 6


def test_a_flag_beats_the_environment_which_beats_the_file() -> None:
    Path("rag.toml").write_text('store = "file"\n[llm]\nmodel = "file"\ntimeout_seconds = 5\n')
    assert load().store == Path("file")
    settings = load({"RAG_STORE": "env", "RAG_LLM_MODEL": "env"})
    assert (settings.store, settings.llm.model) == (Path("env"), "env")
    settings = load({"RAG_STORE": "env", "RAG_LLM_MODEL": "env"}, store="flag")
    assert (settings.store, settings.llm.model) == (Path("flag"), "env")
    assert settings.llm.timeout_seconds == 5.0


def test_names_of_several_words_and_numbers_come_from_the_environment() -> None:
    settings = load(
        {
            "RAG_LLM_BASE_URL": "http://127.0.0.1:8080/v1/",
            "RAG_ANSWER_EVIDENCE_TOKENS": "300",
            "RAG_CACHE_DIR": "/tmp/c",
            "RAG_LLM_ALLOW_DOWNLOAD": "true",
            "RAG_LLM_MODEL": "",
        }
    )
    assert settings.llm.base_url == "http://127.0.0.1:8080/v1"
    assert settings.answer.evidence_tokens == 300
    assert settings.cache_dir == Path("/tmp/c")
    assert settings.llm.allow_download is True
    assert settings.llm.model is None


def test_an_unknown_variable_is_named_with_the_closest_that_exists() -> None:
    assert refused({"RAG_LLM_BASEURL": "http://a/v1"}) == (
        "Settings from the environment do not fit: RAG_LLM_BASEURL: unknown setting "
        "(is RAG_LLM_BASE_URL meant?). Correct or remove them."
    )


def test_an_unknown_key_in_the_file_is_named_with_the_closest_that_exists() -> None:
    Path("rag.toml").write_text("[llm]\nmodell = 'x'\n[zzz]\nq = 1\n")
    assert refused() == (
        "Settings from rag.toml do not fit: llm.modell: unknown setting (is llm.model meant?); "
        "zzz: unknown setting. Correct or remove them."
    )


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("RAG_LLM_BASE_URL", "localhost:8080", "must be a full address such as http://127"),
        ("RAG_LLM_BASE_URL", "http:///v1", "must be a full address such as http://127"),
        ("RAG_LLM_BASE_URL", "http://127.0.0.1:99999/v1", "Port out of range 0-65535"),
        ("RAG_LLM_BASE_URL", "http://[::1/v1", "Invalid IPv6 URL"),
        ("RAG_LLM_CONTEXT_TOKENS", "many", "Input should be a valid integer"),
        ("RAG_LLM_CONTEXT_TOKENS", "3", "Input should be greater than or equal to 1024"),
        ("RAG_RETRIEVAL_PAPERS", "0", "Input should be greater than or equal to 1"),
    ],
)
def test_a_value_that_does_not_fit_is_named(variable: str, value: str, said: str) -> None:
    message = refused({variable: value})
    assert message.startswith(f"Settings from the environment do not fit: {variable}: {said}")
    assert message.endswith("Correct or remove them.")


def test_a_password_in_an_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigError) as caught:
        load({"RAG_LLM_BASE_URL": "http://me:hunter2@host/v1"})
    assert "must not hold a password" in str(caught.value)
    assert "hunter2" not in repr(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("order", [("RAG_LLM", "RAG_LLM_MODEL"), ("RAG_LLM_MODEL", "RAG_LLM")])
def test_the_name_of_a_section_alone_is_no_setting(order: tuple[str, str]) -> None:
    assert refused(dict.fromkeys(order, "x")) == (
        "RAG_LLM is not a setting but begins several. Unset it."
    )


@pytest.mark.parametrize("content", [b"store =", b"\xff\xfe", b"store = 'a'\nstore = 'b'"])
def test_a_broken_file_is_named_with_the_reason(content: bytes) -> None:
    Path("rag.toml").write_bytes(content)
    message = refused()
    assert message.startswith("rag.toml is not a readable TOML file: ")
    assert message.endswith("Correct or remove it.")


def test_a_file_with_a_byte_order_mark() -> None:
    Path("rag.toml").write_bytes(b'\xef\xbb\xbfstore = "marked"')
    assert load().store == Path("marked")


def test_a_pipe_is_not_waited_for() -> None:
    if not hasattr(os, "mkfifo"):
        pytest.skip("no named pipes on this system")
    os.mkfifo("rag.toml")
    assert refused() == (
        "rag.toml is not a readable TOML file: it is no regular file. Correct or remove it."
    )


@pytest.mark.parametrize("value", ["inf", "nan", "86401"])
@pytest.mark.parametrize("section", ["LLM", "EMBEDDING"])
def test_a_wait_has_an_end(section: str, value: str) -> None:
    name = f"RAG_{section}_TIMEOUT_SECONDS"
    assert refused({name: value}).startswith(f"Settings from the environment do not fit: {name}: ")


def test_a_path_holds_no_nul() -> None:
    Path("rag.toml").write_text('store = "a\\u0000b"')
    assert refused() == (
        "Settings from rag.toml do not fit: store: must not hold a NUL character. "
        "Correct or remove them."
    )


def test_a_key_is_no_setting_of_the_file() -> None:
    Path("rag.toml").write_text('[llm]\napi_key = "sk-1"\n')
    message = refused()
    assert "llm.api_key: unknown setting" in message
    assert "sk-1" not in message


def test_keys_come_from_the_environment_and_do_not_show() -> None:
    environ = {"RAG_LLM_API_KEY": "sk-secret", "RAG_EMBEDDING_API_KEY": "sk-other"}
    key = api_key("llm", "https://host/v1", environ)
    assert key is not None
    assert key.get_secret_value() == "sk-secret"
    assert "sk-" not in repr(key) + str(key) + repr(load(environ))
    other = api_key("embedding", "https://host/v1", environ)
    assert other is not None
    assert other.get_secret_value() == "sk-other"


def test_the_openai_key_goes_to_openai_only() -> None:
    environ = {"OPENAI_API_KEY": "sk-openai"}
    for elsewhere in ("https://host/v1", "https://api.openai.com.evil.org/v1"):
        assert api_key("llm", elsewhere, environ) is None
    key = api_key("llm", "https://api.openai.com/v1", environ)
    assert key is not None
    assert key.get_secret_value() == "sk-openai"
