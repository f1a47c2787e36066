from __future__ import annotations

import json
import re

import pytest
from doubles.commands import UNSEEN
from doubles.items import item, said, skipped
from doubles.timing import growth
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.items import Item
from eval.metrics.scores import MEANS, METRICS
from eval.metrics.summary import aligned, shown, summarize, table
from eval.statistics.estimates import estimate, quantile

RIGHT = said("a", text="It is 12%.")
GOLD = {"gold": [["a"]], "must_include": ("12",)}


def right(n: int, kind: str = "fact", **more: object) -> Item:
    return item(RIGHT, id=f"q-{n}", kind=kind, found="ab", **GOLD, **more)


def wrong(n: int, kind: str = "fact", **more: object) -> Item:
    return item(said("b"), id=f"q-{n}", kind=kind, found="ba", **GOLD, **more)


RUN = [
    right(1, confidence=0.9, seconds=4.0, cached=True),
    wrong(2, confidence=0.6, seconds=8.0),
    right(3, kind="list", confidence=0.8, seconds=6.0),
    item(id="q-4", kind="unanswerable", confidence=0.1, seconds=2.0),
    item(id="q-5", kind="list", error="broke off", **GOLD),
    skipped(id="q-6", kind="list", **GOLD),
]


def test_what_was_reached_failed_and_skipped_is_counted() -> None:
    found = summarize(RUN)
    assert (found.n, found.failed, found.skipped, found.cached) == (5, 1, 1, 1)
    assert {kind: (k.n, k.failed, k.skipped) for kind, k in found.by_kind.items()} == {
        "fact": (2, 0, 0),
        "list": (2, 1, 1),
        "unanswerable": (1, 0, 0),
    }


def test_failed_items_stay_in_the_means_of_shares_and_skipped_ones_do_not() -> None:
    overall = summarize(RUN).overall
    assert overall["correct"] == estimate([1, 0, 1, 0], share=True)
    assert overall["mrr@10"] == estimate([1, 0.5, 1, 0], share=True)
    assert overall["brier"].value == pytest.approx((0.01 + 0.36 + 0.04 + 0.01 + 1) / 5)
    assert overall["brier"].n == 5
    assert overall["seconds"] == estimate([4.0, 8.0, 6.0, 2.0])
    assert overall["seconds_p95"] == quantile([4.0, 8.0, 6.0, 2.0], 0.95)
    assert (overall["refused"].value, overall["refused"].n) == (1.0, 1)


def test_kinds_have_every_mean_and_no_other_figure() -> None:
    found = summarize(RUN)
    assert list(found.overall) == list(METRICS)
    assert all(list(kind.metrics) == list(MEANS) for kind in found.by_kind.values())
    assert found.by_kind["list"].metrics["correct"] == estimate([1, 0], share=True)
    assert found.by_kind["unanswerable"].metrics["correct"] == estimate([])


def test_confidence_is_judged_over_the_items_that_have_one() -> None:
    found = summarize(RUN)
    assert (found.foretold, found.bins) == (4, 1)
    (only,) = found.reliability
    assert (only.n, only.confidence, only.accuracy) == (4, pytest.approx(0.6), 0.5)
    assert [(p.threshold, p.risk) for p in found.risk_coverage] == [
        (0.9, 0.0),
        (0.8, 0.0),
        (0.6, pytest.approx(1 / 3)),
        (0.1, 0.5),
    ]
    assert found.overall["ece"].value == pytest.approx(0.1)
    assert found.overall["aurc"].value == pytest.approx((0 + 0 + 1 / 3 + 1 / 2) / 4)
    assert found.overall["coverage_at_5_risk"].value == 0.5


def test_percentiles_lie_between_neighbours_and_failed_items_have_none() -> None:
    timed = [right(n, seconds=float(n)) for n in range(1, 41)]
    overall = summarize([*timed, item(id="q-0", error="broke off")]).overall
    assert (overall["seconds_p50"].value, overall["seconds_p50"].n) == (20.5, 40)
    # 0.95 * 39 = 37.05 beyond the lowest.
    assert overall["seconds_p95"].value == pytest.approx(38.05)
    assert (overall["verify_seconds_p50"].value, overall["verify_seconds_p95"].value) == (0.75,) * 2
    # Binomial(40, 1/2): the 14th and the 27th bound the median.
    assert (overall["seconds_p50"].low, overall["seconds_p50"].high) == (14.0, 27.0)


def test_ten_items_a_bin() -> None:
    run = [(right if n >= 15 else wrong)(n, confidence=n / 40) for n in range(30)]
    found = summarize([*run, item(id="q-30", error="broke off", **GOLD)]).to_json()
    assert found["calibration"] == {
        "bins": 3,
        "n": 30,
        "table": [
            {
                "low": pytest.approx(low / 40),
                "high": pytest.approx((low + 9) / 40),
                "confidence": pytest.approx((low + 4.5) / 40),
                "accuracy": accuracy,
                "n": 10,
            }
            for low, accuracy in ((0, 0.0), (10, 0.5), (20, 1.0))
        ],
    }
    gaps = [4.5 / 40, 0.5 - 14.5 / 40, 1 - 24.5 / 40]
    assert found["overall"]["ece"]["value"] == pytest.approx(sum(gaps) / 3)
    # The 15 right ones are the most confident; a failed item has no confidence.
    assert found["overall"]["coverage_at_5_risk"]["value"] == 0.5
    assert found["overall"]["aurc"]["value"] == pytest.approx(
        sum((k - 15) / k for k in range(16, 31)) / 30
    )


