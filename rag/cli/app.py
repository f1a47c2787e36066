"""Every command of `rag`, in the order of its help."""

from __future__ import annotations

from typing import Annotated

import typer

from eval.cli import app as eval_app
from rag import __version__
from rag.cli import batch, chat, ingest, papers, questions, review

app = typer.Typer(
    name="rag",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Answers questions about paper abstracts; every statement cites the papers that say so.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
index_app = typer.Typer(help="Look after the index.", no_args_is_help=True, rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Print the version where it is asked for."""
    if version:
        typer.echo(f"rag {__version__}")
        raise typer.Exit


app.command()(ingest.ingest)
app.command()(questions.search)
app.command()(questions.ask)
app.command()(chat.chat)
app.add_typer(chat.sessions_app, name="sessions")
app.command()(review.review)
app.command()(batch.batch)
app.command("papers")(papers.papers)
app.command()(papers.show)
app.command()(papers.remove)
app.command()(papers.export)
app.command()(papers.doctor)
app.add_typer(index_app, name="index")
index_app.command()(papers.check)
index_app.command()(papers.rebuild)
app.add_typer(eval_app, name="eval")
