"""`rag eval report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    run_dir: Annotated[
        Path, typer.Argument(metavar="RUN_DIR", help="The run's directory.", readable=False)
    ],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the page there, not to RUN_DIR/report.html."),
    ] = None,
    md: Annotated[
        bool,
        typer.Option("--md", help="Print a Markdown summary too, fit for a pull request."),
    ] = False,
) -> None:
    """Write a run as one HTML page that loads nothing: figures, metrics, every item.

    The same run gives the same page. A run that is still at work is shown as far as it has come.
    """
    from eval.metrics.summary import summarize
    from eval.report import markdown, page
    from eval.runs.directory import read_run, write_whole
    from rag.render import Screen

    run = read_run(run_dir, unfinished=True)
    summary = summarize(run.items).to_json()
    target = out or run_dir / "report.html"
    write_whole(target, [page.render(run.meta, run.items, summary)])
    Screen(stderr=md).line(f"The report of {len(run.items)} questions is in {target}.")
    if md:
        typer.echo(markdown.render(run.meta, run.items, summary, target.name), nl=False)
