from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.metrics.calibration import (
    Bin,
    RiskPoint,
    aurc,
    bins_for,
    brier,
    coverage_at_risk,
    ece,
    estimate_aurc,
    estimate_coverage_at_risk,
    estimate_ece,
    reliability,
    risk_coverage,
)
from eval.statistics.estimates import Estimate
from eval.statistics.intervals import Values

# Confidences at 0.1, so that many are equal.
PAIRS = st.lists(
    st.tuples(st.integers(0, 10).map(lambda n: n / 10), st.sampled_from([0.0, 1.0])),
    min_size=1,
    max_size=60,
)


def pairs(*values: tuple[float, float]) -> Values:
    return np.array(values, dtype=float).reshape(len(values), 2)


FOUR = pairs((0.9, 1), (0.8, 0), (0.6, 1), (0.2, 0))


def drawn(n: int, seed: int = 0) -> Values:
    """Confidences that are right as often as they say."""
    rng = np.random.default_rng(seed)
    confidence = rng.beta(4, 1, n).round(4)
    return np.column_stack([confidence, rng.random(n) < confidence])


def test_brier_by_hand() -> None:
    assert brier(FOUR) == pytest.approx((0.01 + 0.64 + 0.16 + 0.04) / 4)


def test_one_bin_of_few_items() -> None:
    assert [bins_for(n) for n in (1, 19, 20, 70, 99, 100, 5000)] == [1, 1, 2, 7, 9, 10, 10]
    assert reliability(FOUR) == [Bin(0.2, 0.9, pytest.approx(0.625), 0.5, 4)]
    assert ece(FOUR) == pytest.approx(0.125)


def test_bins_hold_as_many_items_each() -> None:
    twenty = pairs(*((n / 20, float(n >= 5)) for n in range(20)))
    low, high = reliability(twenty)
    assert low == Bin(0.0, 0.45, pytest.approx(0.225), 0.5, 10)
    assert high == Bin(0.5, 0.95, pytest.approx(0.725), 1.0, 10)
    # Both bins are 0.275 too low.
    assert ece(twenty) == pytest.approx(0.275)


def test_equal_confidences_stay_in_one_bin() -> None:
    # The middle one of the 13 equal ones is the 14th of 20, in the upper half.
    tied = pairs(*((0.1, 0.0),) * 7, *((0.5, 1.0),) * 13)
    assert [(b.confidence, b.n) for b in reliability(tied)] == [
        (pytest.approx(0.1), 7),
        (pytest.approx(0.5), 13),
    ]
    assert ece(tied) == pytest.approx((7 * 0.1 + 13 * 0.5) / 20)
    assert len(reliability(pairs(*((0.5, 1.0),) * 50))) == 1


def test_a_bin_may_be_left_empty_by_equal_confidences() -> None:
    # Of 30 in three bins the middle 20 are one, around the 15th.
    tied = pairs(*((0.1, 0.0),) * 5, *((0.5, 1.0),) * 10, *((0.5, 0.0),) * 10, *((0.9, 1.0),) * 5)
    assert [(row.low, row.accuracy, row.n) for row in reliability(tied)] == [
        (0.1, 0.0, 5),
        (0.5, 0.5, 20),
        (0.9, 1.0, 5),
    ]
    assert ece(tied) == pytest.approx((5 * 0.1 + 5 * 0.1) / 30)
    # Of 40 in four bins 30 are one, around the 25th: the third, and the second and fourth are none.
    tied = pairs(*((0.2, 0.0),) * 10, *((0.6, 1.0),) * 15, *((0.6, 0.0),) * 15)
    assert [(row.low, row.n) for row in reliability(tied)] == [(0.2, 10), (0.6, 30)]
    assert ece(tied) == pytest.approx((10 * 0.2 + 30 * 0.1) / 40)


def test_over_and_under_confidence_do_not_cancel_between_bins() -> None:
    off = pairs(*((0.2, 1.0),) * 10, *((0.8, 0.0),) * 10)
    assert ece(off) == pytest.approx(0.8)


def test_risk_coverage_by_hand() -> None:
    assert risk_coverage(FOUR) == [
        RiskPoint(0.25, 0.0, 0.9),
        RiskPoint(0.5, 0.5, 0.8),
        RiskPoint(0.75, pytest.approx(1 / 3), 0.6),
        RiskPoint(1.0, 0.5, 0.2),
    ]
    assert aurc(FOUR) == pytest.approx((0 + 1 / 2 + 1 / 3 + 1 / 2) / 4)


def test_equal_confidences_are_one_point_and_their_order_an_expectation() -> None:
    tied = pairs((0.9, 1), (0.5, 0), (0.5, 1), (0.5, 1))
    assert risk_coverage(tied) == [RiskPoint(0.25, 0.0, 0.9), RiskPoint(1.0, 0.25, 0.5)]
    # Each of the three is wrong in 1/3 of the orders.
    assert aurc(tied) == pytest.approx((0 + 1 / 3 / 2 + 2 / 3 / 3 + 1 / 4) / 4)


