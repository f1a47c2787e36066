"""What a run of questions is worth. Definitions stand in the docstrings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from eval.datasets import Question
from rag.render import answer_text
from rag.types import Answer


@dataclass(frozen=True, slots=True)
class Score:
    """One answered question.

    `all_gold_cited`: every gold group has a paper cited. `must_include`: every expression matches
    the answer's text and no forbidden one does. `extra`: cited papers outside gold. `unknown`:
    cited IDs that the store does not hold.
    """

    question: Question
    answered: bool
    all_gold_cited: bool
    must_include: bool
    extra: int
    unknown: int
    unsupported: int
    seconds: float
    confidence: float


def score(question: Question, answer: Answer, gold: Sequence[set[str]], known: set[str]) -> Score:
    """Compare an answer with what its question expects."""
    cited = {c.paper_id for s in answer.statements for c in s.citations}
    text = answer_text(answer) if answer.answered else ""
    return Score(
        question=question,
        answered=answer.answered,
        all_gold_cited=bool(gold) and all(group & cited for group in gold),
        must_include=all(_matches(p, text) for p in question.must_include)
        and not any(_matches(p, text) for p in question.must_not_include),
        extra=len(cited - set().union(*gold)),
        unknown=len(cited - known),
        unsupported=sum(not s.supported for s in answer.statements),
        seconds=answer.seconds.get("total", 0.0),
        confidence=answer.confidence,
    )


def summary(scores: Sequence[Score]) -> dict[str, float]:
    """Means over answerable questions, refusals over unanswerable ones; a refusal cites nothing."""
    answerable = [s for s in scores if s.question.answerable]
    unanswerable = [s for s in scores if not s.question.answerable]
    return {
        "n": len(scores),
        "all_gold_cited": _mean([s.all_gold_cited for s in answerable]),
        "must_include": _mean([s.must_include for s in answerable]),
        "extra_papers": _mean([s.extra for s in answerable]),
        "over_refused": _mean([not s.answered for s in answerable]),
        "refused": _mean([not s.answered for s in unanswerable]),
        "invented_ids": sum(s.unknown for s in scores),
        "unsupported": sum(s.unsupported for s in scores),
        "seconds_mean": _mean([s.seconds for s in scores]),
        "seconds_median": median(s.seconds for s in scores) if scores else 0.0,
    }


def by_kind(scores: Sequence[Score]) -> Mapping[str, dict[str, float]]:
    """`summary` for each kind of question."""
    kinds = sorted({s.question.kind for s in scores})
    return {kind: summary([s for s in scores if s.question.kind == kind]) for kind in kinds}


def _matches(pattern: str, text: str) -> bool:
    return re.search(pattern, text, re.IGNORECASE | re.DOTALL) is not None


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4) if values else 0.0
