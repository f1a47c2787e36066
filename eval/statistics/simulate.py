"""What the intervals cover, and how often the test calls equals unequal.

    python -m eval.statistics.simulate

Both are promises that a simulation keeps or breaks: samples of known populations are drawn, and it
is counted how often the interval holds the truth, and how often p <= 0.05 where nothing differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from eval.statistics.estimates import estimate, paired_test
from eval.statistics.intervals import Values

DRAWS = 2000
N = 70
LEVEL = 0.05

Draw = Callable[[Generator, int], Values]


@dataclass(frozen=True, slots=True)
class Population:
    """Something to draw from, with its true mean; `share` as `estimate` takes it."""

    mean: float
    draw: Draw
    share: bool = False


def _coins(p: float) -> Population:
    return Population(p, lambda rng, n: (rng.random(n) < p).astype(float))


def _choice(values: Mapping[float, float], *, share: bool) -> Population:
    """Of `{value: probability}`."""
    options, weights = list(values), list(values.values())
    mean = sum(value * weight for value, weight in values.items())
    return Population(mean, lambda rng, n: rng.choice(options, n, p=weights), share)


POPULATIONS: Mapping[str, Population] = {
    "right, .5 of the answers": _coins(0.5),
    "right, .8 of the answers": _coins(0.8),
    "right, .95 of the answers": _coins(0.95),
    "precision of 0, .5 and 1": _choice({0: 0.2, 0.5: 0.3, 1: 0.5}, share=True),
    "precision, .92 of it 1": _choice({0: 0.03, 0.5: 0.05, 1: 0.92}, share=True),
    "Brier scores": Population(0.375, lambda rng, n: rng.beta(0.5, 0.5, n) ** 2, share=True),
    "seconds, log-normal (.5)": Population(
        float(np.exp(0.125)), lambda rng, n: rng.lognormal(0, 0.5, n)
    ),
    "seconds, exponential": Population(1.0, lambda rng, n: rng.exponential(1, n)),
    "faults, Poisson (.1)": Population(0.1, lambda rng, n: rng.poisson(0.1, n).astype(float)),
}

# Differences of two runs that are equally good: symmetrical about 0.
DIFFERENCES: Mapping[str, Draw] = {
    "every answer differs": lambda rng, n: rng.normal(0, 0.3, n),
    "long-tailed": lambda rng, n: rng.standard_t(3, n),
    ".4 differ by .5 or 1": lambda rng, n: rng.choice(
        [-1, -0.5, 0, 0.5, 1], n, p=[0.1, 0.1, 0.6, 0.1, 0.1]
    ),
    ".5 flip between 0 and 1": lambda rng, n: rng.choice([-1.0, 0, 1], n, p=[0.25, 0.5, 0.25]),
    ".04 flip between 0 and 1": lambda rng, n: rng.choice([-1.0, 0, 1], n, p=[0.02, 0.96, 0.02]),
}


def coverage(population: Population, *, n: int = N, draws: int = DRAWS, seed: int = 0) -> float:
    """The share of samples of n whose interval holds the true mean."""
    rng = np.random.default_rng(seed)
    hits = 0
    for _ in range(draws):
        found = estimate(population.draw(rng, n).tolist(), share=population.share)
        if found.low is not None and found.high is not None:
            hits += found.low <= population.mean <= found.high
    return hits / draws


def false_positives(draw: Draw, *, n: int = N, draws: int = DRAWS, seed: int = 0) -> float:
    """The share of pairs of samples without a true difference that get p <= 0.05."""
    rng = np.random.default_rng(seed)
    nothing = [0.0] * n
    tests = (paired_test(draw(rng, n).tolist(), nothing) for _ in range(draws))
    return sum(test.p <= LEVEL for test in tests) / draws


def difference_coverage(draw: Draw, *, n: int = N, draws: int = DRAWS, seed: int = 0) -> float:
    """The share of pairs of samples without a true difference whose interval holds 0."""
    rng = np.random.default_rng(seed)
    nothing = [0.0] * n
    tests = (paired_test(draw(rng, n).tolist(), nothing) for _ in range(draws))
    return sum(test.low <= 0 <= test.high for test in tests) / draws


if __name__ == "__main__":
    print(f"{DRAWS} draws of {N} items; intervals should hold the truth in 95 % of them")
    for name, population in POPULATIONS.items():
        print(f"{name:<28}{coverage(population):.3f}")
    print("\np <= 0.05 where nothing differs (at most 5 %), and intervals that hold the 0")
    for name, draw in DIFFERENCES.items():
        print(f"{name:<28}{false_positives(draw):.3f}  {difference_coverage(draw):.3f}")
