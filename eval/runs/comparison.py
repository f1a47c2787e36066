"""Two runs on the questions that both were asked: what differs, by how much, and where."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from eval.items import Item
from eval.metrics import calibration
from eval.metrics.scores import METRICS, Scored, right, scored
from eval.metrics.summary import PERCENTILES, TIMES
from eval.runs.differences import differences
from eval.runs.directory import Run
from eval.statistics.estimates import RESAMPLES, Statistic, holm, paired_test, resampled
from eval.statistics.intervals import TAIL, Values


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of a run with its scores; `expected` is all that decides them, the text apart."""

    id: str
    text: str
    expected: tuple[object, ...]
    scored: Scored

    @property
    def right(self) -> float | None:
        """See `eval.metrics.scores.right`."""
        return right(self.scored.values)


@dataclass(frozen=True, slots=True)
class Side:
    """A run, scored."""

    directory: Path
    meta: Mapping[str, Any]
    asked: Mapping[str, Asked]


@dataclass(frozen=True, slots=True)
class Difference:
    """A metric on the n shared questions that it applies to in both runs.

    `difference` is b minus a; `p` is of the randomisation test and `corrected` what Holm's
    correction makes of it, None where the metric is no mean. `won` and `lost` count the questions
    on which b scores better and worse.
    """

    name: str
    n: int
    a: float | None = None
    b: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    corrected: float | None = None
    won: int | None = None
    lost: int | None = None

    @property
    def worse_by(self) -> float | None:
        """How much worse b is, in the direction that is bad for the metric; negative if better."""
        if self.difference is None:
            return None
        return -self.difference if METRICS[self.name].better == "higher" else self.difference


