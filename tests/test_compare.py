from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from doubles.commands import Rag
from doubles.compared import TWENTY, A, B, answered, better_and_worse, cells, refused, runs
from doubles.items import item, said, skipped, write_run
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.metrics.scores import METRICS
from eval.runs.comparison import compare, side
from eval.runs.directory import read_run
from eval.statistics.estimates import holm, paired_test


def test_a_difference_has_an_interval_and_a_p_value(rag: Rag) -> None:
    better_and_worse()
    ran = rag("eval", "compare", A, B, "--metric", "correct")
    assert ran.code == 0
    assert ran.err == ""
    expected = paired_test([1.0] * 8 + [0.0] * 4 + [1.0] * 5 + [0.0] * 3, [1.0] * 12 + [0.0] * 8)
    interval = f"{expected.low:.3f}, {expected.high:.3f}"
    row = ["Correct", "0.600", "0.650", "0.050", interval, f"{expected.p:.3f}", "20", "5", "4"]
    assert cells(ran, "Correct") == row
    assert ran.out.splitlines()[:3] == [
        "A  a",
        "B  b",
        "20 questions in both; 0 failed in A, 0 in B",
    ]
    assert all(len(line) <= 80 for line in ran.out.splitlines())


def test_items_won_and_lost_are_named_with_where_to_look(rag: Rag) -> None:
    better_and_worse()
    ran = rag("eval", "compare", A, B)
    won = [f"  q-{n}  b/results.jsonl:{n + 1}" for n in range(12, 17)]
    lost = [f"  q-{n}  b/results.jsonl:{n + 1}" for n in range(8, 12)]
    assert ran.out.splitlines()[-12:] == ["Better in B: 5", *won, "", "Worse in B: 4", *lost]
    (B / "report.html").write_text("<html>")
    ran = rag("eval", "compare", A, B)
    assert "  q-12  b/report.html#item-q-12\n" in ran.out


def test_links_lead_to_any_id_and_to_the_last_attempt(rag: Rag) -> None:
    odd = "ä b#1/2"
    runs([answered(1), answered(2, False, id=odd)], [answered(1), answered(2, id=odd)])
    first, second = (B / "results.jsonl").read_text().splitlines()
    (B / "results.jsonl").write_text("\n".join([second, first, second]) + "\n")
    (A / "report.html").write_text("<html>")
    found = rag("eval", "compare", A, B, "--json").json["comparisons"][0]
    assert found["won"] == [
        {"id": odd, "a": "a/report.html#item-%C3%A4%20b%231%2F2", "b": "b/results.jsonl:3"}
    ]


def test_json_has_every_metric(rag: Rag) -> None:
    better_and_worse()
    (found,) = rag("eval", "compare", A, B, "--json").json["comparisons"]
    assert list(found) == [
        "a", "b", "shared", "failed", "failed_a", "failed_b", "only_a", "only_b", "other_text",
        "not_reached", "other_expectations", "differing", "metrics", "won", "lost", "worse",
    ]  # fmt: skip
    assert list(found["metrics"]) == list(METRICS)
    correct = found["metrics"]["correct"]
    assert list(correct) == [
        "a", "b", "difference", "low", "high", "p", "p_holm", "n", "won", "lost",
    ]  # fmt: skip
    assert (correct["a"], correct["b"], correct["n"]) == (0.6, 0.65, 20)
    assert [e["id"] for e in found["lost"]] == ["q-8", "q-9", "q-10", "q-11"]
    assert (found["metrics"]["refused"]["n"], found["metrics"]["refused"]["p"]) == (0, None)
    seconds = found["metrics"]["seconds"]
    assert seconds["difference"] == pytest.approx(-1 - sum(n / 20 for n in TWENTY) / 20)
    assert (seconds["won"], seconds["lost"]) == (20, 0)


def test_p_values_are_corrected_for_their_number(rag: Rag) -> None:
    better_and_worse()
    names = ["correct", "seconds", "brier"]
    options = [option for name in names for option in ("--metric", name)]
    metrics = rag("eval", "compare", A, B, "--json", *options).json["comparisons"][0]["metrics"]
    assert list(metrics) == names
    plain = [metrics[name]["p"] for name in names]
    assert [metrics[name]["p_holm"] for name in names] == pytest.approx(holm(plain))
    assert metrics["seconds"]["p_holm"] == pytest.approx(3 * metrics["seconds"]["p"])


