from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from rag import doctor
from rag.cli import entry
from rag.config import Settings, load_settings
from rag.doctor import Check, diagnose
from rag.errors import ModelError

NAMES = ["packages", "tokenizer", "language model", "embedding model", "store"]
ENDPOINTS = {
    "RAG_LLM_BASE_URL": "http://127.0.0.1:9/v1",
    "RAG_LLM_MODEL": "chat",
    "RAG_EMBEDDING_BASE_URL": "http://127.0.0.1:9/e",
    "RAG_EMBEDDING_MODEL": "vectors",
}


def checks(settings: Settings) -> dict[str, Check]:
    found = diagnose(settings)
    assert [check.name for check in found.checks] == NAMES
    return {check.name: check for check in found.checks}


def settings(**environ: str) -> Settings:
    return load_settings(environ={**ENDPOINTS, **environ})


def test_endpoints_are_named_and_not_contacted() -> None:
    found = checks(settings())
    assert found["language model"] == Check(
        "language model", True, "chat at http://127.0.0.1:9/v1, without a key"
    )
    assert found["embedding model"].detail == "endpoint:vectors@512 at http://127.0.0.1:9/e"
    assert diagnose(settings()).sends_to == ("http://127.0.0.1:9/v1", "http://127.0.0.1:9/e")


def test_a_key_is_mentioned_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAG_LLM_API_KEY", "sk-secret")
    found = diagnose(settings())
    assert "with a key" in found.checks[2].detail
    assert "sk-secret" not in repr(found)


def test_no_store_yet_is_a_problem_with_its_command() -> None:
    found = diagnose(settings())
    assert not found.ok
    assert found.checks[4] == Check(
        "store",
        False,
        "vectorstore: not usable",
        "There is no store at vectorstore yet. Run `rag ingest PATH...` to make one, or name "
        "another with --store DIR.",
    )


@pytest.mark.parametrize(
    ("environ", "name", "remedy"),
    [
        ({"RAG_EMBEDDING_MODEL": "bundled"}, "embedding model", "set RAG_EMBEDDING_MODEL"),
        ({"RAG_LLM_MODEL_PATH": "x.gguf"}, "language model", "Unset the one that is not meant"),
        ({"RAG_LLM_BASE_URL": "", "RAG_LLM_MODEL_PATH": "no.gguf"}, "language model", "no.gguf"),
    ],
)
def test_what_is_missing_comes_with_a_remedy(
    environ: dict[str, str], name: str, remedy: str
) -> None:
    check = checks(settings(**environ))[name]
    assert not check.ok
    assert remedy in f"{check.detail} {check.remedy}"
    assert check.remedy


def test_downloads_are_announced() -> None:
    found = diagnose(
        load_settings(environ={"RAG_LLM_ALLOW_DOWNLOAD": "1", "RAG_EMBEDDING_BASE_URL": "http://e/v1",
                               "RAG_EMBEDDING_MODEL": "m"})
    )  # fmt: skip
    assert found.sends_to == ("http://e/v1", "the model hub (file download only)")


def test_a_model_of_this_machine_needs_its_runtime(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    model = tmp_path / "own.gguf"
    model.write_bytes(b"GGUF")
    environ = {"RAG_LLM_BASE_URL": "", "RAG_LLM_MODEL_PATH": str(model)}
    monkeypatch.setattr(doctor, "find_spec", lambda name: None)
    assert checks(settings(**environ))["language model"] == Check(
        "language model",
        False,
        "xllamacpp, which runs a model on this machine, is not installed",
        'pip install "citewise[local]"',
    )
    monkeypatch.setattr(doctor, "find_spec", lambda name: object())
    assert checks(settings(**environ))["language model"].ok


def test_looking_downloads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []

    def opened(settings: Settings) -> None:
        asked.append(settings.embedding.allow_download)
        raise ModelError("It is not on this machine.")

    monkeypatch.setattr(doctor, "open_embedder", opened)
    environ = {
        "RAG_EMBEDDING_BASE_URL": "",
        "RAG_EMBEDDING_MODEL": "owner/name",
        "RAG_EMBEDDING_ALLOW_DOWNLOAD": "true",
    }
    found = diagnose(settings(**environ))
    assert asked == [False]
    assert found.checks[3] == Check(
        "embedding model",
        True,
        "owner/name, from its hub on first use where it is not on this machine",
    )
    assert found.sends_to[1:] == ("the sentence-transformers hub (file download only)",)


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    for name, value in ENDPOINTS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "argv", ["rag", "doctor", *arguments])
    return entry.run()


def test_the_command_prints_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "--json") == 1
    shown = capsys.readouterr()
    assert shown.err == ""
    found: Any = json.loads(shown.out)
    assert list(found) == ["ok", "checks", "sends_to"]
    assert found["ok"] is False
    assert [check["name"] for check in found["checks"]] == NAMES
    assert list(found["checks"][0]) == ["name", "ok", "detail", "remedy"]
    assert found["sends_to"] == ["http://127.0.0.1:9/v1", "http://127.0.0.1:9/e"]


def test_the_command_prints_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("vectorstore").mkdir()
    Path("vectorstore/papers.sqlite").write_bytes(b"no database")
    assert run(monkeypatch) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "ok  language model: chat at http://127.0.0.1:9/v1, without a key" in lines
    assert "NO  store: vectorstore: not usable" in lines
    assert lines[-2].startswith("    ")
    assert lines[-1] == (
        "Questions and abstracts are sent to: http://127.0.0.1:9/v1, http://127.0.0.1:9/e"
    )
