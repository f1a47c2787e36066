"""`rag eval ...`: every command of the harness. Imports stay light: `rag --help` loads this."""

from __future__ import annotations

import typer

from eval.commands import answers, attribution, compare, lint, questions, report, retrieval

app = typer.Typer(
    help="Measure answers, retrieval and the verifier; compare runs; write reports.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command()(answers.answers)
app.command()(retrieval.retrieval)
app.command()(attribution.attribution)
app.command()(compare.compare)
app.command()(report.report)
app.command()(questions.questions)
app.command()(lint.lint)