def test_figures_that_are_no_means_have_intervals_and_no_p(rag: Rag) -> None:
    better_and_worse()
    metrics = rag("eval", "compare", A, B, "--json").json["comparisons"][0]["metrics"]
    median = metrics["seconds_p50"]
    a, b = (np.array([base + n / by for n in TWENTY]) for base, by in ((4, 10), (3, 20)))
    assert median["difference"] == pytest.approx(np.median(b) - np.median(a))
    assert median["low"] < median["difference"] < median["high"] < 0
    assert (median["p"], median["won"]) == (None, None)
    for name in ("ece", "aurc", "coverage_at_5_risk"):
        assert metrics[name]["n"] == 20
        assert metrics[name]["low"] <= metrics[name]["difference"] <= metrics[name]["high"]


def test_refusal_precision_is_of_the_refusals_of_each_run(rag: Rag) -> None:
    over = [item(id=f"q-{n}", gold=[["a"]]) for n in range(3)]
    right = [refused(n) for n in range(3, 20)]
    runs([*over, *right], [*(answered(n) for n in range(3)), *right])
    metrics = rag("eval", "compare", A, B, "--json").json["comparisons"][0]["metrics"]
    found = metrics["refusal_precision"]
    assert (found["a"], found["b"], found["n"]) == (17 / 20, 1.0, 20)
    assert 0 <= found["low"] < 3 / 20 < found["high"]


def test_won_and_lost_by_a_metric_where_lower_is_better(rag: Rag) -> None:
    runs([answered(1, seconds=2.0), answered(2, seconds=2.0), answered(3)],
         [answered(1, seconds=1.0), answered(2, seconds=3.0), answered(3)])  # fmt: skip
    found = rag("eval", "compare", A, B, "--metric", "seconds", "--json").json["comparisons"][0]
    assert [[e["id"] for e in found[key]] for key in ("won", "lost")] == [["q-1"], ["q-2"]]
    # A figure that no single item has: by being right.
    found = rag("eval", "compare", A, B, "--metric", "ece", "--json").json["comparisons"][0]
    assert (found["won"], found["lost"]) == ([], [])


def test_a_right_refusal_is_a_right_answer() -> None:
    wrongly = item(said("a"), id="q-2", kind="unanswerable")
    runs([answered(1), wrongly, refused(3)], [answered(1), refused(2), refused(3)])
    found = compare(side(read_run(A)), side(read_run(B)), ["correct", "refused"])
    assert (found.won, found.lost) == (("q-2",), ())


def test_only_shared_questions_are_compared_and_the_others_named(rag: Rag) -> None:
    fresh = [answered(n) for n in range(2)]
    changed = answered(2, question="By how much now?")
    elsewhere = replace(answered(3), gold=(frozenset({"z"}),))
    elsewhere = replace(elsewhere, question=replace(elsewhere.question, gold=(("z",),)))
    left = [
        *fresh,
        answered(2),
        answered(3),
        skipped(id="q-4"),
        *(answered(n) for n in range(5, 12)),
    ]
    right = [*fresh, changed, elsewhere, answered(4), answered(99)]
    runs(left, right)
    ran = rag("eval", "compare", A, B, "--metric", "gold_recall")
    assert ran.out.splitlines()[2:8] == [
        "3 questions in both; 0 failed in A, 0 in B",
        "7 only in A: q-5, q-6, q-7, q-8, q-9 and 2 more",
        "1 only in B: q-99",
        "1 with another text, left out: q-2",
        "1 not reached in one of them, left out: q-4",
        "1 expect other papers or facts in B than in A: q-3",
    ]
    assert cells(ran, "Gold recall")[1:3] == ["1.000", "0.667"]
    found = rag("eval", "compare", A, B, "--json").json["comparisons"][0]
    assert (found["shared"], found["only_b"], found["other_text"]) == (3, ["q-99"], ["q-2"])
    assert (found["not_reached"], found["other_expectations"]) == (["q-4"], ["q-3"])


def test_failed_items_are_named_and_count_with_the_worst_share(rag: Rag) -> None:
    broken = item(id="q-1", gold=[["a"]], error="broke off")
    runs([answered(1), answered(2)], [broken, answered(2)])
    ran = rag("eval", "compare", A, B)
    assert "2 questions in both; 0 failed in A, 1 in B\n1 failed in B: q-1\n\n" in ran.out
    found = rag("eval", "compare", A, B, "--json").json["comparisons"][0]
    assert (found["failed"], found["failed_a"], found["failed_b"]) == (
        {"a": 0, "b": 1}, [], ["q-1"],
    )  # fmt: skip
    assert cells(ran, "Correct")[1:3] == ["1.000", "0.500"]
    # Seconds are of the questions that both have an answer to.
    assert cells(ran, "Seconds")[6] == "1"