@given(st.lists(st.sampled_from([*RUN, right(7, kind="mine"), wrong(8, "list")]), max_size=8))
@settings(max_examples=15, deadline=None)
def test_kinds_add_up_to_the_whole(run: list[Item]) -> None:
    found = summarize(run)
    kinds = found.by_kind.values()
    assert found.n + found.skipped == len(run)
    for count in ("n", "failed", "skipped"):
        assert sum(getattr(kind, count) for kind in kinds) == getattr(found, count)
    for name in MEANS:
        whole, parts = found.overall[name], [kind.metrics[name] for kind in kinds]
        assert sum(part.n for part in parts) == whole.n
        if whole.value is not None:
            assert sum(p.n * (p.value or 0.0) for p in parts) == pytest.approx(
                whole.n * whole.value
            )


def test_json_has_the_documented_shape() -> None:
    found = json.loads(json.dumps(summarize(RUN).to_json(), allow_nan=False))
    assert list(found) == [
        "n", "failed", "skipped", "cached", "overall", "by_kind", "calibration", "risk_coverage",
    ]  # fmt: skip
    estimates = [*found["overall"].values(), *found["by_kind"]["list"]["metrics"].values()]
    assert all(list(entry) == ["value", "low", "high", "n"] for entry in estimates)
    assert found["calibration"] == {
        "bins": 1,
        "n": 4,
        "table": [
            {"low": 0.1, "high": 0.9, "confidence": pytest.approx(0.6), "accuracy": 0.5, "n": 4}
        ],
    }
    assert found["risk_coverage"][0] == {"coverage": 0.25, "risk": 0.0, "threshold": 0.9}


def test_the_same_run_has_the_same_figures() -> None:
    assert summarize(RUN).to_json() == summarize(iter_once(RUN)).to_json()


def iter_once(items: list[Item]) -> list[Item]:
    """A sequence that can be read but once, as long runs should be."""

    class Once(list[Item]):
        read = 0

        def __iter__(self):  # type: ignore[no-untyped-def]
            assert self.read == 0
            self.read += 1
            return super().__iter__()

    return Once(items)


@pytest.mark.parametrize("run", [[], [skipped()], [item(error="broke off")], [item(RIGHT)]])
def test_runs_of_which_little_is_known(run: list[Item]) -> None:
    found = summarize(run)
    assert found.n == sum(one.result is not None for one in run)
    json.dumps(found.to_json(), allow_nan=False)
    assert table(found)[0].startswith(f"{found.n} questions, {found.failed} of them failed;")


def test_the_table_shows_n_intervals_and_kinds() -> None:
    lines = table(summarize(RUN))
    assert lines[0] == "5 questions, 1 of them failed; 1 skipped"
    assert [re.sub(" +", " ", line) for line in lines[2:5]] == [
        " mean 95 % interval n",
        "Correct 0.500 [0.094, 0.906] 4",
        "All gold cited 0.500 [0.094, 0.906] 4",
    ]
    # Of four, neither the lowest nor the highest bounds the median.
    assert [line.split() for line in lines if line.startswith("Seconds p50")] == [
        ["Seconds", "p50", "5.00", "4"]
    ]
    # Of how many bins an error is, is part of it.
    assert "Calibration error, 1 bin " in "\n".join(lines)
    assert "Calibration error, 2 bins " in "\n".join(table(summarize(RUN * 5)))
    assert lines[lines.index("", 2) + 1 :] == [
        "              n  failed  correct   gold  facts  precision  refused  seconds",
        "fact          2       0    0.500  0.500  1.000      1.000    0.000     6.00",
        "list          2       1    0.500  0.500  0.500      0.500    0.500     6.00",
        "unanswerable  1       0        -      -      -          -    1.000     2.00",
    ]
    assert all(len(line) <= 80 for line in lines)


def test_names_of_kinds_cannot_steer_the_terminal_or_the_columns() -> None:
    lines = table(summarize([right(1, kind="\x1b[31mred\u202e\nx"), right(2, kind="比較")]))
    assert not UNSEEN.search("".join(lines))
    # Two cells a character.
    assert lines[-1].startswith("比較") and lines[-1].index("1") == lines[-2].index("1") - 2


def test_columns_are_aligned() -> None:
    assert aligned([("", "n"), ("long", "1"), ("x", "22")]) == ["       n", "long   1", "x     22"]


def test_figures_are_shown_by_their_unit() -> None:
    assert shown(0.98765, "share") == "0.988"
    assert shown(1234.5, "tokens") == "1,234"
    assert (shown(2.345, "seconds"), shown(0.1, "count"), shown(None, "share")) == (
        "2.35", "0.10", "-",
    )  # fmt: skip


def test_time_grows_with_the_items_and_not_with_their_square() -> None:
    kinds = ("fact", "method", "compare", "list", "reviewer", "followup", "unanswerable", "mine")
    run = [
        (right if n % 3 else wrong)(n, kinds[n % 8], confidence=n / 700, seconds=1 + n / 7)
        for n in range(700)
    ]
    assert growth(lambda: summarize(run[:70]), lambda: summarize(run)) < 40
