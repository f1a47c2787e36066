"""Commands about what the index holds: ingest, papers, show, doctor, index rebuild."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rag.cli.options import JsonOption, StoreOption, as_utf8, print_json, settings_for

if TYPE_CHECKING:
    from rag.types import Rejected


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

    settings = settings_for(store)
    with counter("Ingesting", "papers") as advance:
        summary = run(paths, settings.store, open_embedder(settings), advance)
    if json:
        print_json(render.ingest_json(summary))
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


def papers(store: StoreOption = None, json: JsonOption = False) -> None:
    """List every paper of the index."""
    from rag import render
    from rag.store import Store

    with Store.open(settings_for(store).store, None) as opened:
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
    from rag.store import Store

    with Store.open(settings_for(store).store, None) as opened:
        paper = opened.paper(as_utf8(paper_id))
    if json:
        print_json(render.paper_json(paper))
    else:
        render.Screen().paper(paper, original=original)


def doctor(store: StoreOption = None, json: JsonOption = False) -> None:
    """Tell what would be used, what is missing and how to mend it. Contacts nothing."""
    from rag import render
    from rag.doctor import diagnose

    found = diagnose(settings_for(store))
    if json:
        print_json(render.diagnosis_json(found))
    else:
        render.Screen().diagnosis(found)
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


def _report_rejected(rejected: tuple[Rejected, ...]) -> None:
    from rag.render import Screen

    messages = Screen(stderr=True)
    for item in rejected:
        place = f", record {item.position}" if item.position else ""
        messages.line(f"Rejected {item.source}{place}: {item.reason}", "yellow")