def test_what_the_runs_were_made_with_is_named_where_it_differs(rag: Rag) -> None:
    runs([answered(1)], [answered(1)], model="large", answer={"seed": 7}, code="f" * 64, judge=True)
    ran = rag("eval", "compare", A, B)
    assert ran.code == 0
    said_so = (
        'Made differently: model ("small", "large"), answer.seed (0, 7), code, judge (null, true)'
    )
    assert said_so in ran.out.splitlines()
    found = rag("eval", "compare", A, B, "--json").json["comparisons"][0]["differing"]
    assert found[1:3] == [
        {"name": "answer.seed", "a": 0, "b": 7},
        {"name": "code", "a": None, "b": "f" * 64},
    ]


def test_another_corpus_is_named(rag: Rag) -> None:
    runs([answered(1)], [answered(1)], papers="f" * 64, chunks=7)
    ran = rag("eval", "compare", A, B)
    assert ran.out.splitlines()[3] == "Made differently: papers, chunks (null, 7)"
    write_run("c", [answered(1)], identity={"papers": "0" * 64})
    write_run("d", [answered(1)], identity={"papers": "f" * 64})
    ran = rag("eval", "compare", "c", "d")
    assert "Made differently: papers\n" in ran.out
    (found,) = rag("eval", "compare", "c", "d", "--json").json["comparisons"]
    assert found["differing"] == [{"name": "papers", "a": "0" * 64, "b": "f" * 64}]


@given(
    st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=12),
    st.integers(0, 3),
    st.integers(0, 3),
)
@settings(max_examples=20, deadline=None)
def test_the_other_way_round_everything_is_the_other_way_round(
    rights: list[tuple[bool, bool]], more_a: int, more_b: int
) -> None:
    with TemporaryDirectory() as directory:
        sides = [
            side(read_run(write_run(Path(directory) / name, [*both, *own])))
            for name, both, own in (
                ("a", (answered(n, a) for n, (a, _) in enumerate(rights)),
                 (answered(100 + n) for n in range(more_a))),
                ("b", (answered(n, b) for n, (_, b) in enumerate(rights)),
                 (answered(200 + n) for n in range(more_b))),
            )
        ]  # fmt: skip
    names = ["correct", "gold_recall", "brier"]
    there, back = compare(*sides, names), compare(*reversed(sides), names)
    assert (there.won, there.lost) == (back.lost, back.won)
    assert len(there.shared) == len(back.shared) == len(rights)
    assert (len(there.only_a), len(there.only_b)) == (more_a, more_b)
    assert (there.only_a, there.only_b) == (back.only_b, back.only_a)
    for one, other in zip(there.metrics, back.metrics, strict=True):
        assert (one.a, one.b, one.won, one.lost) == (other.b, other.a, other.lost, other.won)
        assert one.difference == pytest.approx(-(other.difference or 0.0))
        assert one.low == pytest.approx(-(other.high or 0.0))
        assert one.p == pytest.approx(other.p)
        assert (one.worse_by or 0.0) == pytest.approx(-(other.worse_by or 0.0))


def test_a_run_against_itself_differs_in_nothing(rag: Rag) -> None:
    better_and_worse()
    (found,) = rag("eval", "compare", A, A, "--json").json["comparisons"]
    differences = [m["difference"] for m in found["metrics"].values() if m["n"]]
    assert differences
    assert set(differences) == {0.0}
    assert {m["p"] for m in found["metrics"].values() if m["p"] is not None} == {1.0}
    assert (found["differing"], found["won"], found["lost"]) == ([], [], [])


def test_more_runs_are_each_compared_to_the_first(rag: Rag) -> None:
    better_and_worse()
    write_run("c", [answered(n) for n in TWENTY])
    ran = rag("eval", "compare", A, B, "c", "--metric", "correct")
    assert [line for line in ran.out.splitlines() if re.match("[AB]  ", line)] == [
        "A  a", "B  b", "A  a", "B  c",
    ]  # fmt: skip
    found = rag("eval", "compare", A, B, "c", "--json").json["comparisons"]
    assert [(c["a"], c["b"]) for c in found] == [("a", "b"), ("a", "c")]
