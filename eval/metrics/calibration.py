"""What an answer's confidence is worth: right as often as it says, and most where it is high.

Everything here is of pairs (confidence 0..1, right 0 or 1), as an array of shape (n, 2); `right`
is the event that the confidence foretells: a correct answer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eval.statistics.estimates import Estimate, bootstrap, resampled
from eval.statistics.intervals import TAIL, Values, at_least

# Fewer items in a bin say little of its accuracy; more bins than ten show little more.
MOST_BINS = 10
FEWEST_IN_A_BIN = 10

RISK = 0.05


@dataclass(frozen=True, slots=True)
class Bin:
    """The items of neighbouring confidences: the range, the means, how many."""

    low: float
    high: float
    confidence: float
    accuracy: float
    n: int


@dataclass(frozen=True, slots=True)
class RiskPoint:
    """Answering what is as confident as `threshold` or more: the shares answered and wrong."""

    coverage: float
    risk: float
    threshold: float


def brier(pairs: Values) -> float | None:
    """The mean squared difference (Brier 1950); lower is better."""
    return float(np.square(pairs[:, 0] - pairs[:, 1]).mean()) if len(pairs) else None


def bins_for(n: int) -> int:
    """How many bins n items are put in: ten, or fewer, so that each has ten items."""
    return max(1, min(MOST_BINS, n // FEWEST_IN_A_BIN))


def reliability(pairs: Values) -> list[Bin]:
    """Bins of equal mass (Nguyen and O'Connor 2015), by confidence.

    Items of one confidence stay together, in the bin of the middle one; so bins may differ in
    mass, and there may be fewer than `bins_for(n)`.
    """
    if len(pairs) == 0:
        return []
    places = _bins(pairs[:, 0], bins_for(len(pairs)))
    return [_bin(pairs[places == place]) for place in np.unique(places)]


def ece(pairs: Values) -> float | None:
    """Expected calibration error (Naeini et al. 2015): the mean |confidence - accuracy| of bins.

    Biased upwards: of perfectly calibrated items it is about .1 at n = 70.
    """
    if len(pairs) == 0:
        return None
    return float(np.abs(_gaps(pairs)).sum())


def estimate_ece(pairs: Values, *, seed: int = 0) -> Estimate:
    """The ECE. Its interval is wide, since narrower ones do not hold.

    |ECE - truth| is at most the summed distance of the bins' gaps from their true ones, of which
    the 95 % quantile is bootstrapped. Percentile and BCa bootstrap resample the bias along and
    cover between 0 and .86 at n = 70; this covers .97 and more.
    """
    value = ece(pairs)
    if value is None:
        return Estimate(None, None, None, 0)
    gaps = _gaps(pairs)
    off = resampled(pairs, lambda drawn: float(np.abs(_gaps(drawn) - gaps).sum()), seed=seed)
    reach = float(np.quantile(off, 1 - 2 * TAIL))
    return Estimate(value, max(0.0, value - reach), min(1.0, value + reach), len(pairs))


def risk_coverage(pairs: Values) -> list[RiskPoint]:
    """A point for each confidence, from the highest (El-Yaniv and Wiener 2010)."""
    thresholds, answered, wrong = _by_threshold(pairs)
    return [
        RiskPoint(float(k / len(pairs)), float(w / k), float(t))
        for t, k, w in zip(thresholds, answered, wrong, strict=True)
    ]


def aurc(pairs: Values) -> float | None:
    """Area under the risk-coverage curve: the mean risk of the k most confident, over all k.

    Geifman et al. 2019. Of equal confidences any order is as good: the risk is the expected one,
    as if each were wrong in the share that its confidence is wrong in.
    """
    if len(pairs) == 0:
        return None
    _, answered, wrong = _by_threshold(pairs)
    sizes = np.diff(answered, prepend=0)
    expected = np.repeat(np.diff(wrong, prepend=0) / sizes, sizes.astype(np.int64))
    return float((np.cumsum(expected) / np.arange(1, len(pairs) + 1)).mean())


def estimate_aurc(pairs: Values, *, seed: int = 0) -> Estimate:
    """The AURC with its BCa interval, which covers .95 at n = 70."""
    return bootstrap(pairs, aurc, seed=seed)


def coverage_at_risk(pairs: Values, risk: float = RISK) -> float | None:
    """The greatest share that a threshold lets through with at most that share of it wrong."""
    if len(pairs) == 0:
        return None
    _, answered, wrong = _by_threshold(pairs)
    return _greatest(answered, wrong <= risk * answered + 1e-9) / len(pairs)


def estimate_coverage_at_risk(pairs: Values, risk: float = RISK) -> Estimate:
    """The coverage at that risk, with an interval by inverting a test.

    From the greatest coverage whose risk is clearly below to the greatest whose risk is not clearly
    above (mid-P, 2.5 % each). The coverage jumps with each wrong answer among the most confident:
    bootstraps of it cover .54 to .80 at n = 70, this .93 and more. A low end of 0 says that no
    coverage can be vouched for; that takes 59 confident answers without a mistake.
    """
    value = coverage_at_risk(pairs, risk)
    if value is None:
        return Estimate(None, None, None, 0)
    _, answered, wrong = _by_threshold(pairs)
    # How likely are so many mistakes, or more, at that very risk?
    chance = at_least(wrong, answered, risk)
    low = _greatest(answered, chance >= 1 - TAIL) / len(pairs)
    high = _greatest(answered, chance >= TAIL) / len(pairs)
    return Estimate(value, min(low, value), max(high, value), len(pairs))


def _by_threshold(pairs: Values) -> tuple[Values, Values, Values]:
    """Distinct confidences from the highest; how many reach each, and how many of those err."""
    thresholds, places, counts = np.unique(pairs[:, 0], return_inverse=True, return_counts=True)
    wrong = np.bincount(places, 1 - pairs[:, 1], minlength=len(thresholds))
    return thresholds[::-1], np.cumsum(counts[::-1]).astype(float), np.cumsum(wrong[::-1])


def _greatest(answered: Values, allowed: NDArray[np.bool_]) -> float:
    return float(answered[allowed].max()) if allowed.any() else 0.0


def _bins(confidence: Values, bins: int) -> NDArray[np.int64]:
    """The bin of each item."""
    _, places, counts = np.unique(confidence, return_inverse=True, return_counts=True)
    middle = (np.cumsum(counts) - counts / 2) / len(confidence)
    chosen: NDArray[np.int64] = np.minimum((middle * bins).astype(np.int64), bins - 1)[places]
    return chosen


def _gaps(pairs: Values) -> Values:
    """Confidence minus accuracy of each bin, times the bin's share of the items."""
    bins = bins_for(len(pairs))
    differences = pairs[:, 0] - pairs[:, 1]
    return np.bincount(_bins(pairs[:, 0], bins), differences, minlength=bins) / len(pairs)


def _bin(pairs: Values) -> Bin:
    confidence, accuracy = pairs.mean(axis=0)
    low, high = pairs[:, 0].min(), pairs[:, 0].max()
    return Bin(float(low), float(high), float(confidence), float(accuracy), len(pairs))
