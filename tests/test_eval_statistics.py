from __future__ import annotations

import numpy as np
import pytest
from doubles.timing import growth
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, bootstrap, permutation_test

from eval.statistics import estimates as statistics
from eval.statistics.estimates import Estimate, estimate, holm, paired_test, quantile
from eval.statistics.intervals import proportion
from eval.statistics.simulate import (
    DIFFERENCES,
    POPULATIONS,
    coverage,
    difference_coverage,
    false_positives,
)

SHARES = st.lists(st.sampled_from([0.0, 0.25, 1 / 3, 0.5, 1.0]), min_size=1, max_size=40)
NUMBERS = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40)


def test_a_share_has_the_mid_p_interval() -> None:
    found = estimate([1.0] * 56 + [0.0] * 14)
    assert (found.value, found.n) == (0.8, 70)
    assert found.low is not None and found.high is not None
    for end, beyond in ((found.low, binom.sf(56, 70, found.low)),
                        (found.high, binom.cdf(55, 70, found.high))):  # fmt: skip
        assert beyond + binom.pmf(56, 70, end) / 2 == pytest.approx(0.025, abs=1e-8)


def test_a_sample_of_ones_is_no_proof_of_perfection() -> None:
    # 0.5 p^70 = 0.025
    assert estimate([1.0] * 70) == Estimate(1.0, pytest.approx(0.05 ** (1 / 70), abs=1e-8), 1.0, 70)
    assert estimate([0] * 70) == Estimate(0.0, 0.0, pytest.approx(1 - 0.05 ** (1 / 70)), 70)


def test_samples_that_say_little() -> None:
    assert estimate([]) == Estimate(None, None, None, 0)
    assert estimate([3.5]) == Estimate(3.5, None, None, 1)
    assert estimate([3.5, 3.5, 3.5]) == Estimate(3.5, None, None, 3)
    assert estimate([1.0]) == Estimate(1.0, pytest.approx(0.05), 1.0, 1)
    alike = estimate([0.5] * 4, share=True)
    assert alike.low is not None and alike.high is not None
    # As wide as if half of the items were 0 and half 1: less cannot be excluded.
    assert (alike.low, alike.high) == pytest.approx(proportion(2, 4))


def test_a_few_faults_among_many_items() -> None:
    found = estimate([0.0] * 67 + [1.0, 1.0, 3.0])
    # Two pseudo-observations, 3 and -3: mean 5/72, mean square (11 + 18)/72.
    half = 1.959964 * np.sqrt((29 / 72 - (5 / 72) ** 2) / 72)
    assert found.value == pytest.approx(5 / 70)
    assert (found.low, found.high) == (0.0, pytest.approx(5 / 72 + half, abs=1e-6))


def test_skewed_values_have_a_longer_side() -> None:
    seconds = np.random.default_rng(5).lognormal(1, 1, 70)
    found = estimate(seconds.tolist())
    assert found.low is not None and found.high is not None and found.value is not None
    assert found.high - found.value > 1.2 * (found.value - found.low)
    theirs = bootstrap((seconds,), np.mean, method="BCa", rng=np.random.default_rng(0))
    # Wider than BCa, which covers less, yet of the same size.
    width = theirs.confidence_interval.high - theirs.confidence_interval.low
    assert width < found.high - found.low < 1.4 * width


@pytest.mark.parametrize("values", [[1.0, float("nan")], [float("inf")]])
def test_values_that_are_no_numbers_are_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="not finite"):
        estimate(values)
    with pytest.raises(ValueError, match="not finite"):
        paired_test(values, [0.0] * len(values))


def test_a_share_lies_between_0_and_1() -> None:
    with pytest.raises(ValueError, match=r"outside 0\.\.1"):
        estimate([0.5, 1.5], share=True)


