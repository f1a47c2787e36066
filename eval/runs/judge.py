"""The language model as a judge of statements: an opinion, kept apart from what code can check."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eval.items import Item
from eval.runs.entailment import FindPaper
from eval.statistics.estimates import Estimate, estimate
from rag import prompts
from rag.chat_model import ChatModel
from rag.types import Usage


@dataclass(frozen=True, slots=True)
class Judgement:
    """P(Yes), 0..1, for each statement; None where nothing could be asked, or was answered."""

    model: str
    support: tuple[float | None, ...]
    usage: Usage

    def to_json(self) -> dict[str, Any]:
        """`{"model", "support"}`."""
        return {"model": self.model, "support": list(self.support)}


@dataclass(frozen=True, slots=True)
class Opinion:
    """What the models named think of a run's answers: mean P(Yes) of an answer's statements."""

    models: tuple[str, ...]
    support: Estimate

    def to_json(self) -> dict[str, Any]:
        """`{"models", "support": {"value", "low", "high", "n"}}`."""
        return {"models": list(self.models), "support": self.support.to_json()}


def opinion(items: Iterable[Item]) -> Opinion | None:
    """The opinion on a run; `n` are the answers that have one. None where nothing was judged."""
    models: dict[str, None] = {}
    means: list[float] = []
    for item in items:
        judged = item.result.get("judge") if item.result is not None else None
        if judged is None:
            continue
        models[judged["model"]] = None
        told = [likely for likely in judged["support"] if likely is not None]
        means += [sum(told) / len(told)] if told else []
    return Opinion(tuple(models), estimate(means, share=True)) if models else None


def ask(model: ChatModel, claim: str, source: str) -> tuple[float | None, Usage]:
    """P(Yes) to whether the source supports every part of the claim.

    Raises:
        EndpointError: the model did not answer.
    """
    prompt = prompts.render("judge", claim=claim, source=source)
    return model.yes_probability([{"role": "user", "content": prompt}])


def judge(model: ChatModel, statements: Sequence[Mapping[str, Any]], find: FindPaper) -> Judgement:
    """Ask for each statement, as in `rag ask --json`, whether its cited papers support it.

    Raises:
        EndpointError: the model did not answer.
    """
    support: list[float | None] = []
    total = Usage()
    for statement in statements:
        cited = dict.fromkeys(citation["paper_id"] for citation in statement["citations"])
        papers = [paper for paper_id in cited if (paper := find(paper_id)) is not None]
        likely = None
        if papers:
            source = " ".join(f"{paper.title}. {paper.text}" for paper in papers)
            likely, usage = ask(model, statement["text"], source)
            total += usage
        support.append(None if likely is None else round(likely, 4))
    return Judgement(model.name, tuple(support), total)
