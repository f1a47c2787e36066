"""Progress on standard error, in a terminal only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol


@contextmanager
def counter(label: str, unit: str) -> Iterator[Callable[[int, int | None], None]]:
    """A bar for `(done, total)` with rate and time left; `total` may be unknown."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f} " + unit),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(label, total=None, rate="")

        def advance(done: int, total: int | None) -> None:
            speed = bar.tasks[0].speed if bar.tasks else None
            bar.update(task, completed=done, total=total, rate=f"{speed:.0f}/s" if speed else "")

        yield advance


@contextmanager
def items_bar(label: str) -> Iterator[ItemsBar]:
    """A bar for many items that each take a while: rate, failures and time left."""
    bar = ItemsBar(label)
    try:
        yield bar
    finally:
        bar.stop()


class ItemsBar:
    """Called with how far a run is; it appears with the first call."""

    # A long while to take the mean of: an item may take half a minute.
    PERIOD_SECONDS = 600.0

    def __init__(self, label: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        console = Console(stderr=True)
        self._label = label
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:.0f} of {task.fields[all]}"),
            TextColumn("{task.fields[rate]}"),
            TextColumn("{task.fields[failed]}"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
            speed_estimate_period=self.PERIOD_SECONDS,
        )

    def __call__(self, reached: Reached) -> None:
        """Show it; what was done before the run began does not count for its rate."""
        finished = reached.done + reached.failed
        if not self._bar.task_ids:
            self._bar.start()
            self._bar.add_task(
                self._label,
                total=reached.total,
                completed=max(0, finished - 1),
                all=reached.total or "?",
                rate="",
                failed="",
            )
        task = self._bar.tasks[0]
        self._bar.update(
            task.id,
            completed=finished,
            rate=_rate(task.speed),
            failed=f"{reached.failed} failed" if reached.failed else "",
        )

    def stop(self) -> None:
        """Give the terminal back; a second call does nothing."""
        self._bar.stop()


class Reached(Protocol):
    """How far a run of items is."""

    @property
    def done(self) -> int: ...  # noqa: D102

    @property
    def failed(self) -> int: ...  # noqa: D102

    @property
    def total(self) -> int | None: ...  # noqa: D102


def _rate(per_second: float | None) -> str:
    """`2.0/s`, `12 s each`; nothing as long as it is unknown."""
    if not per_second:
        return ""
    return f"{per_second:.1f}/s" if per_second >= 1 else f"{1 / per_second:.0f} s each"


@contextmanager
def bytes_bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """A bar for bytes that appears with the first report and goes when the work is done."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
    )
    bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)

    def advance(done: int, total: int) -> None:
        if not bar.task_ids:
            bar.start()
            bar.add_task(label, total=total)
        bar.update(bar.task_ids[0], completed=done, total=total)
        if done >= total:
            bar.stop()

    try:
        yield advance
    finally:
        bar.stop()


@contextmanager
def spinner(label: str) -> Iterator[Callable[[], None]]:
    """A sign of life until the returned function is called or the block ends."""
    from rich.console import Console

    console = Console(stderr=True)
    status = console.status(label) if console.is_terminal else None
    if status:
        status.start()

    def stop() -> None:
        if status:
            status.stop()

    try:
        yield stop
    finally:
        stop()