def test_coverage_at_a_risk_by_hand() -> None:
    assert coverage_at_risk(FOUR) == 0.25
    assert coverage_at_risk(FOUR, 0.34) == 0.75
    assert coverage_at_risk(FOUR, 0.5) == 1.0
    assert coverage_at_risk(pairs((0.9, 0), (0.1, 1))) == 0.0
    # One mistake in 20 is 5 %; and a threshold cannot part equal confidences.
    twenty = pairs((0.5, 0.0), *((0.9, 1.0),) * 19)
    assert coverage_at_risk(twenty) == 1.0
    assert coverage_at_risk(pairs((0.9, 0), (0.9, 1), (0.1, 1))) == 0.0
    # A mistake too many at the top is made good by what follows it: 1 of 20, then 2 of 21.
    late = pairs((0.9, 0.0), *((0.8, 1.0),) * 19, (0.7, 0.0))
    assert coverage_at_risk(late) == 20 / 21


def test_no_items_have_no_figures() -> None:
    none = pairs()
    assert (brier(none), ece(none), aurc(none), coverage_at_risk(none)) == (None,) * 4
    assert (reliability(none), risk_coverage(none)) == ([], [])
    nothing = Estimate(None, None, None, 0)
    assert estimate_ece(none) == estimate_aurc(none) == estimate_coverage_at_risk(none) == nothing


@given(PAIRS)
@settings(max_examples=80, deadline=None)
def test_invariants(values: list[tuple[float, float]]) -> None:
    given_pairs = pairs(*values)
    n, errors = len(values), sum(1 - right for _, right in values)
    table = reliability(given_pairs)
    assert sum(row.n for row in table) == n
    assert len(table) <= bins_for(n)
    assert all(a.high < b.low for a, b in pairwise(table))
    assert sum(row.n * row.accuracy for row in table) == pytest.approx(n - errors)
    mean_gap = abs(sum(c - right for c, right in values)) / n
    found = ece(given_pairs)
    assert found is not None
    assert mean_gap - 1e-9 <= found <= 1
    curve = risk_coverage(given_pairs)
    assert curve[-1].coverage == 1.0
    assert curve[-1].risk == pytest.approx(errors / n)
    assert [p.threshold for p in curve] == sorted({c for c, _ in values}, reverse=True)
    shuffled = given_pairs[np.random.default_rng(0).permutation(n)]
    for figure in (brier, ece, aurc, coverage_at_risk):
        assert figure(shuffled) == pytest.approx(figure(given_pairs))


@given(PAIRS)
@settings(max_examples=80, deadline=None)
def test_a_ranking_is_best_with_the_mistakes_last_and_worst_with_them_first(
    values: list[tuple[float, float]],
) -> None:
    rights = sorted((right for _, right in values), reverse=True)
    best = pairs(*((-i, right) for i, right in enumerate(rights)))
    worst = pairs(*((i, right) for i, right in enumerate(rights)))
    area, least, most = aurc(pairs(*values)), aurc(best), aurc(worst)
    assert area is not None and least is not None and most is not None
    assert least - 1e-9 <= area <= most + 1e-9
    # Without any order it is the share of mistakes.
    flat = aurc(pairs(*((0.5, right) for right in rights)))
    assert flat == pytest.approx(1 - sum(rights) / len(rights))


def test_intervals_of_calibration_hold_the_value_and_the_truth() -> None:
    estimated = estimate_ece(drawn(70))
    assert (estimated.value, estimated.n) == (ece(drawn(70)), 70)
    # Nothing is amiss with these confidences, and the interval says so; the value does not.
    assert estimated.value is not None and estimated.high is not None
    assert estimated.low == 0.0
    assert 0.03 < estimated.value < estimated.high < 0.35
    area = estimate_aurc(drawn(70))
    truth = aurc(drawn(200_000, seed=1))
    assert area.low is not None and area.high is not None and truth is not None
    assert area.low < truth < area.high
    assert area.high - area.low < 0.25
    assert estimate_ece(drawn(70), seed=3) == estimate_ece(drawn(70), seed=3)


def test_coverage_is_vouched_for_by_many_answers_without_a_mistake() -> None:
    faultless = pairs(*((0.5 + i / 1000, 1.0) for i in range(70)))
    assert estimate_coverage_at_risk(faultless) == Estimate(1.0, 1.0, 1.0, 70)
    # .95^58 / 2 = .0255 is the chance of none in 58: one too few.
    assert estimate_coverage_at_risk(faultless[:58]) == Estimate(1.0, 0.0, 1.0, 58)
    assert estimate_coverage_at_risk(faultless[:59]).low == 1.0
    mixed = np.vstack([faultless, pairs(*((0.4 - i / 1000, 0.0) for i in range(30)))])
    found = estimate_coverage_at_risk(mixed)
    # 73 of 100 hold 3 mistakes, 4.1 %. With 76 or more clearly too many are wrong.
    assert found.value == 0.73
    assert found.low is not None and found.high is not None
    assert found.low < 0.73 < found.high < 0.80


@pytest.mark.parametrize(
    ("figure", "estimator"), [(ece, estimate_ece), (coverage_at_risk, estimate_coverage_at_risk)]
)
def test_intervals_hold_where_the_bootstrap_does_not(
    figure: Callable[[Values], float | None], estimator: Callable[[Values], Estimate]
) -> None:
    # More bins than of 70 items, but these confidences have no gap in any.
    truth = figure(drawn(400_000, seed=99))
    assert truth is not None
    hits = 0
    for seed in range(60):
        found = estimator(drawn(70, seed))
        assert found.low is not None and found.high is not None
        hits += found.low - 0.005 <= truth <= found.high + 0.005
    assert hits >= 54
