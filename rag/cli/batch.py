"""`rag batch`: many questions from a file, their answers into a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rag.cli.options import JsonOption, StoreOption, print_json, settings_for

if TYPE_CHECKING:
    from rag.batch.run import Summary


def batch(
    questions: Annotated[
        Path,
        typer.Argument(
            metavar="QUESTIONS",
            help="JSON lines or CSV with `question`, or one question a line; '-': from a pipe.",
            readable=False,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option("--out", metavar="FILE", help="Where answers go: .jsonl, .csv or .md."),
    ],
    *,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", min=1, max=64, help="Questions at a time [1; at an endpoint 4]."),
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Ask again what failed before.")
    ] = False,
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", min=1, help="Stop after so many tokens.")
    ] = None,
    max_cost: Annotated[
        float | None,
        typer.Option("--max-cost", min=0.0, help="Stop after so much money; see `prices`."),
    ] = None,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Ask even what was answered before.")
    ] = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Answer the questions of a file. The same command again finishes what was interrupted.

    Exits with 1 when a question failed or was left.
    """
    from rag.batch.run import Request, run_batch
    from rag.interrupt import leaving_at_once
    from rag.progress import bytes_bar, items_bar
    from rag.text import visible

    request = Request(questions, out, jobs, retry_failed, max_tokens, max_cost, cached=not no_cache)
    settings = settings_for(store)
    kept = f"Interrupted. The same command again finishes {visible(str(out))}."
    with (
        bytes_bar("Preparing the language model") as file_progress,
        items_bar("Answering") as progress,
        leaving_at_once(kept, progress.stop),
    ):
        summary = run_batch(request, settings, progress, file_progress)
    _report(summary)
    if json:
        print_json(summary.to_json())
    if not summary.complete:
        raise typer.Exit(1)


def _report(summary: Summary) -> None:
    from rag.render import Screen

    messages, outcome = Screen(stderr=True), summary.outcome
    for note in summary.notes:
        messages.line(f"Note: {note}", "yellow")
    for bad in summary.bad:
        messages.line(f"Line {bad.line} is left out: {bad.reason}", "yellow")
    for name, error in summary.failures:
        messages.line(f"Failed {name}: {error}", "yellow")
    if outcome.failed > len(summary.failures):
        messages.line(f"and {outcome.failed - len(summary.failures)} more.", "yellow")
    if outcome.failed:
        messages.line("With --retry-failed the same command tries those again.")
    if outcome.stopped is not None:
        messages.line(f"Stopped: {outcome.stopped}", "red")
    messages.line(_counts(summary))


def _counts(summary: Summary) -> str:
    """`3 done (1 before), 1 failed, 0 skipped, 2 cached, 1,860 tokens, 4.2 s: answers.csv`."""
    outcome = summary.outcome
    before = f" ({outcome.before} before)" if outcome.before else ""
    cost = f" for {outcome.cost:.4g}" if outcome.cost is not None else ""
    tokens = outcome.usage.prompt_tokens + outcome.usage.completion_tokens
    unread = f", {len(summary.bad)} unreadable" if summary.bad else ""
    return (
        f"{outcome.done} done{before}, {outcome.failed} failed{unread}, {outcome.skipped} skipped, "
        f"{outcome.cached} cached, {tokens:,} tokens{cost}, {summary.seconds:.1f} s: {summary.out}"
    )
