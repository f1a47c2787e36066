"""Many items through one worker: resumable, a few at a time, within a budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sized
from dataclasses import dataclass
from typing import Any, TypeVar

from rag.batch.budget import Budget, Price
from rag.batch.failures import explained, stops_all
from rag.batch.journal import Attempt, Journal
from rag.batch.workers import Result, Task, Workers
from rag.types import Usage

__all__ = ["Budget", "Outcome", "Price", "Progress", "now", "run_all"]

T = TypeVar("T")

# So many items after one another that fail with the same words are no bad luck.
SAME_FAILURES = 10


@dataclass(frozen=True, slots=True)
class Progress:
    """A run so far: `done` have an answer, `before` of them from an earlier run.

    `total` is None where the items were not counted beforehand; `usage` is that of the journal.
    """

    done: int
    failed: int
    cached: int
    before: int
    total: int | None
    usage: Usage
    cost: float | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended. Every item is done, failed or skipped (not reached).

    `cached` and `before` are among the done; `usage` and `cost` are those of the whole journal;
    `stopped` says why the run ended before its last item, if it did.
    """

    done: int
    failed: int
    skipped: int
    cached: int
    usage: Usage
    cost: float | None
    stopped: str | None
    before: int = 0


def run_all(  # noqa: PLR0913 - what to do, where to keep it, and within which bounds
    items: Iterable[tuple[str, T]],
    work: Callable[[T, int], dict[str, Any]],
    journal: Journal,
    *,
    jobs: int = 1,
    budget: Budget | None = None,
    retry_failed: bool = False,
    redo: Collection[str] = (),
    on_progress: Callable[[Progress], None] | None = None,
) -> Outcome:
    """Work on every item that `journal` has no line of, `jobs` at a time, each in a thread.

    `work(item, attempt)` gives the line's content; its "error", or an error that it raises, makes
    the item failed. Failed items of earlier runs are worked on again with `retry_failed` only,
    those of `redo` whatever became of them. An ID that comes twice is one item. A run stops early,
    and `Outcome.stopped` says so, when the budget is used up, at an error that would strike every
    item (`failures.stops_all`; the item gets no line), and when `SAME_FAILURES` items in a row
    failed alike. On KeyboardInterrupt what is done is kept, what is at work abandoned.

    Raises:
        BatchError: the journal cannot be written.
    """
    total = len(items) if isinstance(items, Sized) else None
    again = _Again(retry_failed, frozenset(redo))
    run = _Run(journal, budget or Budget(), again, total, on_progress)
    todo = run.wanted(items)
    workers = Workers(work, max(1, jobs))
    try:
        while workers.busy < workers.jobs and run.dispatch(todo, workers):
            pass
        while workers.busy:
            run.finish(workers.next())
            run.dispatch(todo, workers)
    except KeyboardInterrupt:
        for result in workers.finished():
            run.finish(result)
        raise
    finally:
        workers.stop()
    return run.outcome(todo)


@dataclass(frozen=True, slots=True)
class _Again:
    """Which items that have a line are worked on again."""

    failed: bool
    redo: frozenset[str]

    def wants(self, item_id: str, known: Attempt) -> bool:
        return item_id in self.redo or (known.failed and self.failed)


class _Run:
    """The counts of one run; only the thread that called `run_all` touches them."""

    def __init__(
        self,
        journal: Journal,
        budget: Budget,
        again: _Again,
        total: int | None,
        on_progress: Callable[[Progress], None] | None,
    ) -> None:
        self._journal = journal
        self._budget = budget
        self._again = again
        self._total = total
        self._on_progress = on_progress
        self._done = self._failed = self._cached = self._before = 0
        self._skipped = 0
        self._stopped: str | None = None
        self._alike: tuple[str, int] = ("", 0)

    def wanted(self, items: Iterable[tuple[str, T]]) -> Iterator[Task[T]]:
        """A task for each item that is to be worked on; the others are counted."""
        seen: set[str] = set()
        for item_id, item in items:
            if item_id in seen:
                continue
            seen.add(item_id)
            known = self._journal.attempts.get(item_id)
            if known is None or self._again.wants(item_id, known):
                yield Task(item_id, item, known.number + 1 if known else 1)
            elif known.failed:
                self._failed += 1
            else:
                self._done += 1
                self._before += 1
                self._cached += known.cached

    def dispatch(self, todo: Iterator[Task[T]], workers: Workers[T]) -> bool:
        """Begin the next item, if there is one and nothing speaks against it."""
        if self._stopped is not None:
            return False
        task = next(todo, None)
        if task is None:
            return False
        self._stopped = self._budget.used_up(self._journal.spent)
        if self._stopped is not None:
            self._skipped += 1
            return False
        workers.give(task)
        return True

    def finish(self, result: Result) -> None:
        """Write a result down."""
        line = result.line
        if result.error is not None:
            if not isinstance(result.error, Exception):
                raise result.error
            if stops_all(result.error):
                self._stopped = self._stopped or str(result.error)
                self._skipped += 1
                return
            line = {"answer": None, "error": explained(result.error)}
        known = {"id": result.id, "attempt": result.attempt}
        self._write({**known, **(line or {}), **known})

    def _write(self, line: dict[str, Any]) -> None:
        line.setdefault("at", now())
        line.setdefault("error", None)
        self._journal.append(line)
        attempt = self._journal.attempts[line["id"]]
        self._done += not attempt.failed
        self._failed += attempt.failed
        self._cached += attempt.cached
        self._count_alike(line["error"])
        self.report()

    def _count_alike(self, error: str | None) -> None:
        said, times = self._alike
        self._alike = ("", 0) if error is None else (error, times + 1 if error == said else 1)
        if error is not None and self._alike[1] >= SAME_FAILURES:
            self._stopped = self._stopped or (
                f"{SAME_FAILURES} items in a row failed in the same way: {error} The others were "
                "not begun."
            )

    def report(self) -> None:
        """Tell how far the run is."""
        if self._on_progress is not None:
            usage = self._journal.spent
            cost = self._budget.cost(usage)
            done, failed = self._done, self._failed
            progress = Progress(done, failed, self._cached, self._before, self._total, usage, cost)
            self._on_progress(progress)

    def outcome(self, todo: Iterator[Any]) -> Outcome:
        """The end; what was not begun is counted as skipped."""
        self._skipped += sum(1 for _ in todo)
        usage = self._journal.spent
        return Outcome(
            self._done,
            self._failed,
            self._skipped,
            self._cached,
            usage,
            self._budget.cost(usage),
            self._stopped,
            self._before,
        )


def now() -> str:
    """The time in ISO 8601, UTC: 2026-05-04T09:30:00Z."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