@given(SHARES)
@settings(max_examples=60, deadline=None)
def test_the_interval_of_a_share_holds_it_and_stays_in_bounds(values: list[float]) -> None:
    found = estimate(values, share=True)
    assert found.value is not None and found.low is not None and found.high is not None
    assert 0 <= found.low <= found.value + 1e-9
    assert found.value - 1e-9 <= found.high <= 1
    mirrored = estimate([1 - v for v in values], share=True)
    assert mirrored.high is not None
    assert mirrored.high == pytest.approx(1 - found.low, abs=1e-6)


@given(NUMBERS, st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_the_same_values_give_the_same_interval(values: list[float], seed: int) -> None:
    assert estimate(values, seed=seed) == estimate(values, seed=seed)
    assert paired_test(values, values[::-1], seed) == paired_test(values, values[::-1], seed)


def test_quantiles_are_bounded_by_order_statistics() -> None:
    found = quantile([float(n) for n in range(1, 71)], 0.5)
    # Binomial(70, 1/2) lies below 27 in 2.0 % of the cases, below 28 in 3.6 %.
    assert found == Estimate(35.5, 27.0, 44.0, 70)
    assert quantile([float(n) for n in range(1, 71)], 0.95).high is None
    assert quantile([], 0.5) == Estimate(None, None, None, 0)


def test_the_bootstrap_of_a_statistic_agrees_with_scipys() -> None:
    x = np.random.default_rng(2).gamma(2, 1, 60)

    def spread(values: np.ndarray) -> float:
        return float(np.std(values))

    ours = statistics.bootstrap(x, spread)
    theirs = bootstrap((x,), np.std, method="BCa", n_resamples=999, rng=np.random.default_rng(0))
    low, high = theirs.confidence_interval
    assert (ours.value, ours.n) == (pytest.approx(np.std(x)), 60)
    assert (ours.low, ours.high) == (pytest.approx(low, rel=0.05), pytest.approx(high, rel=0.05))


def test_a_statistic_that_is_seldom_defined_has_no_interval() -> None:
    x = np.array([1.0, 2.0, 3.0])
    assert statistics.bootstrap(x[:0], np.mean) == Estimate(None, None, None, 0)
    assert statistics.bootstrap(x, lambda _: 1.0) == Estimate(1.0, None, None, 3)
    found = statistics.bootstrap(x, lambda v: float(v.mean()) if len(set(v)) == 3 else None)
    assert found == Estimate(2.0, None, None, 3)


def test_few_differences_are_counted_out() -> None:
    a, b = [0.9, 0.5, 0.7, 0.4], [0.5, 0.3, 0.6, 0.4]
    found = paired_test(a, b)
    assert found.difference == pytest.approx(0.175)
    # Of 8 patterns of .4, .2, .1 none is beyond +++, which --- equals.
    assert found.p == 1 / 8
    a, b = np.random.default_rng(1).normal(size=(2, 10))
    theirs = permutation_test(
        (a, b), lambda x, y, axis: (x - y).mean(axis=axis), permutation_type="samples",
        vectorized=True,
    )  # fmt: skip
    # The observed pattern and its mirror image count half here.
    assert paired_test(a.tolist(), b.tolist()).p == pytest.approx(theirs.pvalue - 1 / 2**10)


def test_many_differences_are_drawn() -> None:
    a, b = np.random.default_rng(3).normal([[0.35], [0.0]], 1, (2, 60))
    theirs = permutation_test(
        (a, b), lambda x, y, axis: (x - y).mean(axis=axis), permutation_type="samples",
        vectorized=True, n_resamples=20_000, rng=np.random.default_rng(0),
    )  # fmt: skip
    found = paired_test(a.tolist(), b.tolist())
    assert 0.001 < found.p < 0.2
    assert found.p == pytest.approx(theirs.pvalue, abs=0.01)
    assert found.low < found.difference < found.high


@pytest.mark.parametrize(
    ("better", "worse", "p"),
    [
        (0, 0, 1.0),
        (4, 0, 1 / 16),  # 2/16 are as far from 0, and count half
        (5, 0, 1 / 32),
        (3, 3, 1.0),
        (20, 5, 2 * binom.cdf(5, 25, 0.5) - binom.pmf(5, 25, 0.5)),
    ],
)
def test_answers_that_turn_right_or_wrong(better: int, worse: int, p: float) -> None:
    a = [1.0] * better + [0.0] * worse + [1.0] * 40
    b = [0.0] * better + [1.0] * worse + [1.0] * 40
    found = paired_test(a, b)
    assert found.p == pytest.approx(p)
    assert found.difference == pytest.approx((better - worse) / (40 + better + worse))


def test_runs_that_do_not_differ_may_yet_do_so() -> None:
    found = paired_test([1.0] * 70, [1.0] * 70)
    # Two pseudo-observations of 1 and -1 among 72.
    half = 1.959964 * np.sqrt(2 / 72 / 72)
    assert found == (0.0, pytest.approx(-half, abs=1e-6), pytest.approx(half, abs=1e-6), 1.0)


def test_pairs_are_pairs() -> None:
    for a, b in (([], []), ([1.0], [1.0, 2.0])):
        with pytest.raises(ValueError, match="as many values"):
            paired_test(a, b)


@given(NUMBERS.filter(lambda v: len(v) > 1))
@settings(max_examples=40, deadline=None)
def test_the_other_way_round_is_the_opposite(values: list[float]) -> None:
    a, b = values[: len(values) // 2], values[len(values) // 2 :][: len(values) // 2]
    one, other = paired_test(a, b), paired_test(b, a)
    assert other.difference == -one.difference
    assert (other.low, other.high) == pytest.approx((-one.high, -one.low))
    assert 0 < one.p <= 1
    assert other.p == pytest.approx(one.p, abs=0.03)  # drawn with other signs


def test_holm() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.6]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), max_size=12))
def test_corrected_p_values_keep_their_order(values: list[float]) -> None:
    corrected = holm(values)
    assert all(p <= c <= 1 for p, c in zip(values, corrected, strict=True))
    order = sorted(range(len(values)), key=values.__getitem__)
    assert [corrected[i] for i in order] == sorted(corrected)


