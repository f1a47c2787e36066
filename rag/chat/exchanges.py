"""One question of a conversation with what became of it, and its form in a session file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from rag import render
from rag.errors import UsageError
from rag.filters import Filter, parse
from rag.followup import Mention, Turn
from rag.highlight import quotes
from rag.types import Answer, Citation, Hit, Paper, Source, Statement, Usage

# Closest papers that are shown where none answers.
CLOSEST = 3

_DAMAGED = "Its answer is damaged in the file of the session. /retry asks again."


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question and its answer; None where it failed (`error`) or was stopped before any.

    `condition` is the filter that was on; `unfinished` what was being written when it was stopped,
    unchecked. With `retry` it is the same question again as the one before it, which stays while
    it has the only whole answer. `spent` are all tokens that it cost, also where it was stopped.
    """

    question: str
    answer: Answer | None = None
    at: str = ""
    error: str = ""
    stopped: bool = False
    unfinished: str = ""
    condition: str = ""
    retry: bool = False
    spent: Usage = field(default_factory=Usage)

    @property
    def whole(self) -> bool:
        """Whether it came to an answer, and to its end."""
        return self.answer is not None and not self.stopped

    @property
    def halt(self) -> str:
        """How it is said that it was stopped."""
        begun = self.answer is not None or self.unfinished
        return "Stopped before the end." if begun else "Stopped, no answer."

    def turn(self) -> Turn | None:
        """What a follow-up may refer to; None where nothing came of the question."""
        if self.answer is None or (self.stopped and not self.answer.answered):
            return None
        said = [statement.text for statement in self.answer.statements if statement.supported]
        shown = tuple(Mention(paper.id, paper.title) for paper in self.shown_papers())
        text = " ".join(said) or render.NOT_ANSWERED
        answered = self.answer.answered
        return Turn(self.question, text, self.answer.asked, shown, answered)

    def shown_papers(self) -> list[Paper]:
        """The papers shown below the answer, in that order."""
        if self.answer is None:
            return []
        if not self.answer.answered:
            return list(self.answer.papers[:CLOSEST])
        papers = {paper.id: paper for paper in self.answer.papers}
        return [papers[paper_id] for paper_id in quotes(self.answer) if paper_id in papers]


@dataclass(slots=True)
class Past:
    """What a session holds: its exchanges, of which the first `forgotten` no longer count.

    `spent` are the tokens of all, also of those that others have taken the place of; `skipped`
    counts the records that were not understood.
    """

    exchanges: list[Exchange] = field(default_factory=list)
    forgotten: int = 0
    condition: Filter = field(default_factory=Filter)
    spent: Usage = field(default_factory=Usage)
    skipped: int = 0

    def add(self, exchange: Exchange) -> None:
        """Put an exchange behind the others; one that asks again in the place of the last.

        A whole answer gives way to another whole one alone.
        """
        self.spent += exchange.spent
        beside = exchange.retry and len(self.exchanges) > self.forgotten
        if beside and not self.exchanges[-1].whole:
            beside = self.exchanges.pop().retry
        if beside and exchange.whole:
            self.exchanges.pop()
            beside = False
        self.exchanges.append(replace(exchange, retry=beside))


def replay(records: Iterable[Mapping[str, Any]]) -> Past:
    """What the lines of a session file amount to; one that is not understood is passed over.

    A question without an answer was stopped by the end of the process.
    """
    past = Past()
    waiting: Exchange | None = None
    for record in records:
        if waiting is not None and record.get("type") != "answer":
            past.add(waiting)
            waiting = None
        # Edited by hand, or damaged.
        try:
            waiting = _take_up(record, past)
        except (ValueError, TypeError, KeyError, AttributeError, UsageError):
            past.skipped += 1
            if waiting is not None:
                past.add(replace(waiting, stopped=False, error=_DAMAGED))
                waiting = None
    if waiting is not None:
        past.add(waiting)
    return past


