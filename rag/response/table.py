"""Responses as a table for a spreadsheet: one row for each concern."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rag.batch.outputs import BETWEEN_IDS, BETWEEN_QUOTES, cell, csv_row
from rag.response.outcome import FileResponse, Response

COLUMNS = (
    "review", "item", "number", "section", "text", "start", "end", "kind", "reason", "status",
    "answer", "confidence", "cited", "quotes", "closest", "error",
)  # fmt: skip


def rows(files: Sequence[FileResponse]) -> Iterator[str]:
    """The header and every row, each with its line end."""
    yield csv_row(COLUMNS)
    for file in files:
        yield from map(_row, file.responses)


def _row(response: Response) -> str:
    concern, line = response.concern, response.line or {}
    answer = line.get("answer") or {}
    citations = [c for s in answer.get("statements", ()) for c in s["citations"]]
    texts = (
        concern.number or "",
        concern.section,
        concern.text,
        str(concern.start),
        str(concern.end),
        concern.kind.kind,
        concern.kind.reason,
        response.status.value,
        answer.get("text", ""),
        str(answer.get("confidence", "")),
        BETWEEN_IDS.join(dict.fromkeys(c["paper_id"] for c in citations)),
        BETWEEN_QUOTES.join(dict.fromkeys(c["quote"] for c in citations)),
        BETWEEN_IDS.join(close["paper_id"] for close in line.get("closest", ())),
        line.get("error") or "",
    )
    return csv_row((cell(concern.review), str(concern.item), *map(cell, texts)))
