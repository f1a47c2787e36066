"""`rag batch` as a function: questions of a file, answered into a file that a re-run completes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from rag.batch.answering import Answering
from rag.batch.cache import AnswerCache, open_cache
from rag.batch.engine import Outcome, Progress, run_all
from rag.batch.journal import Journal
from rag.batch.outputs import WRITERS
from rag.batch.questions import (
    STANDARD_INPUT,
    Asked,
    BadLine,
    Questions,
    fingerprint,
    read_questions,
)
from rag.batch.setup import budget_for, patient, usual_jobs
from rag.chat_model import ChatModel
from rag.config import Settings
from rag.errors import UsageError
from rag.llm import open_chat
from rag.session import FileProgress, Search, open_search

JOURNAL = ".jsonl"

# Failed questions that a summary names; it counts the others.
NAMED_FAILURES = 20


@dataclass(frozen=True, slots=True)
class Request:
    """What to ask, where the answers go, and within which bounds."""

    questions: Path
    out: Path
    jobs: int | None = None
    retry_failed: bool = False
    max_tokens: int | None = None
    max_cost: float | None = None
    cached: bool = True

    @property
    def journal(self) -> Path:
        """Where lines are kept as they are made: `out` itself, or a file beside it."""
        if self.out.suffix.lower() == JOURNAL:
            return self.out
        return self.out.with_name(self.out.name + JOURNAL)


@dataclass(frozen=True, slots=True)
class Summary:
    """How a batch went. `failures` are IDs and messages of the first `NAMED_FAILURES`."""

    out: Path
    outcome: Outcome
    bad: tuple[BadLine, ...]
    failures: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    seconds: float

    @property
    def complete(self) -> bool:
        """Whether every line of the file was a question, and every question has its answer."""
        return not (self.bad or self.outcome.failed or self.outcome.skipped)

    def to_json(self) -> dict[str, Any]:
        """The contract of `rag batch --json`."""
        outcome = self.outcome
        return {
            "out": str(self.out),
            "done": outcome.done,
            "failed": outcome.failed,
            "skipped": outcome.skipped,
            "cached": outcome.cached,
            "before": outcome.before,
            "bad_lines": [{"line": bad.line, "reason": bad.reason} for bad in self.bad],
            "usage": {
                "prompt_tokens": outcome.usage.prompt_tokens,
                "completion_tokens": outcome.usage.completion_tokens,
            },
            "cost": outcome.cost,
            "seconds": round(self.seconds, 3),
            "stopped": outcome.stopped,
        }


def run_batch(
    request: Request,
    settings: Settings,
    on_progress: Callable[[Progress], None] | None = None,
    file_progress: FileProgress | None = None,
) -> Summary:
    """Answer what has no answer yet, and write the file anew.

    Raises:
        UsageError: the questions or the file for the answers cannot be used, it was made with
            other papers, model, prompts or settings, or a price is missing.
        BatchError: another process is at work on the file, or it cannot be written.
        RagError: see `open_search` and `open_chat`.
    """
    started = time.perf_counter()
    _check(request, settings)
    questions = read_questions(request.questions)
    settings = patient(settings)
    jobs = request.jobs or usual_jobs(settings)
    with (
        Journal.open(request.journal) as journal,
        open_cache(settings, wanted=request.cached) as cache,
    ):
        with (
            open_search(settings) as search,
            open_chat(settings, file_progress, jobs) as model,
        ):
            work = _Work(request, settings, questions, journal)
            outcome = work.run(search, model, cache, jobs, on_progress)
            degraded = model.degraded
        _write(request, questions, journal)
        failures = _failures(questions, journal)
        notes = (journal.repaired, cache.note if cache else None, *degraded)
    return Summary(
        request.out,
        outcome,
        questions.bad,
        failures,
        tuple(filter(None, notes)),
        time.perf_counter() - started,
    )


@dataclass(frozen=True, slots=True)
class _Work:
    request: Request
    settings: Settings
    questions: Questions
    journal: Journal

    def run(
        self,
        search: Search,
        model: ChatModel,
        cache: AnswerCache | None,
        jobs: int,
        on_progress: Callable[[Progress], None] | None,
    ) -> Outcome:
        """Everything between opening and closing."""
        request = self.request
        budget = budget_for(self.settings, model.name, request.max_tokens, request.max_cost)
        answering = Answering(search, model, self.settings, cache)
        _require_same(request, self.journal.lines(), answering, self.questions)

        def work(asked: Asked, attempt: int) -> dict[str, Any]:
            return answering.line(asked.id, asked.question, asked.history, attempt)

        return run_all(
            [(asked.id, asked) for asked in self.questions.distinct],
            work,
            self.journal,
            jobs=jobs,
            budget=budget,
            retry_failed=request.retry_failed,
            on_progress=on_progress,
        )


def _check(request: Request, settings: Settings) -> None:
    """Refuse at once what could not end well."""
    out = request.out
    if out.suffix.lower() not in (JOURNAL, *WRITERS):
        raise UsageError(f"--out {out}: its name must end with .jsonl, .csv or .md.")
    for file in {out, request.journal}:
        if str(request.questions) != STANDARD_INPUT and _same(file, request.questions):
            raise UsageError(f"{file} holds the questions: choose another file for the answers.")
    if out.exists() and not request.journal.exists():
        raise UsageError(
            f"{out} exists, and no batch made it ({request.journal.name} is missing beside it). "
            "Choose another --out, or remove it."
        )
    if request.max_cost is not None and not settings.prices:
        budget_for(settings, settings.llm.model or "MODEL", max_cost=request.max_cost)


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _require_same(
    request: Request,
    lines: Iterable[Mapping[str, Any]],
    answering: Answering,
    questions: Questions,
) -> None:
    """Refuse to mix answers of different models, papers or settings, or to different questions."""
    asked = {item.id: fingerprint(item.question, item.history) for item in questions.asked}
    for line in lines:
        known = line.get("made_with")
        if known is not None and known != answering.made_with:
            raise UsageError(
                f"{request.journal} was made with {_other(line, answering)}. New answers are not "
                "mixed with those: finish it with what it was made with, choose another --out, or "
                "remove it to begin anew."
            )
        answered = line.get("asked")
        if answered is not None and asked.get(line["id"], answered) != answered:
            raise UsageError(
                f"{request.journal} answers another question, or one after another history, under "
                f"the ID {line['id']!r} than {request.questions} asks. Give the changed question "
                "another ID, choose another --out, or remove that line."
            )


def _other(line: Mapping[str, Any], answering: Answering) -> str:
    """What a line was made with that is different now, as far as it tells."""
    identity = answering.identity
    model = (line.get("answer") or {}).get("model", identity["model"])
    if model != identity["model"]:
        return f"another model ({model}; now {identity['model']})"
    if line.get("prompt_hash") != identity["prompts"]:
        return "other prompts"
    if str(line.get("seed")) != identity["seed"]:
        return f"another seed ({line.get('seed')}; now {identity['seed']})"
    return "other papers, other settings or another version of this program"


def _write(request: Request, questions: Questions, journal: Journal) -> None:
    """The lines in the order of the questions, and of them the file that was asked for."""
    journal.settle([asked.id for asked in questions.distinct])
    write = WRITERS.get(request.out.suffix.lower())
    if write is not None:
        write(request.out, journal.lines(asked.id for asked in questions.asked))


def _failures(questions: Questions, journal: Journal) -> tuple[tuple[str, str], ...]:
    attempts = journal.attempts
    failed = (a.id for a in questions.distinct if a.id in attempts and attempts[a.id].failed)
    lines = journal.lines(islice(failed, NAMED_FAILURES))
    return tuple((line["id"], line["error"]) for line in lines)