def _take_up(record: Mapping[str, Any], past: Past) -> Exchange | None:
    """The exchange of a question, which goes by the board when its answer comes."""
    kind = record.get("type")
    if kind == "question":
        return Exchange(
            question=str(record["question"]),
            at=str(record.get("at", "")),
            stopped=True,
            condition=str(record.get("filter", "")),
            retry=bool(record.get("retry")),
        )
    if kind == "answer":
        past.add(from_record(record))
    elif kind == "filter":
        past.condition = parse(str(record.get("filter", "")))
    elif kind == "clear":
        past.forgotten = len(past.exchanges)
    elif kind != "session":
        raise ValueError(f"{kind!r} is no kind of record")
    return None


def to_record(exchange: Exchange) -> dict[str, Any]:
    """The exchange as a line of a session file: the answer as in `rag ask --json`, and more."""
    answer = exchange.answer
    return {
        "type": "answer",
        "at": exchange.at,
        "question": exchange.question,
        "filter": exchange.condition,
        "retry": exchange.retry,
        "error": exchange.error,
        "stopped": exchange.stopped,
        "unfinished": exchange.unfinished,
        "spent": asdict(exchange.spent),
        "answer": None if answer is None else _answer_record(answer),
    }


def from_record(record: Mapping[str, Any]) -> Exchange:
    """The exchange of a line of a session file.

    Raises:
        ValueError, TypeError, KeyError, AttributeError: the line is not one of ours.
    """
    raw = record.get("answer")
    answer = None if raw is None else _answer(raw)
    unmeasured = answer.usage if answer else Usage()
    return Exchange(
        question=str(record["question"]),
        answer=answer,
        at=str(record.get("at", "")),
        error=str(record.get("error", "")),
        stopped=bool(record.get("stopped")),
        unfinished=str(record.get("unfinished", "")),
        condition=str(record.get("filter", "")),
        retry=bool(record.get("retry")),
        spent=_usage(record["spent"]) if "spent" in record else unmeasured,
    )


def _answer_record(answer: Answer) -> dict[str, Any]:
    ranking = [
        {
            "paper_id": hit.paper.id,
            "title": hit.paper.title,
            "sources": render.sources_json(hit.paper.sources),
            "score": round(hit.score, 6),
            "dense_rank": hit.dense_rank,
            "lexical_rank": hit.lexical_rank,
        }
        for hit in answer.retrieved
    ]
    return {
        **render.answer_json(answer),
        "papers": [render.paper_json(paper, whole=False) for paper in answer.papers],
        "asked": answer.asked,
        "notes": list(answer.notes),
        "retrieved": ranking,
    }


def _answer(raw: Mapping[str, Any]) -> Answer:
    return Answer(
        question=str(raw["question"]),
        answered=bool(raw["answered"]),
        confidence=float(raw["confidence"]),
        statements=tuple(_statement(statement) for statement in raw["statements"]),
        papers=tuple(_paper(paper) for paper in raw["papers"]),
        model=str(raw["model"]),
        usage=_usage(raw["usage"]),
        seconds={str(name): float(value) for name, value in raw["seconds"].items()},
        notes=tuple(str(note) for note in raw.get("notes", ())),
        retrieved=tuple(_hit(hit) for hit in raw.get("retrieved", ())),
        asked=str(raw.get("asked", "")),
    )


def _usage(raw: Mapping[str, Any]) -> Usage:
    return Usage(**{name: int(raw[name]) for name in asdict(Usage())})


def _statement(raw: Mapping[str, Any]) -> Statement:
    citations = tuple(
        Citation(str(c["paper_id"]), str(c["quote"]), int(c["start"]), int(c["end"]), c["support"])
        for c in raw["citations"]
    )
    return Statement(str(raw["text"]), bool(raw["supported"]), citations)


def _paper(raw: Mapping[str, Any]) -> Paper:
    """A paper without its text, which stays in the store."""
    sources = _sources(raw.get("sources", ()))
    derived, metadata = bool(raw.get("title_derived")), dict(raw.get("metadata", {}))
    return Paper(str(raw["paper_id"]), str(raw["title"]), "", "", sources, derived, metadata)


def _sources(raw: Sequence[Mapping[str, Any]]) -> tuple[Source, ...]:
    return tuple(Source(str(s["file"]), int(s["position"])) for s in raw)


def _hit(raw: Mapping[str, Any]) -> Hit:
    return Hit(_paper(raw), float(raw["score"]), raw["dense_rank"], raw["lexical_rank"])
