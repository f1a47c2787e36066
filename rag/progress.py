"""Progress on standard error, in a terminal only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


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
