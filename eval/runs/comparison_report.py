"""A comparison of runs as JSON and as lines for a person."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval.metrics.scores import METRICS
from eval.metrics.summary import aligned, shown
from eval.report.shown import anchor
from eval.runs.comparison import Comparison, Difference
from eval.runs.differences import told
from eval.runs.directory import RESULTS

REPORT = "report.html"

# Questions that a message names, and that a list on the screen holds; --json has all.
NAMED = 5
LISTED = 20


@dataclass(frozen=True, slots=True)
class Limit:
    """How much worse than the first run a run may be in a metric."""

    metric: str
    delta: float


@dataclass(frozen=True, slots=True)
class Links:
    """Where to look at an item of a run."""

    directory: Path
    lines: Mapping[str, int]
    report: bool

    @classmethod
    def of(cls, directory: Path) -> Links:
        """Into the run's report where there is one, else the line of its results."""
        with (directory / RESULTS).open("rb") as file:
            lines = {str(json.loads(line)["id"]): n for n, line in enumerate(file, start=1)}
        return cls(directory, lines, (directory / REPORT).exists())

    def to(self, question_id: str) -> str:
        """`RUN_DIR/report.html#item-ID`, or `RUN_DIR/results.jsonl:LINE`."""
        if self.report:
            return f"{self.directory / REPORT}#{anchor(question_id)}"
        return f"{self.directory / RESULTS}:{self.lines[question_id]}"


def exceeded(comparison: Comparison, limits: Sequence[Limit]) -> list[tuple[Limit, Difference]]:
    """The limits that b goes beyond, and those in which the runs cannot be compared.

    Where a metric leaves failed questions out, b does not pass by failing more of them than a.
    """
    metrics = {found.name: found for found in comparison.metrics}
    broken = []
    for limit in limits:
        found = metrics[limit.metric]
        unknown = found.worse_by is None
        if unknown or beyond(limit, found) or failed_unseen(comparison, limit.metric):
            broken.append((limit, found))
    return broken


def beyond(limit: Limit, found: Difference) -> bool:
    """Whether b is known to be worse by more than the limit allows."""
    # What the sum of floats adds is no change for the worse.
    return found.worse_by is not None and found.worse_by > limit.delta + 1e-9


def failed_unseen(comparison: Comparison, metric: str) -> int:
    """How many questions more failed in b than in a, where the metric leaves failed ones out."""
    a, b = map(len, comparison.failed)
    return max(0, b - a) if METRICS[metric].worst is None else 0


def to_json(
    comparison: Comparison, limits: Sequence[Limit], links: Mapping[Path, Links]
) -> dict[str, Any]:
    """One entry of "comparisons" in `rag eval compare --json`."""

    def items(names: Sequence[str]) -> list[dict[str, str]]:
        a, b = links[comparison.a], links[comparison.b]
        return [{"id": name, "a": a.to(name), "b": b.to(name)} for name in names]

    return {
        "a": str(comparison.a),
        "b": str(comparison.b),
        "shared": len(comparison.shared),
        "failed": {name: len(ids) for name, ids in zip("ab", comparison.failed, strict=True)},
        "failed_a": list(comparison.failed[0]),
        "failed_b": list(comparison.failed[1]),
        "only_a": list(comparison.only_a),
        "only_b": list(comparison.only_b),
        "other_text": list(comparison.otherwise),
        "not_reached": list(comparison.unreached),
        "other_expectations": list(comparison.expectations),
        "differing": [
            {"name": name, "a": a, "b": b} for name, (a, b) in comparison.differing.items()
        ],
        "metrics": {found.name: _metric_json(found) for found in comparison.metrics},
        "won": items(comparison.won),
        "lost": items(comparison.lost),
        "worse": [
            {
                "metric": limit.metric,
                "delta": limit.delta,
                "worse_by": found.worse_by,
                "failed_unseen": failed_unseen(comparison, limit.metric),
            }
            for limit, found in exceeded(comparison, limits)
        ],
    }


def lines(comparison: Comparison, links: Mapping[Path, Links]) -> Iterator[str]:
    """The comparison for a terminal."""
    yield f"A  {comparison.a}"
    yield f"B  {comparison.b}"
    yield from _questions(comparison)
    if comparison.differing:
        yield "Made differently: " + ", ".join(told(comparison.differing))
    yield ""
    yield from aligned([_HEADER, *(_row(found) for found in comparison.metrics if found.n)])
    yield "+, -: questions better, worse in B; p: randomisation test, Holm's correction"
    yield from _items("Better in B", comparison.won, links[comparison.b])
    yield from _items("Worse in B", comparison.lost, links[comparison.b])


# In 80 columns.
_HEADER = ("", "A", "B", "B - A", "95 % interval", "p", "n", "+", "-")


def _questions(comparison: Comparison) -> Iterator[str]:
    failed = "{} failed in A, {} in B".format(*map(len, comparison.failed))
    yield f"{len(comparison.shared)} questions in both; {failed}"
    for what, names in (
        ("failed in A", comparison.failed[0]),
        ("failed in B", comparison.failed[1]),
        ("only in A", comparison.only_a),
        ("only in B", comparison.only_b),
        ("with another text, left out", comparison.otherwise),
        ("not reached in one of them, left out", comparison.unreached),
        ("expect other papers or facts in B than in A", comparison.expectations),
    ):
        if names:
            more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
            yield f"{len(names)} {what}: {', '.join(names[:NAMED])}{more}"


def _row(found: Difference) -> tuple[str, ...]:
    unit = METRICS[found.name].unit
    interval = ""
    if found.low is not None and found.high is not None:
        interval = f"{shown(found.low, unit)}, {shown(found.high, unit)}"
    return (
        METRICS[found.name].title,
        shown(found.a, unit),
        shown(found.b, unit),
        shown(found.difference, unit),
        interval,
        "" if found.corrected is None else f"{found.corrected:.3f}",
        str(found.n),
        "" if found.won is None else str(found.won),
        "" if found.lost is None else str(found.lost),
    )


def _items(title: str, names: Sequence[str], links: Links) -> Iterator[str]:
    yield ""
    yield f"{title}: {len(names) or 'none'}"
    for name in names[:LISTED]:
        yield f"  {name}  {links.to(name)}"
    if len(names) > LISTED:
        yield f"  and {len(names) - LISTED} more, all of them with --json"


def _metric_json(found: Difference) -> dict[str, Any]:
    return {
        "a": found.a,
        "b": found.b,
        "difference": found.difference,
        "low": found.low,
        "high": found.high,
        "p": found.p,
        "p_holm": found.corrected,
        "n": found.n,
        "won": found.won,
        "lost": found.lost,
    }
