"""The command that reads files into the index."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rag.cli.options import JsonOption, StoreOption, as_utf8, print_json, settings_for
from rag.errors import UsageError

if TYPE_CHECKING:
    from rag.ingest import Conflict, IngestSummary
    from rag.types import Rejected

# What a source's fields can be mapped to.
FIELDS = (
    "abstract", "title", "id", "authors", "year", "venue", "keywords", "doi", "arxiv", "url",
)  # fmt: skip


def ingest(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...", help="Files and folders; - is standard input.", readable=False
        ),
    ],
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            metavar="FIELD=NAME",
            help=f"What the files call a field: abstract=Summary. Fields: {', '.join(FIELDS)}.",
        ),
    ] = None,
    sync: Annotated[
        bool, typer.Option("--sync", help="Also remove papers that have left these files.")
    ] = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Read abstracts from files and folders into the index. Unchanged papers cost nothing."""
    from rag import render
    from rag.embed import open_embedder
    from rag.ingest import ingest as run
    from rag.progress import counter

    named = parsed(columns or [])
    settings = settings_for(store)
    with counter("Ingesting", "papers") as advance:
        embedder = open_embedder(settings)
        summary = run(paths, settings.store, embedder, advance, columns=named, sync=sync)
    if json:
        print_json(render.ingest_json(summary))
    else:
        typer.echo(_said(summary, settings.store))
    _report(summary.rejected, summary.conflicts, summary.notes)
    kept = summary.added + summary.updated + summary.unchanged + summary.duplicates
    if summary.unreadable or not kept:
        raise typer.Exit(1)


def parsed(columns: list[str]) -> dict[str, str]:
    """`["abstract=Summary"]` -> `{"abstract": "Summary"}`.

    Raises:
        UsageError: a field that we do not have, one given twice, or no name.
    """
    named: dict[str, str] = {}
    for given in columns:
        ours, equals, theirs = as_utf8(given).partition("=")
        ours, theirs = ours.strip().casefold(), theirs.strip()
        if not equals or not theirs or ours not in FIELDS or ours in named:
            what = "is given twice" if ours in named else "is no field with its name"
            raise UsageError(
                f"--map {given[:60]!r}: {what}. Write FIELD=NAME, as in abstract=Summary; fields "
                f"are {', '.join(FIELDS)}."
            )
        named[ours] = theirs
    return named


def _said(summary: IngestSummary, store: object) -> str:
    removed = f"{summary.removed} removed, " if summary.removed else ""
    return (
        f"{summary.added} added, {summary.updated} updated, {summary.unchanged} unchanged, "
        f"{summary.duplicates} duplicates, {removed}{len(summary.rejected)} rejected. "
        f"{store} holds {summary.papers} papers in {summary.chunks} passages."
    )


def _report(
    rejected: tuple[Rejected, ...], conflicts: tuple[Conflict, ...], notes: tuple[str, ...]
) -> None:
    from rag.render import Screen

    messages = Screen(stderr=True)
    for item in rejected:
        place = _place(item.source, item.line, item.position)
        messages.line(f"Rejected {place}: {item.reason}", "yellow")
    for conflict in conflicts:
        place = _place(conflict.source.file, conflict.line, conflict.source.position)
        messages.line(f"Conflict {place}: {conflict.reason}", "yellow")
    for note in notes:
        messages.line(f"Note: {note}", "yellow")


def _place(file: str, line: int, record: int) -> str:
    parts = [file]
    if line:
        parts.append(f"line {line}")
    if record:
        parts.append(f"record {record}")
    return ", ".join(parts)
