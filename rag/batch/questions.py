"""Questions to be answered in bulk: JSON lines, a table with a column `question`, or plain lines.

A line that holds no question is named with its number, and the rest is read all the same.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag.answer import Turn
from rag.errors import ReadError, UsageError
from rag.files import numbered_lines, read_text
from rag.retrieve import checked

STANDARD_INPUT = "-"
COLUMN = "question"
DELIMITERS = ",;\t|"
_JSON_LINES = (".jsonl", ".ndjson")
_TABLES = (".csv", ".tsv")
# All that a row of empty cells holds.
_EMPTY = f'{DELIMITERS}" '
# Parts the cells of a table of one column: no text holds it, so that commas remain commas.
_NOTHING = "\x1f"


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of a file; `line` counts from 1."""

    id: str
    question: str
    history: tuple[Turn, ...]
    line: int


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that holds no question, and why."""

    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class Questions:
    """What a file asks, in its order, and its bad lines. Equal IDs are equal questions."""

    asked: tuple[Asked, ...]
    bad: tuple[BadLine, ...]

    @property
    def distinct(self) -> list[Asked]:
        """Each question once, where it stands first."""
        firsts: dict[str, Asked] = {}
        for asked in self.asked:
            firsts.setdefault(asked.id, asked)
        return list(firsts.values())


# A line's number, and its ID, question and history as they were found, or what is wrong with it.
_Row = tuple[int, tuple[Any, Any, Any] | ValueError]


def read_questions(path: Path) -> Questions:
    """Read the questions of a file; the path `-` is standard input.

    A question without an ID gets one from its content, so that it stays the same when lines move.
    A question that stands twice is one; an ID that stands for two questions is a bad line.

    Raises:
        UsageError: it cannot be read, is no text, or holds no question.
    """
    name = "Standard input" if str(path) == STANDARD_INPUT else str(path)
    questions = _gathered(_rows(path.suffix.lower(), _text(path, name), name))
    if not questions.asked:
        first = (
            f" Line {bad.line}: {bad.reason}" if (bad := next(iter(questions.bad), None)) else ""
        )
        raise UsageError(
            f"{name} holds no question.{first} Give one question a line, JSON objects with a field "
            "`question`, or CSV with a column `question`."
        )
    return questions


def _text(path: Path, name: str) -> str:
    read: Callable[[], bytes] = path.read_bytes
    if str(path) == STANDARD_INPUT:
        if sys.stdin is None or sys.stdin.isatty():
            raise UsageError("Nothing is piped in. Name a file of questions, or pipe one in.")
        read = sys.stdin.buffer.read
    try:
        return read_text(name, read)
    except ReadError as error:
        raise UsageError(str(error)) from error


def _rows(suffix: str, text: str, name: str) -> Iterator[_Row]:
    """Rows in the form that the file's name tells; where it tells none, its first line does."""
    # Not stripped: a table may begin with a tab, where its first column has no name.
    first = next((line for _, line in numbered_lines(text) if line.strip(_EMPTY)), "")
    if suffix in _TABLES:
        delimiter = _delimiter(first)
        if delimiter is None:
            raise UsageError(
                f"{name} has no column `{COLUMN}`: its first line is {first[:200]!r}. Name the "
                "column of the questions so."
            )
        return _table(text, delimiter)
    if suffix in _JSON_LINES or _is(dict, first):
        return _json_lines(text)
    if first.lstrip().startswith("[") and _is(list, text):
        raise UsageError(f"{name} is one JSON array. Write one object a line instead.")
    delimiter = _delimiter(first)
    return _lines(text) if delimiter is None else _table(text, delimiter)


def _delimiter(header: str) -> str | None:
    """What parts a header's cells, one of which is `question`; None where none is."""
    alone = False
    for delimiter in DELIMITERS:
        try:
            cells = next(csv.reader([header], delimiter=delimiter), [])
        except csv.Error:  # a cell longer than a table may have
            return None
        if COLUMN in (cell.strip().casefold() for cell in cells):
            if len(cells) > 1:
                return delimiter
            alone = True
    return _NOTHING if alone else None


