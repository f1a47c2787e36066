from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rag.config import LLMSettings, Settings
from rag.errors import ConfigError, ModelError
from rag.llm import ChatModel, open_chat
from tests.doubles.endpoint import ScriptedEndpoint, text

ASK = [{"role": "user", "content": "Capital?"}]
KEY = "sk-very-secret-0123456789"


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    with ScriptedEndpoint() as server:
        yield server


# What the environment must not change.

PROGRAM = """
import sys
from rag.config import LLMSettings
from pydantic import SecretStr
from rag.llm import OpenAIChat
chat = OpenAIChat(sys.argv[1], "m", SecretStr(sys.argv[2]), LLMSettings(), 0)
print(chat.complete([{"role": "user", "content": "hi"}], max_tokens=5).text)
"""


def test_the_environment_changes_neither_where_nor_what_is_sent(
    endpoint: ScriptedEndpoint,
) -> None:
    endpoint.queue(text("Paris"))
    with ScriptedEndpoint(default=text("stolen")) as elsewhere:
        proxy = elsewhere.base_url.removesuffix("/v1")
        hostile = {
            "OPENAI_BASE_URL": elsewhere.base_url,
            "OPENAI_API_KEY": "sk-another",
            "OPENAI_ADMIN_KEY": "sk-admin",
            "OPENAI_ORG_ID": "org-leak",
            "OPENAI_PROJECT_ID": "proj-leak",
            "OPENAI_WEBHOOK_SECRET": "whsec-leak",
            "OPENAI_CUSTOM_HEADERS": "X-Leak: 1\nAuthorization: Bearer x\nHost: evil\nCookie: a=b",
            "OPENAI_API_TYPE": "azure",
            "OPENAI_API_VERSION": "leak",
            "AZURE_OPENAI_ENDPOINT": elsewhere.base_url,
            "AZURE_OPENAI_API_KEY": "azure-leak",
            "OPENAI_LOG": "debug",
            "HTTP_PROXY": proxy,
            "http_proxy": proxy,
            "ALL_PROXY": proxy,
            "NO_PROXY": "",
            "no_proxy": "",
        }
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, endpoint.base_url, KEY],
            env={**os.environ, **hostile, "PYTHONPATH": str(Path(__file__).parents[1])},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert elsewhere.requests == []
    assert done.stdout == "Paris\n", done.stderr
    assert KEY not in done.stderr
    (request,) = endpoint.requests
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["host"] == endpoint.base_url.split("/")[2]
    assert request.headers.keys() == {
        "accept",
        "accept-encoding",
        "authorization",
        "connection",
        "content-length",
        "content-type",
        "host",
        "user-agent",
    }
    assert request.body.keys() == {
        "model",
        "messages",
        "max_tokens",
        "temperature",
        "seed",
        "stream",
    }


# Choosing the model.


def configured(endpoint: ScriptedEndpoint, **llm: Any) -> Settings:
    return Settings(llm=LLMSettings(base_url=endpoint.base_url, **llm))


def test_the_only_model_of_an_endpoint_is_taken(
    endpoint: ScriptedEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAG_LLM_API_KEY", KEY)
    endpoint.queue(text("Paris"))
    model: ChatModel
    with open_chat(configured(endpoint)) as model:
        assert model.name == "scripted"
        assert model.complete(ASK, max_tokens=5).text == "Paris"
    assert {r.headers["authorization"] for r in endpoint.requests} == {f"Bearer {KEY}"}


def test_a_named_model_is_not_asked_for(endpoint: ScriptedEndpoint) -> None:
    with open_chat(configured(endpoint, model="mine")) as model:
        assert model.name == "mine"
    assert endpoint.requests == []


@pytest.mark.parametrize(
    ("models", "message"),
    [(("b", "a"), r"Set RAG_LLM_MODEL .* It offers: a, b\."), ((), "It lists none")],
)
def test_a_choice_among_models_is_the_users(
    endpoint: ScriptedEndpoint, models: tuple[str, ...], message: str
) -> None:
    endpoint.models = models
    with pytest.raises(ConfigError, match=message), open_chat(configured(endpoint)):
        pass


def test_the_openai_key_of_the_environment_stays_with_openai(
    endpoint: ScriptedEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAG_LLM_API_KEY", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    endpoint.queue(text("Paris"))
    with open_chat(configured(endpoint)) as model:
        model.complete(ASK, max_tokens=5)
    assert all("authorization" not in request.headers for request in endpoint.requests)


def test_two_ways_to_a_model_are_one_too_many(endpoint: ScriptedEndpoint, tmp_path: Path) -> None:
    settings = configured(endpoint, model_path=tmp_path / "m.gguf")
    message = "RAG_LLM_BASE_URL and RAG_LLM_MODEL_PATH"
    with pytest.raises(ConfigError, match=message), open_chat(settings):
        pass


def test_a_missing_own_file_is_a_model_error(tmp_path: Path) -> None:
    settings = Settings(llm=LLMSettings(model_path=tmp_path / "none.gguf"))
    with pytest.raises(ModelError, match="RAG_LLM_MODEL_PATH"), open_chat(settings):
        pass


def test_importing_the_module_does_not_import_openai() -> None:
    code = "import sys, rag.llm; sys.exit(bool({'openai', 'xllamacpp'} & sys.modules.keys()))"
    root = str(Path(__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, env={**os.environ, "PYTHONPATH": root}
    )
    assert done.returncode == 0
