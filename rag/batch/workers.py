"""Threads that work on a few items at a time."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")

# How often a waiting run looks up: Windows wakes no waiting thread for Ctrl-C.
WAKE_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Task(Generic[T]):
    """An item and which attempt at it."""

    id: str
    item: T
    attempt: int


@dataclass(frozen=True, slots=True)
class Result:
    """The line that a task gave, or its error."""

    id: str
    attempt: int
    line: dict[str, Any] | None
    error: BaseException | None = None


class Workers(Generic[T]):
    """Threads that are left behind when the run ends before they do: none is waited for."""

    def __init__(self, work: Callable[[T, int], dict[str, Any]], jobs: int) -> None:
        self.jobs = jobs
        self.busy = 0
        self._work = work
        self._tasks: queue.SimpleQueue[Task[T] | None] = queue.SimpleQueue()
        self._results: queue.SimpleQueue[Result] = queue.SimpleQueue()
        self._started = 0

    def give(self, task: Task[T]) -> None:
        """Begin a task; there are never more than `jobs`."""
        self.busy += 1
        if self._started < self.busy:
            self._started += 1
            name = f"batch-{self._started}"
            threading.Thread(target=self._serve, name=name, daemon=True).start()
        self._tasks.put(task)

    def next(self) -> Result:
        """The next result, waited for."""
        while True:
            try:
                result = self._results.get(timeout=WAKE_SECONDS)
            except queue.Empty:
                continue
            self.busy -= 1
            return result

    def finished(self) -> Iterator[Result]:
        """Results that are there already."""
        while not self._results.empty():
            yield self.next()

    def stop(self) -> None:
        """Let idle threads end; the others end after their task."""
        for _ in range(self._started):
            self._tasks.put(None)

    def _serve(self) -> None:
        while (task := self._tasks.get()) is not None:
            try:
                line = self._work(task.item, task.attempt)
                result = Result(task.id, task.attempt, line)
            except BaseException as error:  # whatever it is, the run must not wait for ever
                result = Result(task.id, task.attempt, None, error)
            self._results.put(result)
