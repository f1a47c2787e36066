"""95 % intervals, each by the method that covers 95 % for its kind of value.

Simulated at n = 70 (`python -m eval.statistics.simulate`); what covers less was left out:

shares (0..1)    the mid-P interval of a proportion. Of values that are not 0 or 1 (.5, .95), with
                 the number of items that would vary as much (Korn and Graubard 1998). A percentile
                 bootstrap gives [1, 1] for a sample of ones; Wilson covers .977 of shares of .95.
other means      studentised bootstrap (Efron and Tibshirani 1993, section 12.5): skewed values
                 such as seconds, of which Student's t covers .92.
sparse values    mostly one and the same value, such as counts of faults or the differences of two
                 runs: two pseudo-observations are added (Bonett and Price 2012); conservative.
differences      of two runs, where they are not sparse: Student's t, since they are not skewed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Interval = tuple[float, float]

TAIL = 0.025
# The normal quantile that leaves `TAIL` above it.
Z = 1.959963984540054
# One less than a round number, so that 2.5 % of them is a whole one (Davison and Hinkley 1997).
RESAMPLES = 1999
# Values other than the commonest from which a bootstrap sees enough of them; below it covered .90.
FEWEST_DEVIATING = 20
# Cells of one block of resamples: 16 MiB.
BLOCK = 2_000_000


def proportion(successes: float, n: float) -> Interval:
    """The mid-P interval of a proportion (Lancaster 1961); neither need be a whole number.

    proportion(70, 70) -> (0.958, 1.0)
    """
    from scipy.optimize import brentq

    def end(tail: float) -> float:
        return float(brentq(lambda p: at_least(successes, n, p) - tail, 0.0, 1.0, xtol=1e-10))

    low = 0.0 if successes <= 0 else end(TAIL)
    high = 1.0 if successes >= n else end(1 - TAIL)
    return low, high


def at_least(successes: Any, n: Any, p: float) -> Any:
    """P(X > successes) + P(X = successes) / 2 for X ~ Binomial(n, p); of arrays too."""
    from scipy.special import betainc

    k, rest = np.asarray(successes, dtype=float), np.asarray(n - successes, dtype=float)
    # P(X >= k) is the regularised incomplete beta function at p, of (k, n - k + 1).
    from_k = np.where(k > 0, betainc(np.where(k > 0, k, 1), rest + 1, p), 1.0)
    above = np.where(rest > 0, betainc(k + 1, np.where(rest > 0, rest, 1), p), 0.0)
    return (from_k + above) / 2


def share_interval(x: Values) -> Interval | None:
    """The interval of the mean of shares: of a proportion of as many items as would vary like `x`.

    Raises:
        ValueError: one lies outside 0..1.
    """
    if x.min() < -1e-9 or x.max() > 1 + 1e-9:
        raise ValueError("a share lies outside 0..1")
    from scipy.special import stdtrit

    n, mean = len(x), float(np.clip(x.mean(), 0, 1))
    variance = float(x.var(ddof=1)) if n > 1 else 0.0
    effective = float(n)
    if variance > 1e-12 and not np.isin(x, (0.0, 1.0)).all():
        effective = n * mean * (1 - mean) / variance * (Z / stdtrit(n - 1, 1 - TAIL)) ** 2
    return proportion(mean * effective, effective)


def mean_interval(x: Values, seed: int) -> Interval | None:
    """The interval of a mean without known bounds; None of values that are all alike."""
    values, counts = np.unique(x, return_counts=True)
    if len(values) == 1:
        return None
    commonest = values[counts.argmax()]
    if _sparse(len(x) - counts.max(), len(x)):
        deviations = x - commonest
        low, high = _pseudo_interval(deviations, np.abs(deviations).max())
        low, high = float(low + commonest), float(high + commonest)
    else:
        low, high = _studentised(x, seed)
    # What is never negative has no negative mean.
    return (max(low, 0.0) if x.min() >= 0 else low), high


def difference_interval(d: Values, left: Values, right: Values) -> Interval:
    """The interval of the mean of `d`, the differences of `left` and `right`."""
    sizes = np.abs(d[d != 0])
    if len(sizes) == 0:
        # Nothing differs: what could, is as large as the values are.
        low, high = _pseudo_interval(d, float(max(np.abs(left).max(), np.abs(right).max()) or 1.0))
    elif np.ptp(sizes) < 1e-9 * sizes.max() or _sparse(len(sizes), len(d)):
        low, high = _pseudo_interval(d, sizes.max())
    else:
        # What differs by chance does so both ways: hardly skewed, but often long-tailed.
        low, high = _student(d)
    if min(left.min(), right.min()) >= 0 and max(left.max(), right.max()) <= 1:
        low, high = max(low, -1.0), min(high, 1.0)
    return low, high


def bca_levels(value: float, drawn: Values, without: Values) -> list[float]:
    """The quantiles of the resamples that bound the interval (Efron 1987, equation 2.3)."""
    from scipy.special import ndtr, ndtri

    # Half of the ties: statistics of few items take few values.
    below = (np.mean(drawn < value) + np.mean(drawn <= value)) / 2
    bias = ndtri(np.clip(below, 1 / (len(drawn) + 1), len(drawn) / (len(drawn) + 1)))
    d = without.mean() - without if len(without) else np.zeros(1)
    spread = np.square(d).sum() ** 1.5
    skew = (d**3).sum() / (6 * spread) if spread > 0 else 0.0
    shifted = [bias + z for z in (-Z, Z)]
    return [float(ndtr(bias + s / max(1e-9, 1 - skew * s))) for s in shifted]


def _sparse(deviating: int, n: int) -> bool:
    return deviating < FEWEST_DEVIATING and deviating < n / 2


def _pseudo_interval(x: Values, reach: float) -> Interval:
    """Wald's interval after adding one `reach` and one -`reach`; Bonett and Price have reach 1."""
    n = len(x) + 2
    mean = x.sum() / n
    variance = (np.square(x).sum() + 2 * reach**2) / n - mean**2
    half = Z * math.sqrt(variance / n)
    return float(mean - half), float(mean + half)


def _studentised(x: Values, seed: int) -> Interval:
    """Bootstrap-t; Student's t where too many resamples have no spread to divide by."""
    n, mean = len(x), x.mean()
    t = np.concatenate([_t_values(x[drawn], mean) for drawn in _resamples(n, seed)])
    if len(t) < 0.95 * RESAMPLES:
        return _student(x)
    low, high = np.quantile(t, [TAIL, 1 - TAIL])
    error = x.std(ddof=1) / math.sqrt(n)
    return float(mean - high * error), float(mean - low * error)


def _student(x: Values) -> Interval:
    from scipy.special import stdtrit

    half = stdtrit(len(x) - 1, 1 - TAIL) * x.std(ddof=1) / math.sqrt(len(x))
    return float(x.mean() - half), float(x.mean() + half)


def _t_values(drawn: Values, mean: float) -> Values:
    means, spreads = drawn.mean(axis=1), drawn.std(axis=1, ddof=1)
    usable = spreads > 1e-9 * max(1e-9, abs(mean))
    t: Values = (means[usable] - mean) / (spreads[usable] / math.sqrt(drawn.shape[1]))
    return t


def _resamples(n: int, seed: int) -> Iterator[NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    for size in blocks(RESAMPLES, n):
        yield rng.integers(0, n, (size, n))


def blocks(rows: int, columns: int) -> Iterator[int]:
    """Numbers of rows, `rows` in all, so that a block holds about `BLOCK` cells."""
    size = max(1, BLOCK // columns)
    for start in range(0, rows, size):
        yield min(size, rows - start)
