"""Question sets as files: one JSON object a line, or CSV."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from eval.lines import read_lines
from eval.questions.fields import UNLABELLED, checked_fields, doubtful_kind, unknown_fields
from rag.answer import Turn
from rag.batch.questions import read_questions as read_bulk
from rag.errors import ReadError

TABLES = (".csv", ".tsv")


@dataclass(frozen=True, slots=True)
class Question:
    """A question with what a right answer cites and says.

    `gold` are groups of alternatives, each a paper ID or `FILE:POSITION` (the start of a file's
    name and the record in it, from 1); every group must be cited. `must_include` and
    `must_not_include` are regular expressions: case is ignored, a dot matches line ends.
    """

    id: str
    kind: str
    question: str
    gold: tuple[tuple[str, ...], ...] = ()
    must_include: tuple[str, ...] = ()
    must_not_include: tuple[str, ...] = ()
    history: tuple[Turn, ...] = ()
    note: str = ""

    @property
    def answerable(self) -> bool:
        """Whether the papers answer it."""
        return self.kind != "unanswerable"


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a line, from 1; `lost` where no question came of it."""

    line: int
    message: str
    lost: bool = True


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """The questions of the file `name` in order, the line of each, and what is wrong with any.

    `fingerprint` stands for all that can change a result: notes, blanks and lost lines do not.
    """

    questions: tuple[Question, ...]
    problems: tuple[Problem, ...] = ()
    lines: tuple[int, ...] = ()
    name: str = ""

    @property
    def fingerprint(self) -> str:
        """SHA-256 in hexadecimal."""
        digest = hashlib.sha256()
        for question in self.questions:
            values = {**asdict(question), "history": _turns(question)}
            del values["note"]
            digest.update(json.dumps(values, sort_keys=True).encode() + b"\n")
        return digest.hexdigest()

    def first(self, n: int) -> QuestionSet:
        """The same with no more than `n` questions."""
        return replace(self, questions=self.questions[:n], lines=self.lines[:n])

    @property
    def lost(self) -> int:
        """How many lines gave no question."""
        return sum(problem.lost for problem in self.problems)


def read_questions(path: Path) -> QuestionSet:
    """Read a question set: JSON lines, or CSV with a column `question` and, if it likes, `id`.

    A line that is no question becomes a problem, and the rest is read all the same. Questions of a
    CSV file are of the kind "unlabelled": nothing is expected of their answers.

    Raises:
        ReadError, UsageError: the file cannot be read, is no text, or holds no question at all.
    """
    table = path.suffix.lower() in TABLES
    found = _read_table(path) if table else _gathered(_json_rows(read_lines(path)))
    if not found.questions:
        first = f" Line {p.line}: {p.message}." if (p := next(iter(found.problems), None)) else ""
        raise ReadError(
            f"{path} holds no question.{first} Give one JSON object a line with at least "
            '{"id", "kind", "question"}, or CSV with a column `question`.'
        )
    return replace(found, name=path.name)


def question_json(question: Question) -> dict[str, Any]:
    """A question as a line of a question set has it; without the fields that say nothing."""
    values = {**asdict(question), "history": _turns(question)}
    return {name: value for name, value in values.items() if value not in ((), [], "")}


def _turns(question: Question) -> list[dict[str, str]]:
    return [{"question": turn.question, "answer": turn.answer} for turn in question.history]


def _read_table(path: Path) -> QuestionSet:
    found = read_bulk(path)
    first_lines: dict[str, int] = {}
    problems = [Problem(bad.line, bad.reason.rstrip(".")) for bad in found.bad]
    for asked in found.asked:
        first = first_lines.setdefault(asked.id, asked.line)
        if first != asked.line:
            said = f"the question stands in line {first} too, and is asked once"
            problems.append(Problem(asked.line, said, lost=False))
    return QuestionSet(
        tuple(Question(asked.id, UNLABELLED, asked.question) for asked in found.distinct),
        tuple(sorted(problems, key=lambda problem: problem.line)),
        tuple(first_lines.values()),
    )


# A line's number from 1 and what it holds, or what is wrong with it.
_Row = tuple[int, object | ValueError]


def _json_rows(lines: Iterable[tuple[int, str]]) -> Iterator[_Row]:
    for number, line in lines:
        try:
            yield number, json.loads(line)
        except (ValueError, RecursionError) as error:
            reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
            yield number, ValueError(f"it is not JSON ({reason})")


def _gathered(rows: Iterable[_Row]) -> QuestionSet:
    found: list[Question] = []
    problems: list[Problem] = []
    first_lines: dict[str, int] = {}
    unknown: dict[str, Problem] = {}
    for number, raw in rows:
        try:
            question = _question(raw, first_lines)
        except ValueError as error:
            problems.append(Problem(number, str(error)))
            continue
        first_lines[question.id] = number
        found.append(question)
        if (doubt := doubtful_kind(question.kind)) is not None:
            problems.append(Problem(number, doubt, lost=False))
        # A field is named where it first stands: every line may have it.
        for name, said in unknown_fields(raw if isinstance(raw, dict) else {}).items():
            unknown.setdefault(name, Problem(number, said, lost=False))
    problems += unknown.values()
    ordered = tuple(sorted(problems, key=lambda p: p.line))
    return QuestionSet(tuple(found), ordered, tuple(first_lines.values()))


def _question(raw: object, first_lines: Mapping[str, int]) -> Question:
    if isinstance(raw, ValueError):
        raise raw
    question = Question(**checked_fields(raw))
    if question.id in first_lines:
        raise ValueError(f"the ID {question.id!r} stands in line {first_lines[question.id]} too")
    return question
