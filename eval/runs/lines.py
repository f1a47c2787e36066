"""The items of a run, read from its two files of lines when they are asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, overload

from eval.items import Item
from eval.questions.datasets import Question
from eval.runs.shape import fault, question_fault
from rag.answer import Turn
from rag.errors import ReadError

RUN_AGAIN = (
    "Run the `rag eval answers` command of this run again: it keeps the answers that are there, "
    "and mends what can be mended."
)


class RunItems(Sequence[Item]):
    """Items in the order of the questions; a long run need not fit in memory.

    Of several results of a question the last counts. With `torn` a last line without an end, as
    that of a run at work, is overlooked.

    Raises:
        ReadError: a file or a line cannot be read, or a result is of no question.
    """

    def __init__(self, questions: Path, results: Path, *, torn: bool = False) -> None:
        self._questions, self._results = questions, results
        answered = dict(_places(results, ("answer", "error"), torn))
        asked = dict(_places(questions, ("kind", "question", "gold"), torn=False))
        # Where the line of each question begins, and that of its result.
        self._places = [(place, answered.get(name)) for name, place in asked.items()]
        strange = answered.keys() - asked.keys()
        if strange:
            raise ReadError(
                f"{results} has a result of {min(strange)!r}, which is no question of the run. "
                "Remove that line."
            )

    @property
    def reached(self) -> int:
        """How many questions have a result."""
        return sum(result is not None for _, result in self._places)

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> list[Item]: ...
    def __getitem__(self, index: int | slice) -> Item | list[Item]:
        if isinstance(index, slice):
            return list(self._read(self._places[index]))
        return next(self._read([self._places[index]]))

    def __iter__(self) -> Iterator[Item]:
        return self._read(self._places)

    def _read(self, places: Sequence[tuple[int, int | None]]) -> Iterator[Item]:
        with _opened(self._questions) as questions, _opened(self._results) as results:
            for asked, answered in places:
                question = self._question(questions, asked)
                yield _item(question, None if answered is None else self._result(results, answered))

    def _question(self, questions: BinaryIO, place: int) -> Any:
        question = _at(questions, place)
        if (problem := question_fault(question)) is not None:
            number = _number(questions, place)
            raise ReadError(
                f"{self._questions}, line {number}, is damaged ({problem}). {RUN_AGAIN}"
            )
        return question

    def _result(self, results: BinaryIO, place: int) -> Any:
        result = _at(results, place)
        if (problem := fault(result)) is not None:
            raise ReadError(
                f"{self._results}, line {_number(results, place)}, is not a result that a run "
                f"wrote ({problem}). Remove that line; the `rag eval answers` command of this run "
                "then asks its question again."
            )
        return result


def _at(file: BinaryIO, place: int) -> Any:
    file.seek(place)
    try:
        return json.loads(file.readline())
    except ValueError as error:
        raise ReadError(f"{file.name} was changed while it was read. Try again.") from error


def _number(file: BinaryIO, place: int) -> int:
    """The line that begins there, from 1."""
    file.seek(0)
    return file.read(place).count(b"\n") + 1


def _places(path: Path, needed: Sequence[str], torn: bool) -> Iterator[tuple[str, int]]:
    """(ID, where its line begins) of every line."""
    place = 0
    with _opened(path) as file:
        for number, line in enumerate(file, start=1):
            if torn and not line.endswith(b"\n"):
                return
            try:
                raw = json.loads(line)
                found = [raw[name] for name in ("id", *needed)]
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise ReadError(f"{path}, line {number}, is damaged. {RUN_AGAIN}") from error
            yield str(found[0]), place
            place += len(line)


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise ReadError(f"{path} cannot be read: {error.strerror}. {RUN_AGAIN}") from error


def _item(raw: Mapping[str, Any], result: Mapping[str, Any] | None) -> Item:
    question = Question(
        id=raw["id"],
        kind=raw["kind"],
        question=raw["question"],
        gold=tuple(tuple(group) for group in raw["gold"]),
        must_include=tuple(raw.get("must_include", ())),
        must_not_include=tuple(raw.get("must_not_include", ())),
        history=tuple(Turn(**turn) for turn in raw.get("history", ())),
        note=raw.get("note", ""),
    )
    return Item(question, tuple(frozenset(group) for group in question.gold), result)
