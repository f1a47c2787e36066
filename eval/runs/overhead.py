"""What the harness itself costs: a long run whose model, retrieval and vectors cost nothing."""

from __future__ import annotations

import itertools
import json
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eval.questions.datasets import Question, read_questions
from eval.runs.directory import RESULTS, prepare
from eval.runs.entailment import Entailment
from eval.runs.meta import Made, begun
from eval.runs.run import Session, Watch, with_gold
from rag.batch.budget import Budget
from rag.batch.engine import now
from rag.batch.journal import Journal
from rag.config import Settings
from rag.ingest import ingest
from rag.passages import Passages
from rag.render import answer_json
from rag.sentences import sentence_spans
from rag.store import Store
from rag.types import Answer, Citation, Paper, Statement, Usage

DEMO = Path(__file__).parents[1] / "data" / "demo.jsonl"
KINDS = ("fact", "compare", "list", "unanswerable")
STATEMENTS = 2


@dataclass(frozen=True, slots=True)
class Overhead:
    """Of a run of `items`: seconds for each, and the memory, in MiB, that the run added.

    That is reading the questions, finding their gold, entailment of `STATEMENTS` statements by
    one and by two papers, writing the line, settling the file and all metrics.
    """

    items: int
    seconds_per_item: float
    added_mib: float


def overhead(items: int) -> Overhead:
    """Measure it, in a process of its own: memory once used is not seen again."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as process:
        return process.submit(_measured, items).result()


def _measured(items: int) -> Overhead:
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        embedder = _Costless()
        ingest([DEMO], home / "store", embedder)
        with Store.open(home / "store", None) as store:
            _write_questions(home / "questions.jsonl", list(store.papers()), items)
            _run(home, store, embedder, 10)  # what is loaded once is no cost of an item
            before, started = _peak_mib(), time.perf_counter()
            _run(home, store, embedder, items)
            seconds = time.perf_counter() - started
            return Overhead(items, seconds / items, _peak_mib() - before)


def _run(home: Path, store: Store, embedder: _Costless, items: int) -> None:
    questions = read_questions(home / "questions.jsonl").first(items)
    asked = with_gold(questions, store, Watch())
    papers = itertools.cycle(list(store.papers()))
    entailment = Entailment(Passages(embedder), store.catalog.by_id)

    def line(question: Question, attempt: int) -> dict[str, Any]:
        return _line(question, attempt, [next(papers), next(papers)], entailment)

    made = Made({}, "", {"n": items}, {"papers": store.count()[0]}, "none", embedder.identity)
    directory = home / f"run-{items}"
    prepare(directory)
    with Journal.open(directory / RESULTS) as journal:
        meta = begun(made, Settings(store=store.path), jobs=1)
        session = Session.begin(directory, asked, journal, meta)
        session.end(session.work(line), Budget())


def _write_questions(path: Path, papers: Sequence[Paper], items: int) -> None:
    with path.open("w", encoding="utf-8") as file:
        for number, paper in zip(range(items), itertools.cycle(papers), strict=False):
            kind = KINDS[number % len(KINDS)]
            gold = [] if kind == "unanswerable" else [[paper.id]]
            question = {"id": f"q-{number}", "kind": kind, "question": f"{number}: {paper.title}?"}
            patterns = [paper.text.split()[0].strip("()+*?.[]")]
            file.write(json.dumps({**question, "gold": gold, "must_include": patterns}) + "\n")


def _line(
    question: Question, attempt: int, papers: Sequence[Paper], entailment: Entailment
) -> dict[str, Any]:
    statements = tuple(itertools.islice(_statements(papers), STATEMENTS))
    seconds = dict.fromkeys(("retrieve", "generate", "verify", "total"), 0.0)
    answer = answer_json(
        Answer(question.question, True, 0.9, statements, tuple(papers), "none", Usage(), seconds)
    )
    retrieved = [
        {"rank": r, "paper_id": p.id, "title": p.title, "score": 1.0 / r, "dense_rank": r,
         "lexical_rank": r}
        for r, p in enumerate(papers, start=1)
    ]  # fmt: skip
    return {
        "id": question.id,
        "kind": question.kind,
        "question": question.question,
        "attempt": attempt,
        "seed": 0,
        "made_with": "",
        "prompt_hash": "",
        "at": now(),
        "cached": False,
        "answer": answer,
        "notes": [],
        "retrieved": retrieved,
        "entailment": entailment.of(answer["statements"]),
        "unknown_ids": [],
        "error": None,
    }


def _statements(papers: Sequence[Paper]) -> Iterator[Statement]:
    """Sentences of the first paper without a word, so that they are not simply found in it.

    The first cites that paper, the next one more, and so on.
    """
    text = papers[0].text
    for number, span in enumerate(sentence_spans(text), start=1):
        words = text[span.start : span.end].split(" ")
        cited = tuple(Citation(p.id, p.text[:100], 0, 100, 0.9) for p in papers[:number])
        yield Statement(" ".join(words[:1] + words[2:]), True, cited)


def _peak_mib() -> float:
    """The most memory that this process ever had."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


class _Costless:
    """An embedder that calls all texts alike."""

    identity = "costless"
    max_tokens = 512

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.tile(np.array([1.0, 0.0], dtype=np.float32), (len(texts), 1))

    queries = documents
