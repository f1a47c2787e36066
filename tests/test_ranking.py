from __future__ import annotations

from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.retrieval.ranking import Scored, differences, measure

# Ranks: irrelevant, grade 1, unjudged, grade 3. The paper "gone" is nowhere in the run.
QRELS = {"q1": {"a": 0, "b": 1, "d": 3, "gone": 2}, "q2": {"a": 1}, "q3": {"a": 0}, "q4": {"b": 1}}
RUN = {
    "q1": [("a", 9.0), ("b", 8.0), ("c", 8.0), ("d", 1.0)],
    "q2": [("x", 1.0), ("a", 0.5)],
    "q3": [("a", 1.0)],
    "q5": [("a", 1.0)],
}


def ranked(*papers: str) -> list[tuple[str, float]]:
    return [(paper, 0.0) for paper in papers]


def test_measures_by_hand() -> None:
    found = measure("mine", RUN, QRELS)
    dcg = 1 / log2(3) + 3 / log2(5)
    ideal = 3 + 2 / log2(3) + 1 / log2(4)
    assert found.values["nDCG@10"] == pytest.approx(
        {"q1": dcg / ideal, "q2": 1 / log2(3), "q3": 0, "q4": 0}, abs=1e-12
    )
    assert found.values["MRR@10"] == {"q1": 1 / 2, "q2": 1 / 2, "q3": 0, "q4": 0}
    assert found.values["Recall@5"] == pytest.approx({"q1": 2 / 3, "q2": 1, "q3": 0, "q4": 0})
    assert found.values["MAP@100"] == pytest.approx(
        {"q1": (1 / 2 + 2 / 4) / 3, "q2": 1 / 2, "q3": 0, "q4": 0}, abs=1e-12
    )
    assert found.without_result == ("q4",)
    assert found.estimates()["MRR@10"].value == pytest.approx(1 / 4)
    assert found.estimates()["MRR@10"].n == 4


def test_the_order_of_the_run_counts_whatever_its_scores() -> None:
    qrels = {"q": {"a": 1}}
    assert measure("x", {"q": ranked("z", "a", "b")}, qrels).values["MRR@10"] == {"q": 1 / 2}
    assert measure("x", {"q": ranked("a", "z", "b")}, qrels).values["MRR@10"] == {"q": 1}


def test_cutoffs_fall_between_ranks() -> None:
    others = [f"x{n}" for n in range(200)]
    tenth = measure("x", {"q": ranked(*others[:9], "a")}, {"q": {"a": 1}})
    eleventh = measure("x", {"q": ranked(*others[:10], "a")}, {"q": {"a": 1}})
    assert tenth.values["nDCG@10"]["q"] == pytest.approx(1 / log2(11), abs=1e-12)
    assert (tenth.values["MRR@10"]["q"], tenth.values["Recall@10"]["q"]) == (1 / 10, 1)
    assert (eleventh.values["nDCG@10"]["q"], eleventh.values["MRR@10"]["q"]) == (0, 0)
    assert (eleventh.values["Recall@10"]["q"], eleventh.values["Recall@100"]["q"]) == (0, 1)
    assert eleventh.values["MAP@100"]["q"] == pytest.approx(1 / 11)


def test_measures_that_look_deeper_than_the_run_are_left_out() -> None:
    found = measure("x", RUN, QRELS, depth=50)
    assert list(found.values) == ["nDCG@10", "MRR@10", "Recall@5", "Recall@10"]
    assert "Recall@100" in measure("x", RUN, QRELS, depth=100).values


def test_a_grade_below_0_counts_as_0() -> None:
    run = {"q": ranked("spam", "a")}
    with_spam = measure("x", run, {"q": {"a": 1, "spam": -2}})
    assert with_spam.values == measure("x", run, {"q": {"a": 1, "spam": 0}}).values
    assert measure("x", run, {"q": {"spam": -2}}).values["nDCG@10"] == {"q": 0}


def test_differences_are_paired_by_query() -> None:
    qrels = {f"q{n}": {"a": 1} for n in range(8)}
    best = measure("best", dict.fromkeys(qrels, ranked("a")), qrels)
    second = measure("second", dict.fromkeys(qrels, ranked("b", "a")), qrels)
    found = differences(best, second)
    assert found["MRR@10"].difference == 1 / 2
    # all eight signs agree: 2 of 2^8 ways
    assert found["MRR@10"].p == pytest.approx(2 / 2**8, abs=0.005)
    assert found["Recall@5"].difference == 0
    assert found["Recall@5"].p == 1
    with pytest.raises(ValueError, match="different queries"):
        differences(best, Scored("third", {"MRR@10": {"q0": 1.0}}, ()))


@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.integers(-1, 4), min_size=1),
    st.permutations("abcdefgh"),
    st.integers(0, 8),
)
def test_every_value_is_a_share_and_the_ideal_order_is_the_best(
    grades: dict[str, int], order: list[str], length: int
) -> None:
    qrels = {"q": grades}
    found = measure("x", {"q": ranked(*order[:length])}, qrels)
    ideal = measure("x", {"q": ranked(*sorted(grades, key=lambda p: -grades[p]))}, qrels)
    relevant = any(grade > 0 for grade in grades.values())
    for name, values in found.values.items():
        assert 0 <= values["q"] <= ideal.values[name]["q"] <= 1
        if name in ("nDCG@10", "MRR@10"):
            assert ideal.values[name]["q"] == pytest.approx(float(relevant))
