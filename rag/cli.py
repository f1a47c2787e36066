"""The command line: options to settings, the library's data to the screen, errors to exit codes."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag import __version__
from rag.config import Settings, load_settings
from rag.errors import RagError, UsageError

if TYPE_CHECKING:
    from rag.types import Rejected

# Exit codes beside 0 (done), 1 (failed) and 2 (usage).
NOT_ANSWERED = 3
INTERRUPTED = 130

app = typer.Typer(
    name="rag",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Answers questions about paper abstracts; every statement cites the papers that say so.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
index_app = typer.Typer(help="Look after the index.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(index_app, name="index")

StoreOption = Annotated[
    Path | None,
    # Not checked by Typer, here or for PATH: the library says what to do, and reads the rest.
    typer.Option(
        "--store",
        metavar="DIR",
        help="Directory of the index.",
        envvar="RAG_STORE",
        readable=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Print the version where it is asked for."""
    if version:
        typer.echo(f"rag {__version__}")
        raise typer.Exit


@app.command()
def ingest(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="Files and folders.", readable=False)
    ],
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Read abstracts from files and folders into the index. Unchanged papers cost nothing."""
    from rag import render
    from rag.embed import open_embedder
    from rag.ingest import ingest as run
    from rag.progress import counter

    settings = _settings(store)
    with counter("Ingesting", "papers") as advance:
        summary = run(paths, settings.store, open_embedder(settings), advance)
    if json:
        _print_json(render.ingest_json(summary))
    else:
        typer.echo(
            f"{summary.added} added, {summary.updated} updated, {summary.unchanged} unchanged, "
            f"{summary.duplicates} duplicates, {len(summary.rejected)} rejected. "
            f"{settings.store} holds {summary.papers} papers in {summary.chunks} passages."
        )
    _report_rejected(summary.rejected)
    kept = summary.added + summary.updated + summary.unchanged + summary.duplicates
    if summary.unreadable or not kept:
        raise typer.Exit(1)


@app.command()
def search(
    query: Annotated[
        str | None, typer.Argument(help="What to look for; '-' or none: from a pipe.")
    ] = None,
    k: Annotated[int, typer.Option("--k", "-k", min=1, max=1000, help="How many papers.")] = 10,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Find the papers closest to a query, with the sentences that match."""
    from rag import render
    from rag.session import open_search

    text = _text(query)
    with open_search(_settings(store)) as opened:
        hits = opened.retriever.retrieve(text, k).hits
    if json:
        _print_json(render.hits_json(hits))
    else:
        render.Screen().hits(hits)


