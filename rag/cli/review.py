"""`rag review`: reviews of a paper from files, a response to each of their concerns."""

from __future__ import annotations

import json as json_module
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rag.cli.options import (
    NOT_ANSWERED,
    JsonOption,
    StoreOption,
    as_utf8,
    print_json,
    settings_for,
)
from rag.errors import UsageError

if TYPE_CHECKING:
    from rag.response.run import Summary

_ENDINGS = {".md": "Markdown", ".json": "JSON", ".csv": "CSV"}
# "1,3-5"; more digits are no item's number.
_ITEMS = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?")


def review(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Reviews: Markdown, text, or a conference site's JSON; '-': from a pipe.",
            readable=False,
        ),
    ],
    *,
    about: Annotated[
        str | None,
        typer.Option("--about", metavar="ID", help="The paper under review, if the index has it."),
    ] = None,
    only: Annotated[
        str | None,
        typer.Option("--only", metavar="N,M", help="Work on these items alone, done or not."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Write .md, .json or .csv instead of printing."),
    ] = None,
    csv: Annotated[bool, typer.Option("--csv", help="Print a table for a spreadsheet.")] = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Answer what a peer review asks, as far as the papers do. The same command resumes.

    Exits with 1 when an item failed or a file could not be read, with 3 when nothing is answered.
    """
    from rag.interrupt import leaving_at_once
    from rag.progress import bytes_bar, items_bar
    from rag.response.run import Request, run_review

    form = _form(out, json=json, csv=csv)
    if out is not None:
        _require_free(out)
    wanted = as_utf8(about) if about is not None else None
    request = Request(files, wanted, _numbers(only) if only is not None else frozenset())
    settings = settings_for(store)
    with (
        bytes_bar("Preparing the language model") as file_progress,
        items_bar("Answering") as progress,
        leaving_at_once("Interrupted. The same command again goes on from here.", progress.stop),
    ):
        summary = run_review(request, settings, progress, file_progress)
    _write(summary, form, out)
    _report(summary)
    _exit(summary)


def _form(out: Path | None, *, json: bool, csv: bool) -> str:
    """The ending that names the format: ".md", ".json" or ".csv"."""
    asked = [ending for ending, wanted in ((".json", json), (".csv", csv)) if wanted]
    if out is not None:
        asked.append(out.suffix.lower())
        if asked[-1] not in _ENDINGS:
            raise UsageError(f"--out {out}: its name must end with .md, .json or .csv.")
    if len(set(asked)) > 1:
        raise UsageError("Choose one format: --json, --csv, or the ending of --out.")
    return asked[0] if asked else ".md"


def _numbers(only: str) -> frozenset[int]:
    """Item numbers: 1,3-5 -> {1, 3, 4, 5}."""
    found: set[int] = set()
    for part in only.split(","):
        match = _ITEMS.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if not 1 <= first <= last:
            raise UsageError(f"--only {only!r}: give numbers of items, as in --only 2,5 or 3-7.")
        found.update(range(first, last + 1))
    return frozenset(found)


def _require_free(out: Path) -> None:
    """Refuse to write over anything but an earlier response, as it was written."""
    if not out.parent.is_dir():
        raise UsageError(f"--out {out}: there is no directory {out.parent}. Make it.")
    if not out.exists():
        return
    try:
        ours = out.is_file() and _is_response(out)
    except (OSError, ValueError, RecursionError):
        ours = False
    if not ours:
        raise UsageError(
            f"--out {out} is another file, or a response that was edited. Choose another name."
        )


def _is_response(path: Path) -> bool:
    from rag.response.document import is_unedited
    from rag.response.outcome import KEYS
    from rag.response.table import COLUMNS

    if path.stat().st_size == 0:
        return True
    ending = path.suffix.lower()
    with path.open(encoding="utf-8") as file:
        if ending == ".json":
            items = json_module.load(file)
            return isinstance(items, list) and all(
                isinstance(item, dict) and tuple(item) == KEYS for item in items
            )
        if ending == ".md":
            return is_unedited(file.read())
        return file.readline().rstrip("\n") == ",".join(COLUMNS)


def _write(summary: Summary, form: str, out: Path | None) -> None:
    from rag.batch.outputs import write_whole
    from rag.render import to_json
    from rag.response import document, outcome, table

    if form == ".json" and out is None:
        print_json(outcome.to_json(summary.files))
        return
    if form == ".json":
        text = to_json(outcome.to_json(summary.files)) + "\n"
    elif form == ".csv":
        text = "".join(table.rows(summary.files))
    else:
        text = document.markdown(summary.files, summary.papers, summary.about)
    if out is None:
        typer.echo(text, nl=False)
    else:
        write_whole(out.resolve(), [text], "What is done is kept: run the same command again.")


def _report(summary: Summary) -> None:
    from rag.render import Screen
    from rag.response.document import counted
    from rag.response.outcome import Status

    messages = Screen(stderr=True)
    for reason in summary.unread:
        messages.line(reason, "yellow")
    for note in summary.notes:
        messages.line(f"Note: {note}", "yellow")
    for file in summary.files:
        if not file.file.concerns:
            messages.line(f"{file.file.name} asks nothing: no question, no concern in it.")
        for response in file.responses:
            if response.status is Status.FAILED and response.line is not None:
                place = f"{file.file.name}, item {response.concern.item}"
                messages.line(f"Failed {place}: {response.line['error']}", "yellow")
    if summary.stopped is not None:
        messages.line(f"Stopped: {summary.stopped}", "red")
    responses = [response for file in summary.files for response in file.responses]
    messages.line(f"{counted(responses)}; {summary.seconds:.1f} s")


def _exit(summary: Summary) -> None:
    from rag.response.outcome import Status

    counts = summary.counts
    if summary.unread or summary.stopped is not None or counts[Status.FAILED]:
        raise typer.Exit(1)
    if counts.total() and not counts[Status.ANSWERED]:
        raise typer.Exit(NOT_ANSWERED)
