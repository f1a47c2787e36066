"""What the checks see of a question, and what they say about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from eval.questions.datasets import Question
from rag.types import Paper


class Severity(StrEnum):
    """An error makes a score wrong; a warning is for a person to look at."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to look at. `line` counts from 1; `id` is empty where the line has none."""

    line: int
    id: str
    severity: Severity
    rule: str
    message: str


@dataclass(frozen=True, slots=True)
class Entry:
    """A question, its line, and the papers of each gold group (none without a corpus)."""

    line: int
    question: Question
    papers: tuple[tuple[Paper, ...], ...] = ()

    @property
    def gold_papers(self) -> tuple[Paper, ...]:
        """Every gold paper once, in the order of the groups."""
        return tuple({paper.id: paper for group in self.papers for paper in group}.values())

    def error(self, rule: str, message: str) -> Finding:
        """What makes a score wrong."""
        return Finding(self.line, self.question.id, Severity.ERROR, rule, message)

    def warning(self, rule: str, message: str) -> Finding:
        """What may be meant so."""
        return Finding(self.line, self.question.id, Severity.WARNING, rule, message)


@dataclass(frozen=True, slots=True)
class Report:
    """Everything found, by line; `notes` say what could not be checked."""

    questions: int
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()

    def count(self, severity: Severity) -> int:
        """How many findings are of this severity."""
        return sum(finding.severity is severity for finding in self.findings)


def listed(items: Sequence[str], most: int = 5) -> str:
    """`a, b, c and 4 more`."""
    shown = ", ".join(items[:most])
    return f"{shown} and {len(items) - most} more" if len(items) > most else shown
