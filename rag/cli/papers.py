"""Commands about what the index holds: papers, show, remove, export, doctor, index ..."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rag.cli.options import JsonOption, StoreOption, as_utf8, print_json, settings_for

if TYPE_CHECKING:
    from rag.removal import Removal

# Papers of a source that are listed before it is removed.
MOST_SHOWN = 20


def papers(store: StoreOption = None, json: JsonOption = False) -> None:
    """List every paper of the index."""
    from rag import render
    from rag.store import open_store

    with open_store(settings_for(store).store, None) as opened:
        found = list(opened.papers())
    if json:
        print_json([render.paper_json(paper, whole=False) for paper in found])
    else:
        render.Screen().papers(found)


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
    from rag.store import open_store

    with open_store(settings_for(store).store, None) as opened:
        paper = opened.paper(as_utf8(paper_id))
    if json:
        print_json(render.paper_json(paper))
    else:
        render.Screen().paper(paper, original=original)


def remove(
    paper_ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID...]", help="IDs of papers.")
    ] = None,
    source: Annotated[
        str | None,
        typer.Option("--source", metavar="FILE", help="What only this file has, and the file."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Remove papers, or a source with the papers that no other source has."""
    from rag.removal import plan
    from rag.removal import remove as run

    settings = settings_for(store)
    named = as_utf8(source) if source is not None else None
    found = plan(settings.store, [as_utf8(i) for i in paper_ids or ()], named)
    _show_removal(found)
    if not yes and _is_terminal() and not _confirmed("Remove?"):
        typer.echo("Nothing was removed.", err=True)
        raise typer.Exit(1)
    removed = run(settings.store, found)
    if json:
        ids = [paper.id for paper in found.papers]
        print_json({"removed": ids, "source": found.source, "kept": found.kept})
    else:
        typer.echo(f"{removed} removed from {settings.store}.")


def export(
    form: Annotated[str, typer.Option("--format", help="jsonl or bibtex.")] = "jsonl",
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Not to standard output.")
    ] = None,
    store: StoreOption = None,
) -> None:
    """Write every paper, so that ingesting the output gives the same papers again."""
    from rag.errors import RagError
    from rag.export import lines, write
    from rag.store import open_store

    settings = settings_for(store)
    with open_store(settings.store, None) as opened:
        if out is None:
            for line in lines(opened, form):
                typer.echo(line.encode("utf-8"))
            return
        try:
            count = write(out, lines(opened, form))
        except OSError as error:
            raise RagError(
                f"{out} cannot be written: {error.strerror or error}. Choose another with --out."
            ) from error
    typer.echo(f"{count} papers exported to {out}.", err=True)


def doctor(store: StoreOption = None, json: JsonOption = False) -> None:
    """Tell what would be used, what is missing and how to mend it.

    Contacts nothing but the store, if that is on a server.
    """
    from rag import render
    from rag.doctor import diagnose

    found = diagnose(settings_for(store))
    if json:
        print_json(render.diagnosis_json(found))
    else:
        render.Screen().diagnosis(found)
    if not found.ok:
        raise typer.Exit(1)


def check(
    full: Annotated[bool, typer.Option("--full", help="Ask for every vector.")] = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Tell whether the index is whole, and how to mend it. Changes nothing."""
    from dataclasses import asdict

    from rag.check import check, lines
    from rag.progress import counter
    from rag.render import Screen

    settings = settings_for(store)
    with counter("Checking", "vectors") as advance:
        found = check(settings.store, full=full, on_progress=advance)
    if json:
        print_json({"ok": found.ok, **asdict(found)})
    else:
        screen = Screen()
        for line, good in lines(found):
            screen.line(line, None if good else "red")
    if not found.ok:
        raise typer.Exit(1)


def rebuild(store: StoreOption = None, json: JsonOption = False) -> None:
    """Make the index anew from the papers it keeps.

    For an index that is damaged, or was made with another embedding model.
    """
    from dataclasses import asdict

    from rag.embed import open_embedder
    from rag.progress import counter
    from rag.rebuild import rebuild

    settings = settings_for(store)
    with counter("Rebuilding", "papers") as advance:
        summary = rebuild(settings.store, open_embedder(settings), advance)
    if json:
        print_json(asdict(summary))
    else:
        typer.echo(
            f"Rebuilt {settings.store}: {summary.papers} papers in {summary.chunks} passages, "
            f"{summary.embedded} papers embedded again."
        )


def _show_removal(found: Removal) -> None:
    from rag.render import Screen

    messages = Screen(stderr=True)
    if found.source is not None:
        kept = (
            f"; {found.kept} of its papers are in other sources too, and stay" if found.kept else ""
        )
        messages.line(f"Source {found.source}: {len(found.papers)} papers are in no other{kept}.")
    for paper in found.papers[:MOST_SHOWN]:
        messages.line(f"  {paper.id}  {paper.title}")
    if len(found.papers) > MOST_SHOWN:
        messages.line(f"  ... and {len(found.papers) - MOST_SHOWN} more")


def _confirmed(question: str) -> bool:
    # Not typer's: its question reaches standard output, which is for results.
    typer.echo(f"{question} [y/N] ", nl=False, err=True)
    return sys.stdin.readline().strip().casefold() in ("y", "yes")


def _is_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()
