"""What one item is worth, by every metric that is a mean over items; see `eval.metrics.measures`.

None where a metric does not apply. Settled here: a refusal cites nothing and says nothing. A group
of expected papers that the corpus does not hold counts as never cited and never found. A question
of the kind "unlabelled" may have any answer, and one that expects neither papers nor facts has no
correct one. The confidence foretells a correct answer: at unanswerable questions it is right to be
low. An expression that cannot be searched leaves its item unscored, not wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from eval.items import Item
from eval.metrics.citations import alce, strict
from eval.metrics.expressions import found
from eval.metrics.measures import MEANS, METRICS, STATISTICS, Metric
from eval.questions.fields import UNLABELLED
from eval.retrieval.ranking import measure

__all__ = [
    "MEANS",
    "METRICS",
    "STATISTICS",
    "Metric",
    "Scored",
    "right",
    "rightness",
    "score",
    "scored",
]

Scores = dict[str, float | None]

# Items in memory at a time: results may be many and long.
_TOGETHER = 500

_RANKINGS = {"ndcg@10": "nDCG@10", "mrr@10": "MRR@10"}
_RECALLS = {"recall@5": 5, "recall@10": 10}


@dataclass(frozen=True, slots=True)
class Scored:
    """An item's scores, with what a summary wants of the item itself, which is not kept.

    `foretold`: the confidence of an item's answer, and 1.0 if that is correct, else 0.0; None of a
    failed item, and where nobody can say.
    """

    kind: str
    reached: bool
    failed: bool
    cached: bool
    foretold: tuple[float, float] | None
    values: Scores


def score(item: Item) -> Scores:
    """Every metric of `MEANS`, in their order; all None of an item that was not reached.

    Raises:
        ReadError: the item's verdicts do not fit its answer.
    """
    return scored([item])[0].values


def scored(items: Iterable[Item]) -> list[Scored]:
    """Each item with its scores, in one pass; rankings are measured some together, as is faster.

    Raises:
        ReadError: the verdicts of an item do not fit its answer.
    """
    rest, done = iter(items), list[Scored]()
    while batch := list(islice(rest, _TOGETHER)):
        found = [_scored(item) for item in batch]
        _rank(batch, found)
        done += found
    return done


def right(values: Mapping[str, float | None]) -> float | None:
    """1.0 if answered correctly, or refused where that is right; None where nobody can say."""
    return values["refused"] if values["correct"] is None else values["correct"]


def rightness(item: Item) -> float | None:
    """What `right` says of one item.

    Raises:
        ReadError: the item's verdicts do not fit its answer.
    """
    return right(_without_ranking(item))


def _rank(items: Sequence[Item], found: Sequence[Scored]) -> None:
    """Fill in what the rankings of `items` are worth."""
    run: dict[str, list[tuple[str, float]]] = {}
    qrels: dict[str, dict[str, int]] = {}
    for number, item in enumerate(items):
        if item.result is not None and item.gold:
            qrels[str(number)] = dict.fromkeys(_groups(item), 1)
            run[str(number)] = [] if item.failed else [(name, 0.0) for name in _ranking(item)]
    measured = measure("", run, qrels, depth=10).values if qrels else {}
    for name, spec in _RANKINGS.items():
        for key, value in measured.get(spec, {}).items():
            found[int(key)].values[name] = value


def _recall(item: Item) -> Scores:
    """Counted by paper, not by the places of `_ranking`: a paper of two groups takes two there."""
    if not item.gold:
        return {}
    papers = [] if item.failed else [p["paper_id"] for p in (item.result or {})["retrieved"]]
    return {
        name: sum(not group.isdisjoint(papers[:depth]) for group in item.gold) / len(item.gold)
        for name, depth in _RECALLS.items()
    }


def _scored(item: Item) -> Scored:
    values = _without_ranking(item)
    return Scored(
        item.question.kind,
        item.result is not None,
        item.failed,
        item.result is not None and bool(item.result["cached"]),
        _foretold(item, values),
        values,
    )


def _foretold(item: Item, values: Scores) -> tuple[float, float] | None:
    right = values["correct"] if item.question.answerable else 0.0
    if item.answer is None or right is None:
        return None
    return float(item.answer["confidence"]), right


def _without_ranking(item: Item) -> Scores:
    values: Scores = dict.fromkeys(MEANS)
    if item.result is None:
        return values
    values |= _gold(item) | _facts(item) | _recall(item)
    values["correct"] = _correct(item, values)
    values |= _abstention(item) | _citations(item)
    values["brier"] = _brier(item, values)
    if item.answer is not None:
        values |= _counts(item, item.answer) | _costs(item.answer)
    return values


def _answered(item: Item) -> bool:
    return item.answer is not None and bool(item.answer["answered"])


def _cited(item: Item) -> set[str]:
    if item.answer is None or not _answered(item):
        return set()
    return {c["paper_id"] for s in item.answer["statements"] for c in s["citations"]}


def _gold(item: Item) -> Scores:
    if not item.gold or not item.question.answerable:
        return {}
    cited = _cited(item)
    hits = [bool(group & cited) for group in item.gold]
    return {"gold_recall": sum(hits) / len(hits), "all_gold_cited": float(all(hits))}


def _facts(item: Item) -> Scores:
    question = item.question
    if not question.answerable or not (question.must_include or question.must_not_include):
        return {}
    if item.answer is None or not _answered(item):
        return {"must_include": 0.0}
    text = item.answer["text"]
    wanted = [found(pattern, text) for pattern in question.must_include]
    unwanted = [found(pattern, text) for pattern in question.must_not_include]
    if False in wanted or True in unwanted:
        return {"must_include": 0.0}
    return {"must_include": None if None in wanted + unwanted else 1.0}


def _correct(item: Item, values: Scores) -> float | None:
    question = item.question
    if not question.answerable:
        return None
    parts = [values["all_gold_cited"]] if item.gold else []
    parts += [values["must_include"]] if question.must_include or question.must_not_include else []
    if 0.0 in parts:
        return 0.0
    return None if not parts or None in parts else 1.0


def _abstention(item: Item) -> Scores:
    if item.question.kind == UNLABELLED:
        return {}
    answerable, refused = item.question.answerable, item.answer is not None and not _answered(item)
    own = "over_refused" if answerable else "refused"
    worst = MEANS[own].worst
    return {
        own: worst if item.failed else float(refused),
        "refusal_precision": float(not answerable) if refused else None,
    }


def _citations(item: Item) -> Scores:
    ours, theirs = strict(item), alce(item)
    return {
        "citation_precision": ours.precision,
        "citation_recall": ours.recall,
        "alce_precision": theirs.precision,
        "alce_recall": theirs.recall,
        "unsupported": _unsupported(item),
    }


def _unsupported(item: Item) -> float | None:
    if item.answer is None:
        return MEANS["unsupported"].worst
    verdicts = [not s["supported"] for s in item.answer["statements"]]
    return sum(verdicts) / len(verdicts) if _answered(item) and verdicts else None


def _brier(item: Item, values: Scores) -> float | None:
    if item.failed:
        expects = values["correct"] is not None or not item.question.answerable
        return MEANS["brier"].worst if expects else None
    pair = _foretold(item, values)
    return None if pair is None else (pair[0] - pair[1]) ** 2


def _counts(item: Item, answer: Mapping[str, Any]) -> Scores:
    result = item.result or {}
    statements = answer["statements"] if _answered(item) else []
    expected = frozenset[str]().union(*item.gold)
    compared = bool(item.gold) or not item.question.answerable
    return {
        "extra_citations": float(len(_cited(item) - expected)) if compared else None,
        "unsupported_statements": float(sum(not s["supported"] for s in statements)),
        "invented_ids": float(len(result["unknown_ids"])),
    }


def _costs(answer: Mapping[str, Any]) -> Scores:
    seconds, usage = answer["seconds"], answer["usage"]
    return {
        "seconds": seconds.get("total"),
        **{f"{part}_seconds": seconds.get(part) for part in ("retrieve", "generate", "verify")},
        **{name: float(usage[name]) for name in ("prompt_tokens", "completion_tokens")},
    }


def _groups(item: Item) -> list[str]:
    return [f"group {number}" for number in range(len(item.gold))]


def _ranking(item: Item) -> list[str]:
    """The papers found, with the name of a group in the place of the first paper that is in it.

    Further papers of a group are neither a hit nor no place: they count as any other paper. One
    that is the first of two groups takes the places of both.
    """
    open_groups = dict(zip(_groups(item), item.gold, strict=True))
    names: list[str] = []
    for place, paper in enumerate((item.result or {})["retrieved"]):
        hit = [name for name, group in open_groups.items() if paper["paper_id"] in group]
        for name in hit:
            del open_groups[name]
        names += hit or [f"paper {place}"]
    return names