@dataclass(frozen=True, slots=True)
class Comparison:
    """Run b against run a. Questions are named by ID.

    `shared` were reached in both with the same text. `otherwise`: the ID is in both, with another
    text; `unreached` were not asked in one or both; `expectations` are shared ones of which the
    runs expect different papers or facts; `failed` are the shared ones without an answer in a and
    those without one in b. `differing`: setting -> what a and b were made with.
    `won` and `lost` are shared questions on which b did better and worse.
    """

    a: Path
    b: Path
    shared: tuple[str, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    otherwise: tuple[str, ...]
    unreached: tuple[str, ...]
    expectations: tuple[str, ...]
    failed: tuple[tuple[str, ...], tuple[str, ...]]
    differing: Mapping[str, tuple[object, object]]
    metrics: tuple[Difference, ...]
    won: tuple[str, ...]
    lost: tuple[str, ...]


def side(run: Run) -> Side:
    """Score a run, reading each item once.

    Raises:
        ReadError: the verdicts of an item do not fit its answer.
    """
    noted: list[tuple[str, str, tuple[object, ...]]] = []

    def watched() -> Iterator[Item]:
        for item in run.items:
            q = item.question
            wanted = (q.kind, item.gold, q.must_include, q.must_not_include, q.history)
            noted.append((q.id, q.question, wanted))
            yield item

    rows = scored(watched())
    asked = {n[0]: Asked(*n, row) for n, row in zip(noted, rows, strict=True)}
    return Side(run.directory, run.meta, asked)


def compare(
    a: Side, b: Side, names: Sequence[str], *, by: str | None = None, seed: int = 0
) -> Comparison:
    """Compare two runs in the metrics of these names.

    `by` names the metric by which questions are won and lost, one of `MEANS`; without, it is
    whether they were answered rightly.
    """
    both = [name for name in a.asked if name in b.asked]
    same = [name for name in both if a.asked[name].text == b.asked[name].text]
    reached = {n for n in same if a.asked[n].scored.reached and b.asked[n].scored.reached}
    pairs = [(a.asked[name], b.asked[name]) for name in same if name in reached]
    gains = [(left.id, _gain(left, right, by)) for left, right in pairs]
    return Comparison(
        a.directory,
        b.directory,
        shared=tuple(left.id for left, _ in pairs),
        only_a=tuple(name for name in a.asked if name not in b.asked),
        only_b=tuple(name for name in b.asked if name not in a.asked),
        otherwise=tuple(n for n in both if a.asked[n].text != b.asked[n].text),
        unreached=tuple(name for name in same if name not in reached),
        expectations=tuple(x.id for x, y in pairs if x.expected != y.expected),
        failed=(
            tuple(x.id for x, _ in pairs if x.scored.failed),
            tuple(y.id for _, y in pairs if y.scored.failed),
        ),
        differing=differences(a.meta["identity"], b.meta["identity"]),
        metrics=_corrected([_difference(name, pairs, seed) for name in names]),
        won=tuple(name for name, gain in gains if gain > 0),
        lost=tuple(name for name, gain in gains if gain < 0),
    )


Pairs = Sequence[tuple[Asked, Asked]]


def _gain(left: Asked, right: Asked, by: str | None) -> float:
    """How much better the right one is; 0 where one of the two cannot be told."""
    if by is None:
        one, other = left.right, right.right
    else:
        one, other = left.scored.values[by], right.scored.values[by]
    if one is None or other is None:
        return 0.0
    return other - one if by is None or METRICS[by].better == "higher" else one - other


def _difference(name: str, pairs: Pairs, seed: int) -> Difference:
    # Whether a question is refused depends on the run: pairs of refused ones would never differ.
    if METRICS[name].mean and not METRICS[name].of_some:
        return _mean_difference(name, pairs, seed)
    rows = _rows(name, pairs)
    statistic = _STATISTICS[name]
    half = rows.shape[1] // 2
    a, b = (statistic(part) if len(rows) else None for part in (rows[:, :half], rows[:, half:]))
    if a is None or b is None:
        return Difference(name, len(rows), a, b)

    def change(drawn: Values) -> float | None:
        one, other = statistic(drawn[:, :half]), statistic(drawn[:, half:])
        return None if one is None or other is None else other - one

    found = resampled(rows, change, seed=seed)
    low, high = None, None
    if len(found) >= 0.95 * RESAMPLES:
        low, high = (float(end) for end in np.quantile(found, [TAIL, 1 - TAIL]))
    return Difference(name, len(rows), a, b, b - a, low, high)


def _mean_difference(name: str, pairs: Pairs, seed: int) -> Difference:
    both = [
        (one, other)
        for left, right in pairs
        if (one := left.scored.values[name]) is not None
        and (other := right.scored.values[name]) is not None
    ]
    if not both:
        return Difference(name, 0)
    a, b = [one for one, _ in both], [other for _, other in both]
    found = paired_test(b, a, seed)
    rises, falls = (sum(o > u for u, o in both), sum(o < u for u, o in both))
    won, lost = (rises, falls) if METRICS[name].better == "higher" else (falls, rises)
    return Difference(
        name, len(both), float(np.mean(a)), float(np.mean(b)), *found, won=won, lost=lost
    )


def _corrected(found: Sequence[Difference]) -> tuple[Difference, ...]:
    from dataclasses import replace

    tested = [d for d in found if d.p is not None]
    corrected = dict(
        zip((d.name for d in tested), holm([d.p for d in tested if d.p is not None]), strict=True)
    )
    return tuple(replace(d, corrected=corrected.get(d.name)) for d in found)


def _rows(name: str, pairs: Pairs) -> Values:
    """What the statistic is of: a row for each question, the columns of a before those of b."""
    rows = [[*_cells(name, left), *_cells(name, right)] for left, right in pairs]
    kept = [row for row in rows if _usable(name, row)]
    return np.array(kept, dtype=float).reshape(len(kept), -1 if kept else 2)


def _cells(name: str, asked: Asked) -> Sequence[float]:
    if name in ("ece", "aurc", "coverage_at_5_risk"):
        return asked.scored.foretold or (math.nan, math.nan)
    value = asked.scored.values[name if METRICS[name].mean else name.rpartition("_p")[0]]
    return (math.nan if value is None else value,)


def _usable(name: str, row: Sequence[float]) -> bool:
    known = [not math.isnan(cell) for cell in row]
    return any(known) if METRICS[name].of_some else all(known)


def _ratio(rows: Values) -> float | None:
    known = rows[~np.isnan(rows)]
    return float(known.mean()) if len(known) else None


def _quantile(q: float) -> Statistic:
    return lambda rows: float(np.quantile(rows, q))


_STATISTICS: Mapping[str, Statistic] = {
    "refusal_precision": _ratio,
    "ece": calibration.ece,
    "aurc": calibration.aurc,
    "coverage_at_5_risk": calibration.coverage_at_risk,
    **{
        f"{name}_{percentile}": _quantile(q)
        for name in TIMES
        for percentile, q in PERCENTILES.items()
    },
}
