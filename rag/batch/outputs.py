"""Lines of results as a table for a spreadsheet, or as Markdown to be read."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rag import markup
from rag.errors import BatchError
from rag.files import replace_text
from rag.markup import escaped, marker
from rag.render import NOT_ANSWERED
from rag.text import visible

Line = Mapping[str, Any]

COLUMNS = ("id", "question", "answered", "confidence", "text", "cited", "quotes", "error")
# Between the IDs of a cell, and between its quotes.
BETWEEN_IDS, BETWEEN_QUOTES = "; ", " | "

# A spreadsheet computes cells that begin so, full-width forms too, and may send them elsewhere:
# https://owasp.org/www-community/attacks/CSV_Injection
_FORMULA = re.compile(r"\s*[=+\-@＝＋－＠]")

# Closest papers shown where the papers do not answer.
CLOSEST = 3


def write_csv(path: Path, lines: Iterable[Line]) -> None:
    """Write one row for each line, under `COLUMNS`.

    Raises:
        BatchError: the file cannot be written; what was there is as it was.
    """
    write_whole(path, _csv_rows(lines), _kept(path))


def write_markdown(path: Path, lines: Iterable[Line]) -> None:
    """Write each question with its statements, quotes and, without an answer, the closest papers.

    Raises:
        BatchError: the file cannot be written; what was there is as it was.
    """
    sections = ("\n\n".join(_section(line)) + "\n\n" for line in lines)
    write_whole(path, sections, _kept(path))


WRITERS: Mapping[str, Callable[[Path, Iterable[Line]], None]] = {
    ".csv": write_csv,
    ".md": write_markdown,
}


def cell(text: str) -> str:
    """Text that a spreadsheet shows and does not compute: `=1+1` -> `'=1+1`."""
    shown = visible(text)
    return f"'{shown}" if _FORMULA.match(shown) else shown


def _csv_rows(lines: Iterable[Line]) -> Iterator[str]:
    yield csv_row(COLUMNS)
    for line in lines:
        answer = line["answer"] or {}
        citations = [c for s in answer.get("statements", ()) for c in s["citations"]]
        cited = dict.fromkeys(citation["paper_id"] for citation in citations)
        quotes = dict.fromkeys(citation["quote"] for citation in citations)
        yield csv_row(
            (
                cell(line["id"]),
                cell(line["question"]),
                str(answer["answered"]).lower() if answer else "",
                str(answer.get("confidence", "")),
                cell(answer.get("text", "")),
                cell(BETWEEN_IDS.join(cited)),
                cell(BETWEEN_QUOTES.join(quotes)),
                cell(line["error"] or ""),
            )
        )


def csv_row(cells: Iterable[str]) -> str:
    """One row with its line end; see `cell` for what is to be put in."""
    row = io.StringIO()
    csv.writer(row, lineterminator="\n").writerow(cells)
    return row.getvalue()


def _section(line: Line) -> Iterator[str]:
    """The paragraphs of one question."""
    yield f"## {escaped(line['question'])}"
    answer = line["answer"]
    if answer is None:
        yield f"**Failed:** {escaped(line['error'] or '')}"
    elif answer["answered"]:
        for statement in answer["statements"]:
            cited = [citation["paper_id"] for citation in statement["citations"]]
            yield markup.statement(statement["text"], cited, supported=statement["supported"])
            for citation in statement["citations"]:
                yield f"> {escaped(citation['quote'])} {marker(citation['paper_id'])}"
    else:
        yield NOT_ANSWERED
        if answer["papers"]:
            rows = (
                f"- {escaped(paper['title'])} {marker(paper['paper_id'])}"
                for paper in answer["papers"][:CLOSEST]
            )
            yield "Closest papers:\n\n" + "\n".join(rows)


def write_whole(path: Path, parts: Iterable[str], kept: str) -> None:
    """Write a file; nobody ever sees half of it.

    Raises:
        BatchError: it cannot be written; `kept` tells there where the content is still to be had.
    """
    try:
        replace_text(path, parts)
    except OSError as error:
        raise BatchError(f"{path} cannot be written: {error.strerror or error}. {kept}") from error


def _kept(path: Path) -> str:
    return (
        f"The answers are kept in {path.name}.jsonl; run the same command again to write "
        f"{path.name} from them."
    )