@app.command()
def ask(
    question: Annotated[
        str | None, typer.Argument(help="The question; '-' or none: from a pipe.")
    ] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Answer a question from the papers. Exits with 3 when the papers do not answer it."""
    from rag import render
    from rag.interrupt import leaving_at_once
    from rag.progress import bytes_bar, spinner
    from rag.retrieve import checked
    from rag.session import open_answerer

    text = checked(_text(question))
    settings = _settings(store)
    screen, messages = render.Screen(), render.Screen(stderr=True)
    with (
        leaving_at_once(),
        bytes_bar("Preparing the language model") as progress,
        open_answerer(settings, progress) as answerer,
        spinner("Reading the papers") as stop,
    ):

        def show(statement: Any) -> None:
            stop()
            screen.statement(statement)

        answer = answerer.answer(text, on_statement=None if json else show)
    for note in answer.notes:
        messages.line(f"Note: {note}", "yellow")
    if json:
        _print_json(render.answer_json(answer))
    else:
        screen.answer_end(answer)
    if not answer.answered:
        raise typer.Exit(NOT_ANSWERED)


@app.command()
def papers(store: StoreOption = None, json: JsonOption = False) -> None:
    """List every paper of the index."""
    from rag import render
    from rag.store import Store

    with Store.open(_settings(store).store, None) as opened:
        found = list(opened.papers())
    if json:
        _print_json([render.paper_json(paper, whole=False) for paper in found])
    else:
        render.Screen().papers(found)


@app.command()
def show(
    paper_id: Annotated[str, typer.Argument(metavar="ID", help="The paper's ID.")],
    original: Annotated[
        bool, typer.Option("--original", help="The abstract as its source has it.")
    ] = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Show one paper: title, sources, metadata and abstract."""
    from rag import render
    from rag.store import Store

    with Store.open(_settings(store).store, None) as opened:
        paper = opened.paper(_as_utf8(paper_id))
    if json:
        _print_json(render.paper_json(paper))
    else:
        render.Screen().paper(paper, original=original)


@app.command()
def doctor(store: StoreOption = None, json: JsonOption = False) -> None:
    """Tell what would be used, what is missing and how to mend it. Contacts nothing."""
    from rag import render
    from rag.doctor import diagnose

    found = diagnose(_settings(store))
    if json:
        _print_json(render.diagnosis_json(found))
    else:
        render.Screen().diagnosis(found)
    if not found.ok:
        raise typer.Exit(1)


@index_app.command("rebuild")
def index_rebuild(store: StoreOption = None, json: JsonOption = False) -> None:
    """Make the index anew from the papers it keeps.

    For an index that is damaged, or was made with another embedding model.
    """
    from dataclasses import asdict

    from rag.embed import open_embedder
    from rag.progress import counter
    from rag.rebuild import rebuild

    settings = _settings(store)
    with counter("Rebuilding", "papers") as advance:
        summary = rebuild(settings.store, open_embedder(settings), advance)
    if json:
        _print_json(asdict(summary))
    else:
        typer.echo(
            f"Rebuilt {settings.store}: {summary.papers} papers in {summary.chunks} passages, "
            f"{summary.embedded} papers embedded again."
        )


def main() -> None:
    """Run the command line and leave with its exit code; no error ends in a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(_run())


def _run() -> int:
    try:
        return _invoke()
    except RagError as error:
        return _fail(str(error), error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        return _fail("Interrupted.", INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output has gone, as `head` does: say nothing more to it, nor at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            return _fail("There is no space left to write to. Free some, then run it again.", 1)
        return _unexpected(error)


def _invoke() -> int:
    if sys.stdout is None:
        raise RagError("Standard output is closed. Send it somewhere, to /dev/null for nothing.")
    try:
        code = app(prog_name="rag", standalone_mode=False)
    except SystemExit as leaving:
        if isinstance(leaving.__context__, BrokenPipeError):  # how typer and rich leave it
            raise leaving.__context__ from None
        raise
    if code == INTERRUPTED:  # how typer returns from Ctrl-C
        raise KeyboardInterrupt
    if sys.stdout is not None:
        sys.stdout.flush()
    return code if isinstance(code, int) else 0


def _unexpected(error: Exception) -> int:
    if hasattr(error, "show") and hasattr(error, "exit_code"):  # click's own usage errors
        error.show()
        return int(error.exit_code)
    from rag.crash import record

    return _fail(f"Internal error: {type(error).__name__}: {error}. {record(error)}", 1)


def _fail(message: str, code: int) -> int:
    from rag.render import Screen

    Screen(stderr=True).line(message, "red")
    return code


def _settings(store: Path | None) -> Settings:
    return load_settings(overrides={"store": store} if store else None)


def _print_json(value: Any) -> None:
    from rag.render import to_json

    # Other programs read JSON as UTF-8, whatever this terminal's encoding is.
    encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower()
    typer.echo(to_json(value, ascii_only=encoding.replace("-", "") != "utf8"))


def _text(argument: str | None) -> str:
    """The argument, or standard input where it is a pipe."""
    if argument is not None and argument != "-":
        return _as_utf8(argument)
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError('Nothing to look for. Give it in quotes, or through a pipe: rag ask "..."')
    return sys.stdin.buffer.read(1_000_000).decode("utf-8", errors="replace")


def _as_utf8(argument: str) -> str:
    """The argument, where Python could not decode its bytes by the locale: as UTF-8."""
    try:
        argument.encode("utf-8")
    except UnicodeEncodeError:
        return os.fsencode(argument).decode("utf-8", "replace")
    return argument


def _report_rejected(rejected: tuple[Rejected, ...]) -> None:
    from rag.render import Screen

    messages = Screen(stderr=True)
    for item in rejected:
        place = f", record {item.position}" if item.position else ""
        messages.line(f"Rejected {item.source}{place}: {item.reason}", "yellow")
