from __future__ import annotations

import pytest
from doubles.commands import Rag
from doubles.compared import A, B, answered, runs
from doubles.items import item, skipped, write_run

from eval.items import Item


@pytest.mark.parametrize(
    ("metric", "delta", "code"),
    [
        ("correct", "0.2", 0),
        ("correct", "0.19", 4),
        ("correct", "0", 4),
        ("brier", "0.1", 0),
        ("over_refused", "0", 0),
        ("seconds", "0.99", 4),  # higher is worse
        ("seconds", "1", 0),
        ("seconds_p50", "0.99", 4),
        ("prompt_tokens", "0", 0),
    ],
)
def test_worse_by_more_than_allowed_is_exit_code_4(
    rag: Rag, metric: str, delta: str, code: int
) -> None:
    runs([answered(n, n < 8) for n in range(10)],
         [answered(n, n < 6, seconds=6.0) for n in range(10)])  # fmt: skip
    ran = rag("eval", "compare", A, B, "--fail-if-worse", f"{metric}:{delta}")
    assert ran.code == code
    assert bool(ran.err) == (code == 4)


def test_the_breach_is_told_and_every_run_counts(rag: Rag) -> None:
    write_run(A, [answered(n) for n in range(10)])
    write_run(B, [answered(n) for n in range(10)])
    write_run("c", [answered(n, n < 7) for n in range(10)])
    limits = ("--fail-if-worse", "correct:0.1", "--fail-if-worse", "seconds:0")
    ran = rag("eval", "compare", A, B, "c", *limits)
    said_so = "c is worse: correct went from 1 to 0.7 on 10 questions, by more than 0.1.\n"
    assert (ran.code, ran.err) == (4, said_so)
    ran = rag("eval", "compare", A, B, "c", *limits, "--json", "--metric", "brier")
    assert ran.code == 4
    assert [c["worse"] for c in ran.json["comparisons"]] == [
        [],
        [
            {
                "metric": "correct",
                "delta": 0.1,
                "worse_by": pytest.approx(0.3),
                "failed_unseen": 0,
            }
        ],
    ]
    # A metric with a limit is compared, whatever --metric names.
    assert list(ran.json["comparisons"][0]["metrics"]) == ["brier", "correct", "seconds"]


def test_a_limit_that_cannot_be_checked_does_not_pass(rag: Rag) -> None:
    runs([answered(1)], [answered(1)])
    ran = rag("eval", "compare", A, B, "--fail-if-worse", "refused:0.1")
    assert ran.code == 1
    assert ran.err == (
        "refused cannot be compared: it applies to no question that a and b share. Use "
        "--fail-if-worse with a metric of the table.\n"
    )


def broken(n: int) -> Item:
    return item(id=f"q-{n}", gold=[["a"]], error="broke off")


@pytest.mark.parametrize(
    "metric", ["ece", "aurc", "coverage_at_5_risk", "seconds", "seconds_p95", "extra_citations"]
)
def test_failing_more_questions_is_worse_where_a_metric_leaves_them_out(
    rag: Rag, metric: str
) -> None:
    good = [answered(n) for n in range(8)]
    # The wrong answers of a are those that fail in b.
    runs([*good, answered(8, False), answered(9, False)], [*good, broken(8), broken(9)])
    ran = rag("eval", "compare", A, B, "--fail-if-worse", f"{metric}:0.5")
    assert ran.code == 4
    assert ran.err == (
        f"b is worse: 2 more of its questions failed than of a, and {metric} leaves failed ones "
        "out. Ask them again with `rag eval answers --retry-failed`.\n"
    )
    limits = ("--fail-if-worse", f"{metric}:0.5", "--json")
    (worse,) = rag("eval", "compare", A, B, *limits).json["comparisons"][0]["worse"]
    assert worse["failed_unseen"] == 2
    assert rag("eval", "compare", B, A, "--fail-if-worse", f"{metric}:1").code == 0


def test_a_share_counts_failed_questions_itself(rag: Rag) -> None:
    good = [answered(n) for n in range(9)]
    runs([*good, answered(9)], [*good, broken(9)])
    assert rag("eval", "compare", A, B, "--fail-if-worse", "correct:0.1").code == 0
    assert rag("eval", "compare", A, B, "--fail-if-worse", "correct:0.09").code == 4


def test_a_run_whose_every_question_failed_is_worse(rag: Rag) -> None:
    runs([answered(1), answered(2)], [broken(1), broken(2)])
    ran = rag("eval", "compare", A, B, "--fail-if-worse", "seconds:1")
    assert ran.code == 4
    assert ran.err.startswith("b is worse: 2 more of its questions failed than of a, and seconds")


def test_a_run_that_stopped_early_does_not_pass(rag: Rag) -> None:
    runs([answered(1), answered(2)], [answered(1), skipped(id="q-2")])
    ran = rag("eval", "compare", A, B, "--fail-if-worse", "correct:0.1")
    assert ran.code == 1
    assert "1 questions were not reached in a or b: finish both runs" in ran.err
    assert rag("eval", "compare", A, B).code == 0


@pytest.mark.parametrize("limit", ["correct", "correct:", ":0.1", "correct:x", "correct:-0.1",
                                   "correct:nan", "correct:inf"])  # fmt: skip
def test_a_malformed_limit_is_a_usage_error(rag: Rag, limit: str) -> None:
    runs([answered(1)], [answered(1)])
    ran = rag("eval", "compare", A, B, "--fail-if-worse", limit)
    assert (ran.code, ran.out) == (2, "")
    if limit == ":0.1":
        assert ran.err.startswith("There is no metric ''.")
    else:
        assert ran.err == (
            f"--fail-if-worse {limit}: give a metric and how much worse it may be, as in "
            "--fail-if-worse correct:0.05\n"
        )


@pytest.mark.parametrize(
    ("name", "closest"),
    [("Gold_Recal", "gold_recall"), ("ndcg", "ndcg@10"), ("p95", "seconds_p95")],
)
def test_the_closest_metric_whatever_the_case(rag: Rag, name: str, closest: str) -> None:
    runs([answered(1)], [answered(1)])
    ran = rag("eval", "compare", A, B, "--fail-if-worse", f"{name}:0.1")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"There is no metric {name!r}. Is {closest!r} meant?")


@pytest.mark.parametrize("option", [("--metric", "corect"), ("--fail-if-worse", "corect:0.1")])
def test_an_unknown_metric_is_a_usage_error_that_names_the_closest(
    rag: Rag, option: tuple[str, str]
) -> None:
    runs([answered(1)], [answered(1)])
    ran = rag("eval", "compare", A, B, *option)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("There is no metric 'corect'. Is 'correct' meant? All: correct, ")