def _is(kind: type, text: str) -> bool:
    """Whether `text` is JSON of this kind."""
    try:
        return isinstance(json.loads(text), kind)
    except (ValueError, RecursionError):
        return False


def _lines(text: str) -> Iterator[_Row]:
    return ((number, (None, line, None)) for number, line in numbered_lines(text))


def _json_lines(text: str) -> Iterator[_Row]:
    for number, line in numbered_lines(text):
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            yield number, ValueError(f"it is not JSON ({error})")
            continue
        if isinstance(found, dict):
            yield number, (found.get("id"), found.get(COLUMN), found.get("history"))
        else:
            yield number, ValueError("it is no JSON object")


def _table(text: str, delimiter: str) -> Iterator[_Row]:
    """Rows below the header; a row's number is that of the line on which it begins."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        rows = (row for row in reader if any(cell.strip() for cell in row))
        header = [cell.strip().casefold() for cell in next(rows, ())]
    except csv.Error as error:
        raise UsageError(
            f"The first row of the questions is no row of a table: {error}."
        ) from error
    if COLUMN not in header:  # a cell of the first line goes on in the next
        raise UsageError(f"The first row of the questions has no cell that is `{COLUMN}` alone.")
    question, name = header.index(COLUMN), header.index("id") if "id" in header else None
    while True:
        number = reader.line_num + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            yield number, ValueError(f"it is no row of a table ({error})")
            continue
        if row is None:
            return
        if len(row) > len(header):
            # As of a question with a comma and without quotes, which must not be cut there.
            yield number, ValueError("it has more cells than the header; quote the question")
        elif any(cell.strip() for cell in row):
            cells = [*row, *[""] * (len(header) - len(row))]
            yield number, (cells[name] if name is not None else None, cells[question], None)


def _gathered(rows: Iterator[_Row]) -> Questions:
    asked: list[Asked] = []
    bad: list[BadLine] = []
    known: dict[str, Asked] = {}
    for number, found in rows:
        try:
            if isinstance(found, ValueError):
                raise found
            item = _asked(number, *found)
            same = known.setdefault(item.id, item)
            if (same.question, same.history) != (item.question, item.history):
                raise ValueError(
                    f"the ID {item.id!r} stands for another question on line {same.line}"
                )
        except (ValueError, UsageError) as error:
            bad.append(BadLine(number, _sentence(str(error))))
        else:
            asked.append(item)
    return Questions(tuple(asked), tuple(bad))


def _asked(number: int, given: Any, question: Any, history: Any) -> Asked:
    if question is None:
        raise ValueError(f"it has no field {COLUMN!r}")
    if not isinstance(question, str):
        raise ValueError(f"its {COLUMN!r} is no text")
    text, turns = checked(question), _turns(history)
    return Asked(_identifier(given, text, turns), text, turns, number)


def _turns(history: Any) -> tuple[Turn, ...]:
    if history is None:
        return ()
    try:
        turns = tuple(Turn(turn["question"], turn["answer"]) for turn in history)
    except (TypeError, KeyError) as error:
        raise ValueError("its 'history' is no list of {question, answer}") from error
    if not all(isinstance(t.question, str) and isinstance(t.answer, str) for t in turns):
        raise ValueError("its 'history' holds what is no text")
    return turns


def _identifier(given: Any, question: str, history: tuple[Turn, ...]) -> str:
    """The ID given, as text; else one of the content: `q-` and twelve hexadecimal digits."""
    if isinstance(given, str | int | float) and not isinstance(given, bool) and str(given).strip():
        return str(given).strip()
    if given not in (None, ""):
        raise ValueError("its 'id' is neither text nor a number")
    return f"q-{fingerprint(question, history)[:12]}"


def fingerprint(question: str, history: Sequence[Turn]) -> str:
    """What is asked, after which turns: 16 hexadecimal digits of SHA-256."""
    parts = [question, *(part for turn in history for part in (turn.question, turn.answer))]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."
