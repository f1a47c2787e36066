"""Every figure of a run: its name, what it says, and which way is better."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Better = Literal["higher", "lower"]
Unit = Literal["share", "count", "seconds", "tokens"]


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure; a `share` lies in 0..1. With `mean` each item has a score, and it is their mean.

    Shares with `mean` count every item that they apply to, failed ones with the worst value. Failed
    ones are left out of what has no worst value (counts, seconds, tokens), of what judges the
    confidence over all items (ECE, AURC, coverage), and with `of_some` of a mean over the items
    that an answer made its own (those refused).
    """

    name: str
    title: str
    better: Better
    unit: Unit
    meaning: str
    mean: bool = True
    of_some: bool = False

    @property
    def worst(self) -> float | None:
        """What a failed item scores; None where it has no part in the figure."""
        if self.unit != "share" or self.of_some or not self.mean:
            return None
        return 0.0 if self.better == "higher" else 1.0


_HIGHER: Better = "higher"
_LOWER: Better = "lower"

_ALL = (
    Metric(
        "correct", "Correct", _HIGHER, "share",
        "Of the answerable questions those answered with every expected paper and expected fact.",
    ),
    Metric(
        "all_gold_cited", "All gold cited", _HIGHER, "share",
        "Answerable questions where every group of expected papers is cited.",
    ),
    Metric(
        "gold_recall", "Gold recall", _HIGHER, "share",
        "Of the groups of expected papers those with a paper cited, averaged over questions.",
    ),
    Metric(
        "extra_citations", "Extra citations", _LOWER, "count",
        "Papers that an answer cites and its question does not expect.",
    ),
    Metric(
        "must_include", "Expected facts", _HIGHER, "share",
        "Answers that match every expression they must and none that they must not.",
    ),
    Metric(
        "citation_precision", "Citation precision", _HIGHER, "share",
        "Of an answer's citations those that help to support their statement; refusals apart.",
    ),
    Metric(
        "citation_recall", "Citation recall", _HIGHER, "share",
        "Of an answer's statements those that their citations support; refusals apart.",
    ),
    Metric(
        "alce_precision", "ALCE precision", _HIGHER, "share",
        "Citation precision as the ALCE script computes it: one line, three citations, refusals 0.",
    ),
    Metric(
        "alce_recall", "ALCE recall", _HIGHER, "share",
        "Citation recall as the ALCE script computes it: one line, three citations, refusals 0.",
    ),
    Metric(
        "unsupported", "Unsupported", _LOWER, "share",
        "Of an answer's statements those that the verifier marked as not supported.",
    ),
    Metric(
        "unsupported_statements", "Unsupported, count", _LOWER, "count",
        "Statements of an answer that the verifier marked as not supported.",
    ),
    Metric(
        "invented_ids", "Invented IDs", _LOWER, "count",
        "IDs that an answer cites and that were not among the papers found for it.",
    ),
    Metric(
        "refused", "Refused, unanswerable", _HIGHER, "share",
        "Of the unanswerable questions those refused.",
    ),
    Metric(
        "over_refused", "Refused, answerable", _LOWER, "share",
        "Of the answerable questions those refused.",
    ),
    Metric(
        "refusal_precision", "Refusal precision", _HIGHER, "share",
        "Of the refused questions those that are unanswerable; failed ones were not refused.",
        of_some=True,
    ),
    Metric(
        "brier", "Brier score", _LOWER, "share",
        "The squared difference of confidence and correctness (0 or 1), refusals not correct.",
    ),
    Metric(
        "recall@5", "Recall@5", _HIGHER, "share",
        "Of the groups of expected papers those with one among the first five papers found.",
    ),
    Metric(
        "recall@10", "Recall@10", _HIGHER, "share",
        "Of the groups of expected papers those with one among the first ten papers found.",
    ),
    Metric(
        "ndcg@10", "nDCG@10", _HIGHER, "share",
        "Discounted gain of the first ten papers found, of that of an ideal ranking.",
    ),
    Metric(
        "mrr@10", "MRR@10", _HIGHER, "share",
        "One by the rank of the first expected paper among the first ten found, else 0.",
    ),
    Metric("seconds", "Seconds", _LOWER, "seconds", "Seconds to an answer."),
    Metric("retrieve_seconds", "Seconds, retrieve", _LOWER, "seconds", "Seconds to find papers."),
    Metric(
        "generate_seconds", "Seconds, generate", _LOWER, "seconds",
        "Seconds of the language model.",
    ),
    Metric(
        "verify_seconds", "Seconds, verify", _LOWER, "seconds", "Seconds to check statements.",
    ),
    Metric(
        "prompt_tokens", "Prompt tokens", _LOWER, "tokens",
        "Tokens that the language model read for an answer.",
    ),
    Metric(
        "completion_tokens", "Completion tokens", _LOWER, "tokens",
        "Tokens that the language model wrote for an answer.",
    ),
    Metric(
        "ece", "Calibration error", _LOWER, "share",
        "How far confidence and correctness lie apart, over bins of equal mass; biased upwards.",
        mean=False,
    ),
    Metric(
        "aurc", "AURC", _LOWER, "share",
        "The share of incorrect answers among the most confident, over all numbers of them.",
        mean=False,
    ),
    Metric(
        "coverage_at_5_risk", "Coverage at 5 % risk", _HIGHER, "share",
        "The share of answers that a threshold lets through with at most 5 % incorrect.",
        mean=False,
    ),
    *(
        Metric(
            f"{name}_p{percent}", f"{title} p{percent}", _LOWER, "seconds",
            f"The {percent}th percentile of the {what}.",
            mean=False,
        )
        for name, title, what in (
            ("seconds", "Seconds", "seconds to an answer"),
            ("retrieve_seconds", "Seconds, retrieve", "seconds to find papers"),
            ("generate_seconds", "Seconds, generate", "seconds of the language model"),
            ("verify_seconds", "Seconds, verify", "seconds to check statements"),
        )
        for percent in (50, 95)
    ),
)  # fmt: skip

METRICS: Mapping[str, Metric] = {metric.name: metric for metric in _ALL}
MEANS: Mapping[str, Metric] = {name: m for name, m in METRICS.items() if m.mean}
STATISTICS: Mapping[str, Metric] = {name: m for name, m in METRICS.items() if not m.mean}
