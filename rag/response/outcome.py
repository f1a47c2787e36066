"""What became of a review's concerns, and how that is told in words and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from rag.response.concerns import Concern, ReviewFile

Line = Mapping[str, Any]

# Of an item in JSON, in this order.
KEYS = (
    "review", "item", "section", "text", "start", "end", "kind", "answer", "closest", "error",
)  # fmt: skip


class Status(Enum):
    """What became of one concern; the value is its name in a spreadsheet."""

    ANSWERED = "answered"
    NOT_ANSWERED = "not answered by the papers"
    AUTHORS = "for the authors"
    FAILED = "failed"
    OPEN = "not worked on"


@dataclass(frozen=True, slots=True)
class Response:
    """A concern and its line of the journal; None where it was not worked on."""

    concern: Concern
    line: Line | None

    @property
    def status(self) -> Status:
        """What became of it."""
        if self.line is None:
            return Status.OPEN
        if self.line["error"] is not None:
            return Status.FAILED
        if self.line["answer"] is None:
            return Status.AUTHORS
        return Status.ANSWERED if self.line["answer"]["answered"] else Status.NOT_ANSWERED

    def cited_ids(self) -> Iterator[str]:
        """The papers that it cites, in that order, some perhaps twice."""
        answer = (self.line or {}).get("answer") or {}
        for statement in answer.get("statements", ()):
            yield from (citation["paper_id"] for citation in statement["citations"])

    def close_ids(self) -> Iterator[str]:
        """The papers that it names as close, best first."""
        return (close["paper_id"] for close in (self.line or {}).get("closest", ()))


@dataclass(frozen=True, slots=True)
class FileResponse:
    """The responses to one file, in the order of its concerns."""

    file: ReviewFile
    responses: tuple[Response, ...]


def to_json(files: Sequence[FileResponse]) -> list[dict[str, Any]]:
    """The contract of `rag review --json`; concerns not worked on are left out."""
    responses = (response for file in files for response in file.responses)
    return [_item(response.concern, response.line) for response in responses if response.line]


def _item(concern: Concern, line: Line) -> dict[str, Any]:
    values = (
        concern.review,
        concern.item,
        concern.section,
        concern.text,
        concern.start,
        concern.end,
        concern.kind.kind,
        line["answer"],
        line.get("closest", []),
        line["error"],
    )
    return dict(zip(KEYS, values, strict=True))