# What `python -m eval.statistics.simulate` prints of these at 2,000 draws lies within 95 +- 2 %;
# drawing means with a bootstrap takes longer, so fewer of them here, with the wider bounds of
# their number.
@pytest.mark.parametrize("name", [name for name in POPULATIONS if "seconds" not in name])
def test_intervals_cover_what_they_promise(name: str) -> None:
    assert 0.93 <= coverage(POPULATIONS[name]) <= 0.97


@pytest.mark.parametrize("name", [name for name in POPULATIONS if "seconds" in name])
def test_intervals_of_skewed_means_cover_what_they_promise(name: str) -> None:
    assert 0.92 <= coverage(POPULATIONS[name], draws=600) <= 0.98


@pytest.mark.parametrize("name", DIFFERENCES)
def test_false_positives_are_as_rare_as_they_should_be(name: str) -> None:
    sparse = name.startswith(".04")
    draws = 2000 if "flip" in name else 300
    found = false_positives(DIFFERENCES[name], draws=draws)
    # Of three flips in 70 none can be significant: conservative, not wrong.
    low, high = (0.0, 0.02) if sparse else (0.035, 0.065) if draws == 2000 else (0.02, 0.09)
    assert low <= found <= high


def test_intervals_of_differences_cover_what_they_promise() -> None:
    flips = DIFFERENCES[".5 flip between 0 and 1"]
    assert 0.93 <= difference_coverage(flips, draws=1000) <= 0.97
    assert difference_coverage(DIFFERENCES[".04 flip between 0 and 1"], draws=500) > 0.97


def test_time_grows_with_the_items_and_not_with_their_square() -> None:
    a, b = np.random.default_rng(0).lognormal(size=(2, 10_000)).tolist()

    def measured(n: int) -> None:
        estimate(a[:n])
        paired_test(a[:n], b[:n])

    assert growth(lambda: measured(1_000), lambda: measured(10_000)) < 40
