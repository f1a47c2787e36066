"""Estimates with 95 % intervals, and the test of whether two runs differ.

Means are of `intervals`, where each method is named; order statistics bound quantiles,
exactly whatever the distribution; other statistics have BCa intervals (Efron 1987). Everything is
seeded: the same values give the same interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from eval.statistics.intervals import (
    TAIL,
    Values,
    bca_levels,
    blocks,
    difference_interval,
    mean_interval,
    share_interval,
)

Statistic = Callable[[Values], float | None]

RESAMPLES = 999
SIGN_FLIPS = 9999
# Sign patterns are counted out, not drawn, up to so many differences: 4,096 patterns.
FEWEST_DRAWN = 13
# Parts of the jackknife that BCa needs; without each of 10,000 items it would take minutes.
JACKKNIFE = 200


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value over n items and its 95 % interval; None where there is none.

    No items, no value; one item, or items that are all alike, tell nothing of an unbounded mean's
    interval. A quantile's interval may lack one end: the highest of few items is no bound.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int

    def to_json(self) -> dict[str, float | int | None]:
        """`{"value", "low", "high", "n"}`."""
        return {"value": self.value, "low": self.low, "high": self.high, "n": self.n}


class PairedTest(NamedTuple):
    """A mean difference, its 95 % interval, and the p-value of there being none."""

    difference: float
    low: float
    high: float
    p: float


def estimate(values: Sequence[float], *, seed: int = 0, share: bool = False) -> Estimate:
    """The mean. `share` says that no value can lie outside 0..1; 0 and 1 alone are taken so.

    Raises:
        ValueError: a value is not finite, or `share` and one lies outside.
    """
    x = _finite(values)
    if len(x) == 0:
        return Estimate(None, None, None, 0)
    if share or bool(np.isin(x, (0.0, 1.0)).all()):
        found = share_interval(x)
    else:
        found = mean_interval(x, seed)
    low, high = found or (None, None)
    return Estimate(float(x.mean()), low, high, len(x))


def quantile(values: Sequence[float], q: float) -> Estimate:
    """A quantile (linear between neighbours), with the order statistics that bound it."""
    from scipy.stats import quantile_test

    x = _finite(values)
    if len(x) == 0:
        return Estimate(None, None, None, 0)
    found = quantile_test(x, p=q).confidence_interval(1 - 2 * TAIL)
    low, high = (None if math.isnan(end) else float(end) for end in found)
    return Estimate(float(np.quantile(x, q)), low, high, len(x))


def bootstrap(items: Values, statistic: Statistic, *, seed: int = 0) -> Estimate:
    """A statistic of items (the rows of an array) that is no mean, by BCa bootstrap.

    `statistic` gives None where it is not defined; such resamples are left out. Where more than
    one in 20 is, or all are alike, there is no interval.
    """
    value = statistic(items) if len(items) else None
    if value is None:
        return Estimate(None, None, None, len(items))
    drawn = resampled(items, statistic, seed=seed)
    if len(drawn) < 0.95 * RESAMPLES or np.ptp(drawn) == 0:
        return Estimate(value, None, None, len(items))
    low, high = np.quantile(drawn, bca_levels(value, drawn, _jackknife(items, statistic)))
    return Estimate(value, float(low), float(high), len(items))


def resampled(items: Values, statistic: Statistic, *, seed: int = 0) -> Values:
    """The statistic of each bootstrap resample in which it is defined."""
    rng = np.random.default_rng(seed)
    n = len(items)
    drawn = (statistic(items[rng.integers(0, n, n)]) for _ in range(RESAMPLES))
    return np.array([value for value in drawn if value is not None], dtype=float)


def paired_test(a: Sequence[float], b: Sequence[float], seed: int = 0) -> PairedTest:
    """The mean of `a` minus that of `b`, item by item, and a two-sided randomisation test.

    Under the null hypothesis each difference could as well have had the other sign (Fisher 1935;
    Smucker et al. 2007 for rankings). p is the mid-P value: means as far from 0 as the observed one
    count half, since discrete values tie (for 0 and 1 it is McNemar's mid-P test, Fagerland et al.
    2013). Exact up to 12 differences that are not 0, and wherever all are of one size; else from
    9,999 draws. Where few items differ the test is conservative: fewer than five of 0 and 1 never
    give p <= 0.05.

    Raises:
        ValueError: there is no pair, or `a` and `b` differ in length.
    """
    left, right = _finite(a), _finite(b)
    if len(left) != len(right) or len(left) == 0:
        raise ValueError("as many values of the one as of the other, and at least one")
    d = left - right
    d[np.abs(d) < 1e-12 * max(1.0, np.abs(left).max(), np.abs(right).max())] = 0.0
    low, high = difference_interval(d, left, right)
    return PairedTest(float(d.mean()), low, high, _sign_flip_p(d[d != 0], seed))


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values corrected for their number (Holm 1979), in the same order.

    [0.01, 0.04, 0.03] -> [0.03, 0.06, 0.06]
    """
    corrected = [0.0] * len(p_values)
    highest = 0.0
    for done, i in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, p_values[i] * (len(p_values) - done)))
        corrected[i] = highest
    return corrected


def _finite(values: Sequence[float]) -> Values:
    x = np.array(values, dtype=float)
    if not np.isfinite(x).all():
        raise ValueError("a value is not finite")
    return x


def _jackknife(items: Values, statistic: Statistic) -> Values:
    """The statistic without each item; without each of 200 parts where there are more items."""
    parts = np.array_split(np.arange(len(items)), min(len(items), JACKKNIFE))
    found = (statistic(np.delete(items, part, axis=0)) for part in parts)
    return np.array([value for value in found if value is not None], dtype=float)


def _sign_flip_p(d: Values, seed: int) -> float:
    if len(d) == 0:
        return 1.0
    if np.ptp(np.abs(d)) < 1e-9 * np.abs(d).max():
        from scipy.stats import binom

        fewer = min(int((d > 0).sum()), int((d < 0).sum()))
        return float(min(1.0, 2 * binom.cdf(fewer, len(d), 0.5) - binom.pmf(fewer, len(d), 0.5)))
    if len(d) < FEWEST_DRAWN:
        return _mid_p(_all_sums(d), d)
    rng = np.random.default_rng(seed)
    # The observed signs are one of the draws, so that p is never 0.
    sums = [np.array([d.sum()])]
    for size in blocks(SIGN_FLIPS, len(d)):
        kept = rng.integers(0, 2, (size, len(d)), dtype=np.int8).astype(float)
        sums.append(2 * (kept @ d) - d.sum())
    return _mid_p(np.concatenate(sums), d)


def _all_sums(d: Values) -> Values:
    """The sums of `d` under every pattern of signs."""
    patterns = np.arange(2 ** len(d))[:, None] >> np.arange(len(d)) & 1
    sums: Values = (2 * patterns - 1) @ d
    return sums


def _mid_p(sums: Values, d: Values) -> float:
    """The share of sums beyond that of `d`, and half of those just as far from 0."""
    beyond = np.abs(sums) - abs(d.sum())
    tie = 1e-9 * np.abs(d).sum()
    return float(np.mean(beyond > tie) + np.mean(np.abs(beyond) <= tie) / 2)
