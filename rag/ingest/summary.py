"""What an ingest came to, and the part of it that a file repeats as long as it is unchanged."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from rag.types import Rejected, Source


@dataclass(frozen=True, slots=True)
class Conflict:
    """A record that bears what another, different paper bears; both are kept.

    `what` is shared: "ID a", "DOI 10.1/x", "arXiv ID 2301.00001". The record, at `source` and
    `line` (0 where unknown), is the paper `paper_id`; `other_id` was read first at `other`.
    """

    what: str
    paper_id: str
    source: Source
    line: int
    other_id: str
    other: Source

    @property
    def reason(self) -> str:
        """What happened and what to do, without the record's own place."""
        return (
            f"{self.what} is already that of {self.other.file}, record {self.other.position}, a "
            f"different paper ({self.other_id}). Both are kept, this one as {self.paper_id}; if "
            "they are one paper, remove one with `rag remove ID`."
        )


@dataclass(frozen=True, slots=True)
class IngestSummary:
    """What became of every record; each is counted once.

    `duplicates` are records of a paper that another place already has, the first time they are
    seen. `papers` and `chunks` are what the store holds afterwards. `unreadable` counts the given
    paths that could not be read or held no paper; `rejected` says why. `removed` are papers that
    left their source; `notes` say what was left undone, and why.
    """

    added: int
    updated: int
    unchanged: int
    duplicates: int
    rejected: tuple[Rejected, ...]
    papers: int
    chunks: int
    unreadable: int
    removed: int = 0
    conflicts: tuple[Conflict, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FileReport:
    """What one file came to: records that are papers, and those to report at every run."""

    records: int
    rejected: Sequence[Rejected]
    conflicts: Sequence[Conflict]

    @property
    def is_sound(self) -> bool:
        """Whether what is not in it has left the file: all of it was read, and papers were found.

        Where every record lacks an abstract, the file rather has another form than before.
        """
        return all(r.whole for r in self.rejected) and (self.records > 0 or not self.rejected)


# A report of more is not kept, and its file is read again every time.
MOST_REPORTED = 10_000


def to_text(report: FileReport) -> str:
    """The report as it is stored; empty where it is too long."""
    if len(report.rejected) + len(report.conflicts) > MOST_REPORTED:
        return ""
    rejected = [[r.position, r.reason, r.line, r.whole, r.id] for r in report.rejected]
    conflicts = [
        [c.what, c.paper_id, c.source.position, c.line, c.other_id, c.other.file, c.other.position]
        for c in report.conflicts
    ]
    value = {"records": report.records, "rejected": rejected, "conflicts": conflicts}
    return json.dumps(value, ensure_ascii=True)


def from_text(text: str, file: str) -> FileReport:
    """The report of `file` from its stored form."""
    value = json.loads(text)
    return FileReport(
        value["records"],
        [Rejected(file, *rejected) for rejected in value["rejected"]],
        [
            Conflict(what, paper_id, Source(file, position), line, other_id, Source(*other))
            for what, paper_id, position, line, other_id, *other in value["conflicts"]
        ],
    )
