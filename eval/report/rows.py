"""One item as the table of a report shows it, folded and unfolded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eval.items import Item
from eval.report import shown
from eval.report.highlight import parts
from eval.report.verdicts import Verdict, cited_ids, judge


@dataclass(frozen=True, slots=True)
class CitationView:
    """A citation of a statement: the quote in pieces, each with whether it carries the statement.

    `role` says what the citation is worth beside the others, as the verifier sees it.
    """

    paper_id: str
    title: str
    pieces: tuple[tuple[str, bool], ...]
    support: float
    role: str


@dataclass(frozen=True, slots=True)
class StatementView:
    """A statement, the verdict on it when it was written, and whether its citations entail it.

    `likely` is what a language model that was asked to judge it thinks, 0..1.
    """

    text: str
    supported: bool
    entailed: bool | None
    likely: float | None
    citations: tuple[CitationView, ...]


@dataclass(frozen=True, slots=True)
class RetrievedView:
    """A retrieved paper; `use` says whether it was expected, and cited."""

    rank: int
    paper_id: str
    title: str
    score: float
    dense_rank: int | None
    lexical_rank: int | None
    use: str


@dataclass(frozen=True, slots=True)
class Row:
    """An item folded; `place` is its place in the run. Small: a run may have many.

    `confidence` (0..1) and `seconds` by stage are those of the answer; None where there is none.
    """

    place: int
    id: str
    kind: str
    question: str
    verdict: Verdict
    confidence: float | None
    seconds: Mapping[str, float] | None

    @classmethod
    def of(cls, place: int, item: Item) -> Row:
        """The row of the item at a place of the run."""
        answer = item.answer
        return cls(
            place,
            item.question.id,
            item.question.kind,
            item.question.question,
            judge(item),
            answer["confidence"] if answer else None,
            answer["seconds"] if answer else None,
        )

    @property
    def total(self) -> float | None:
        """Seconds to the answer."""
        return self.seconds.get("total") if self.seconds else None

    @property
    def anchor(self) -> str:
        """The element ID; see `eval.report.shown.anchor`."""
        return shown.anchor(self.id)


@dataclass(frozen=True, slots=True)
class Detail:
    """An item unfolded, with its verdict."""

    item: Item
    verdict: Verdict

    @property
    def answer(self) -> Mapping[str, Any] | None:
        """As in `rag ask --json`."""
        return self.item.answer

    @property
    def result(self) -> Mapping[str, Any]:
        """The line of results; with nothing in it where the item was not reached."""
        return self.item.result or _NOT_REACHED

    def statements(self) -> Iterator[StatementView]:
        """The answer's statements in order."""
        if self.answer is None:
            return
        known = (*self.result["retrieved"], *self.answer["papers"])
        titles = {paper["paper_id"]: paper["title"] for paper in known}
        entailment = _padded(self.result["entailment"], len(self.answer["statements"]))
        judge = _padded((self.result.get("judge") or {}).get("support", ()), len(entailment))
        for statement, judged, likely in zip(
            self.answer["statements"], entailment, judge, strict=True
        ):
            yield _statement(statement, judged, likely, titles)

    def retrieved(self) -> Iterator[RetrievedView]:
        """The papers found for the question, best first."""
        expected = frozenset[str]().union(*self.item.gold)
        cited = cited_ids(self.answer) if self.answer else frozenset()
        for found in self.result["retrieved"]:
            words = (("gold", expected), ("cited", cited))
            use = ", ".join(word for word, ids in words if found["paper_id"] in ids)
            yield RetrievedView(**{name: found[name] for name in _RANKED}, use=use)

    @property
    def expects(self) -> bool:
        """Whether there is anything to compare the answer with."""
        compared = self.verdict.gold or self.verdict.wanted or self.verdict.forbidden
        return bool(compared or self.result["unknown_ids"]) or (
            self.answer is not None and not self.item.question.answerable
        )

    def about(self) -> Iterator[str]:
        """How the item was asked and what it took."""
        if self.result.get("at"):
            yield shown.moment(self.result["at"])
        if self.result.get("attempt", 1) > 1:
            yield f"attempt {self.result['attempt']}"
        if self.answer is None:
            return
        if self.result.get("cached"):
            yield "from the cache"
        yield from (
            f"{stage} {shown.value(seconds, 'seconds')}"
            for stage, seconds in self.answer["seconds"].items()
            if stage != "total"
        )
        usage = self.answer["usage"]
        yield f"{usage['prompt_tokens']:,} tokens read, {usage['completion_tokens']:,} written"


def _statement(
    statement: Mapping[str, Any],
    judged: Mapping[str, Any] | None,
    likely: float | None,
    titles: Mapping[str, str],
) -> StatementView:
    citations = tuple(
        CitationView(
            citation["paper_id"],
            titles.get(citation["paper_id"], ""),
            tuple(parts(citation["quote"], statement["text"])),
            citation["support"],
            _role(judged, place),
        )
        for place, citation in enumerate(statement["citations"])
    )
    entailed = None if judged is None else judged["all"]
    return StatementView(statement["text"], statement["supported"], entailed, likely, citations)


def _padded(values: Sequence[Any], length: int) -> list[Any]:
    return [*values, *[None] * (length - len(values))][:length]


_NOT_REACHED: Mapping[str, Any] = {
    "error": None,
    "notes": (),
    "retrieved": (),
    "entailment": (),
    "unknown_ids": (),
}
_RANKED = ("rank", "paper_id", "title", "score", "dense_rank", "lexical_rank")


def _role(judged: Mapping[str, Any] | None, position: int) -> str:
    """What a citation is worth, as ALCE's citation precision has it (Gao et al. 2023)."""
    if judged is None or position >= len(judged["each"]) or len(judged["each"]) == 1:
        return ""  # the verdict on the statement says it
    if judged["each"][position]:
        return "carries the statement by itself"
    if not judged["all"]:
        return "does not carry the statement"
    if judged["without"][position]:
        return "adds nothing to the others"
    return "carries the statement with the others"
