"""Question sets and retrieval collections as files: one JSON object a line, qrels as TSV."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rag.answer import Turn
from rag.errors import ReadError
from rag.types import Paper

_PLACE = re.compile(r"(?P<file>.+):(?P<position>\d+)\Z")


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
class Collection:
    """A retrieval test collection: corpus file, queries by ID, judgements by query and paper ID."""

    corpus: Path
    queries: Mapping[str, str]
    qrels: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def read_questions(path: Path) -> list[Question]:
    """Read a question set.

    Raises:
        ReadError: a line is not JSON or lacks a field; the message names the line.
    """
    questions = []
    for number, line in _lines(path):
        try:
            questions.append(_question(json.loads(line)))
        except (ValueError, KeyError, TypeError, AttributeError, re.error) as error:
            raise _malformed(path, number, "a question", error) from error
    return questions


def read_collection(directory: Path) -> Collection:
    """Read `corpus.jsonl`, `queries.jsonl` and `qrels.tsv` of a directory.

    Raises:
        ReadError: a file is missing or malformed.
    """
    return Collection(
        directory / "corpus.jsonl",
        _read_queries(directory / "queries.jsonl"),
        _read_qrels(directory / "qrels.tsv"),
    )


def resolve_gold(question: Question, papers: Iterable[Paper]) -> list[set[str]]:
    """Each gold group as the IDs that papers have in the store."""
    papers = list(papers)
    return [
        {paper.id for paper in papers for wanted in group if _is(paper, wanted)}
        for group in question.gold
    ]


def _is(paper: Paper, wanted: str) -> bool:
    place = _PLACE.match(wanted)
    if paper.id == wanted or place is None:
        return paper.id == wanted
    return any(
        Path(source.file).name.startswith(place["file"])
        and source.position == int(place["position"])
        for source in paper.sources
    )


def _question(raw: Mapping[str, Any]) -> Question:
    patterns = [*raw.get("must_include", ()), *raw.get("must_not_include", ())]
    for pattern in patterns:
        re.compile(pattern)
    return Question(
        id=str(raw["id"]),
        kind=str(raw["kind"]),
        question=str(raw["question"]),
        gold=tuple(tuple(group) for group in raw.get("gold", ())),
        must_include=tuple(raw.get("must_include", ())),
        must_not_include=tuple(raw.get("must_not_include", ())),
        history=tuple(Turn(t["question"], t["answer"]) for t in raw.get("history", ())),
        note=str(raw.get("note", "")),
    )


def _read_queries(path: Path) -> dict[str, str]:
    queries: dict[str, str] = {}
    for number, line in _lines(path):
        try:
            query = json.loads(line)
            queries[str(query["id"])] = str(query["text"])
        except (ValueError, KeyError, TypeError) as error:
            raise _malformed(path, number, "a query", error) from error
    return queries


def _read_qrels(path: Path) -> dict[str, dict[str, int]]:
    qrels: dict[str, dict[str, int]] = {}
    for number, line in list(_lines(path))[1:]:
        try:
            query, paper, score = line.split("\t")
            qrels.setdefault(query, {})[paper] = int(float(score))
        except ValueError as error:
            raise _malformed(path, number, "a judgement", error) from error
    return qrels


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Lines that hold anything, with their numbers from 1."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ReadError(f"{path} cannot be read: {error}. Check the path.") from error
    # Not splitlines: JSON may hold U+2028 and its like inside a string.
    return ((n, line) for n, line in enumerate(text.split("\n"), start=1) if line.strip())


def _malformed(path: Path, number: int, what: str, error: Exception) -> ReadError:
    return ReadError(f"{path}, line {number}: not {what} ({error!r}). Correct the line.")
