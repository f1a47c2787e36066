"""`rag eval answers`: a question set through the assistant, into a run directory."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from eval.metrics.summary import Summary, summarize
from eval.questions.datasets import Question, QuestionSet
from eval.questions.gold import Gold, GoldIndex
from eval.retrieval.ranking import INSTALL
from eval.runs.assess import Assessor
from eval.runs.directory import (
    META,
    METRICS,
    RESULTS,
    Run,
    prepare,
    read_meta,
    read_run,
    refuse_other,
    write_json,
    write_questions,
)
from eval.runs.environment import shown_path
from eval.runs.judge import Opinion, opinion
from eval.runs.meta import Made, begun, continued, ended, shown_identity
from rag.batch.answering import Answering
from rag.batch.budget import Budget
from rag.batch.cache import open_cache
from rag.batch.engine import Outcome, Progress, run_all
from rag.batch.journal import Journal
from rag.batch.setup import budget_for, patient, usual_jobs
from rag.config import Settings
from rag.errors import RagError
from rag.llm import open_chat
from rag.session import FileProgress, Search, open_search
from rag.store import Store

# The line of results of a question, at its n-th attempt.
MakeLine = Callable[[Question, int], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Options:
    """How a run is made; only `judge` shows in its results, for all items or for none.

    `jobs` are questions at a time: by default one with the model of this machine, else some.
    """

    jobs: int | None = None
    retry_failed: bool = False
    max_tokens: int | None = None
    max_cost: float | None = None
    cached: bool = True
    judge: bool = False


@dataclass(frozen=True, slots=True)
class Watch:
    """Who is told of progress, and of a question whose gold is wrong."""

    progress: Callable[[Progress], None] | None = None
    file_progress: FileProgress | None = None
    gold_problem: Callable[[Question, str], None] = lambda _question, _message: None


@dataclass(frozen=True, slots=True)
class Ended:
    """A run with what it is worth, how its session went, and what to tell the user besides.

    `judged` is a language model's opinion, of a run that was made with `judge`.
    """

    run: Run
    summary: Summary
    outcome: Outcome
    judged: Opinion | None = None
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The content of metrics.json: that of `Summary`, and "judge" where a model judged."""
        judge = {} if self.judged is None else {"judge": self.judged.to_json()}
        return {**self.summary.to_json(), **judge}


def run_answers(
    questions: QuestionSet,
    directory: Path,
    settings: Settings,
    options: Options | None = None,
    watch: Watch | None = None,
) -> Ended:
    """Answer what the run in `directory` has no answer to yet, and measure it anew.

    The same call goes on with a run that was stopped, in whatever way.

    Raises:
        UsageError: the directory holds something else, or a run of other questions, papers,
            model, prompts or settings.
        BatchError: another process is at work on the run, or it cannot be written.
        RagError: see `open_search` and `open_chat`.
    """
    options, watch = options or Options(), watch or Watch()
    _require_measures()
    settings = patient(settings)
    jobs = options.jobs or usual_jobs(settings)
    prepare(directory)
    with (
        open_search(settings) as search,
        Journal.open(directory / RESULTS) as journal,
        open_cache(settings, wanted=options.cached) as cache,
    ):
        asked = with_gold(questions, search.store, watch)
        with open_chat(settings, watch.file_progress, jobs) as model:
            budget = budget_for(settings, model.name, options.max_tokens, options.max_cost)
            answering = Answering(search, model, settings, cache)
            made = _made(questions, answering, search, settings, judge=options.judge)
            session = Session.begin(directory, asked, journal, begun(made, settings, jobs))
            outcome = session.work(
                Assessor(answering, search, model, judged=options.judge).line,
                jobs=jobs,
                budget=budget,
                retry_failed=options.retry_failed,
                on_progress=watch.progress,
            )
            notes = (journal.repaired, cache.note if cache else None, *model.degraded)
        made_run = session.end(outcome, budget, tuple(filter(None, notes)))
    # A journal leaves no empty file; a run that stopped at its first item is one all the same.
    (directory / RESULTS).touch()
    return made_run


@dataclass(frozen=True, slots=True)
class Session:
    """One sitting at a run, whose journal the caller holds."""

    directory: Path
    asked: Sequence[tuple[Question, Gold]]
    journal: Journal
    meta: Mapping[str, Any]
    started: float

    @classmethod
    def begin(
        cls,
        directory: Path,
        asked: Sequence[tuple[Question, Gold]],
        journal: Journal,
        meta: Mapping[str, Any],
    ) -> Session:
        """Write down what is asked, and what the answers will be made with.

        Raises:
            UsageError: the run in the directory was made with something else.
        """
        before = read_meta(directory)
        if before is not None:
            refuse_other(before, meta["identity"], directory)
            meta = continued(meta, before)
        write_json(directory / META, meta)
        write_questions(directory, asked)
        return cls(directory, asked, journal, meta, time.perf_counter())

    def work(self, make_line: MakeLine, **how: Any) -> Outcome:
        """Make every line that is missing; `how` is that of `run_all`."""
        items = [(question.id, question) for question, _ in self.asked]
        return run_all(items, make_line, self.journal, **how)

    def end(self, outcome: Outcome, budget: Budget, notes: tuple[str, ...] = ()) -> Ended:
        """Put the results in the order of the questions, and measure them."""
        self.journal.settle([question.id for question, _ in self.asked])
        seconds = time.perf_counter() - self.started
        write_json(self.directory / META, ended(self.meta, outcome, seconds, budget.price))
        run = read_run(self.directory)
        summary = summarize(run.items)
        judged = opinion(run.items) if self.meta["identity"].get("judge") else None
        made = Ended(run, summary, outcome, judged, notes)
        write_json(self.directory / METRICS, made.to_json())
        return made


def with_gold(questions: QuestionSet, store: Store, watch: Watch) -> list[tuple[Question, Gold]]:
    """Every question with its gold as papers of the store; what is wrong with it is told."""
    index = GoldIndex(store.papers(), store.catalog.by_record_id)
    asked = [(question, index.resolve(question.gold)) for question in questions.questions]
    for question, gold in asked:
        for problem in gold.problems:
            watch.gold_problem(question, problem)
    return asked


def _require_measures() -> None:
    """What is missing is better said before the questions are asked than after."""
    if find_spec("ir_measures") is None:
        raise RagError(f"Measuring answers needs ir_measures. Run: {INSTALL}")


def _made(
    questions: QuestionSet,
    answering: Answering,
    search: Search,
    settings: Settings,
    *,
    judge: bool,
) -> Made:
    asked = {"fingerprint": questions.fingerprint, "n": len(questions.questions)}
    corpus = {
        "fingerprint": answering.identity["corpus"],
        "papers": search.store.count()[0],
        "store": shown_path(settings.store),
    }
    return Made(
        identity={
            "questions": asked["fingerprint"],
            "judge": judge,
            **shown_identity(answering.identity),
        },
        made_with=answering.made_with,
        questions={"name": questions.name, **asked},
        corpus=corpus,
        model=answering.identity["model"],
        embedding=search.passages.embedder.identity,
    )
