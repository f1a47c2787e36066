from __future__ import annotations

import re
import warnings
from math import log2
from pathlib import Path

import pytest
from doubles.items import item, said, skipped
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.items import Item
from eval.metrics import expressions
from eval.metrics.expressions import found as matches
from eval.metrics.scores import MEANS, METRICS, STATISTICS, score, scored
from eval.questions.datasets import read_questions
from eval.retrieval.ranking import measure

SHARED = Path(__file__).parents[2] / "shared"
GOLD = [["a", "x"], ["b"]]


def only(given_item: Item, *names: str) -> tuple[float | None, ...]:
    scores = score(given_item)
    return tuple(scores[name] for name in names)


def test_every_score_is_a_metric_and_every_metric_says_what_it_is() -> None:
    assert list(score(item(said("a"), gold=GOLD))) == list(MEANS)
    assert list(METRICS) == [*MEANS, *STATISTICS]
    for name, metric in METRICS.items():
        assert metric.name == name
        assert metric.title
        assert metric.meaning.endswith(".")
        counted = metric.unit == "share" and metric.mean and name != "refusal_precision"
        assert (metric.worst is not None) == counted


def test_a_right_answer() -> None:
    asked = {"must_include": ("IS 12", r"%.*yes"), "must_not_include": ("13",)}
    right = item(
        said("a", text="It is 12.5%."), said("b", text="Yes."), gold=GOLD, found="xb", **asked
    )
    assert score(right) == {
        "correct": 1.0,
        "all_gold_cited": 1.0,
        "gold_recall": 1.0,
        "extra_citations": 0.0,
        "must_include": 1.0,
        "citation_precision": 1.0,
        "citation_recall": 1.0,
        "alce_precision": 1.0,
        "alce_recall": 1.0,
        "unsupported": 0.0,
        "unsupported_statements": 0.0,
        "invented_ids": 0.0,
        "refused": None,
        "over_refused": 0.0,
        "refusal_precision": None,
        "brier": pytest.approx(0.04),
        "recall@5": 1.0,
        "recall@10": 1.0,
        "ndcg@10": pytest.approx(1.0),
        "mrr@10": 1.0,
        "seconds": 5.0,
        "retrieve_seconds": 0.25,
        "generate_seconds": 4.0,
        "verify_seconds": 0.75,
        "prompt_tokens": 600.0,
        "completion_tokens": 30.0,
    }


@pytest.mark.parametrize(
    ("cited", "gold", "recall", "every", "extra"),
    [
        ("ab", GOLD, 1.0, 1.0, 0.0),
        ("ax", GOLD, 0.5, 0.0, 0.0),  # two alternatives of one group
        ("bcd", GOLD, 0.5, 0.0, 2.0),
        ("a", [["a"], []], 0.5, 0.0, 0.0),  # a group that the corpus does not hold
        ("a", [], None, None, None),  # nothing is expected
    ],
)
def test_gold(cited: str, gold: list[list[str]], recall: float, every: float, extra: float) -> None:
    answered = item(said(*cited), gold=gold)
    names = ("gold_recall", "all_gold_cited", "extra_citations")
    assert only(answered, *names) == (recall, every, extra)


@pytest.mark.parametrize(
    ("include", "forbid", "expected"),
    [
        (("it is 12", "YES"), (), 1.0),
        (("12.5%.yes",), (), 1.0),  # a dot matches the line end between two statements
        (("12.5%", "missing"), (), 0.0),
        (("12.5%",), ("yes",), 0.0),
        ((), ("13",), 1.0),
        ((), (), None),
        (("(",), (), None),  # no expression: unscored
        (("(", "missing"), (), 0.0),  # wrong whatever the other might say
        (("(a+)+b",), (), 0.0),
    ],
)
def test_expected_facts(
    include: tuple[str, ...], forbid: tuple[str, ...], expected: float | None
) -> None:
    answered = item(
        said("a", text="It is 12.5%"), said("a", text="Yes."),
        must_include=include, must_not_include=forbid,
    )  # fmt: skip
    assert score(answered)["must_include"] == expected
    assert score(answered)["correct"] == expected


def test_an_expression_that_backtracks_without_end_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(expressions, "MOST_SECONDS", 0.05)
    answered = item(said("a", text="a" * 60 + "!"), gold=[["a"]], must_include=("(?:a|a)*$",))
    assert only(answered, "must_include", "correct", "brier", "gold_recall") == (None,) * 3 + (1.0,)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"x{e}", "xe"),  # the form of a nearly-match in other libraries
        (r"N_{i}", "N_{i}"),
        (r"\\text{s}", r"\text{s}"),
        (r"a{2}", "caab"),
        (r"ba{,3}c", "baac"),
        (r"[{]b", "{b"),
        (r"\{a\}", "{a}"),
        (r"\N{DIGIT ONE}", "1"),
        (r"ſ", "S"),
    ],
)
def test_expressions_mean_what_they_mean_in_python(pattern: str, text: str) -> None:
    expected = re.search(pattern, text, re.IGNORECASE | re.DOTALL) is not None
    assert matches(pattern, text) is expected


@given(st.text("ab{}e,1\\s.[]", max_size=6), st.text("ab{}e,1s", max_size=8))
@settings(max_examples=300, deadline=None)
def test_expressions_match_as_in_python(pattern: str, text: str) -> None:
    try:
        with warnings.catch_warnings(action="ignore"):
            expected = re.search(pattern, text, re.IGNORECASE | re.DOTALL) is not None
    except re.error:
        assert matches(pattern, text) is None
        return
    assert matches(pattern, text) is expected


def test_expressions_of_the_development_questions_match_as_in_python() -> None:
    if not SHARED.exists():
        pytest.skip("needs the shared questions and papers beside the checkout")
    asked = read_questions(SHARED / "questions" / "dev.jsonl").questions
    text = next((SHARED / "papers").glob("*.txt")).read_text(encoding="utf-8")
    paragraphs = text.split("\n\n")
    for question in asked:
        for pattern in (*question.must_include, *question.must_not_include):
            compiled = re.compile(pattern, re.IGNORECASE | re.DOTALL)
            for paragraph in paragraphs:
                assert matches(pattern, paragraph) is (compiled.search(paragraph) is not None)


def test_a_refusal_cites_nothing_and_says_nothing() -> None:
    names = ("correct", "all_gold_cited", "gold_recall", "must_include", "over_refused")
    refused = item(gold=GOLD, must_include=("papers|answer",))
    assert only(refused, *names) == (0.0, 0.0, 0.0, 0.0, 1.0)
    assert score(item(must_not_include=("13",)))["must_include"] == 0.0
    names = ("citation_precision", "alce_precision", "unsupported", "extra_citations")
    assert only(refused, *names) == (None, 0.0, None, 0.0)
    assert only(refused, "refusal_precision", "refused") == (0.0, None)


def test_an_unanswerable_question_refused_and_answered() -> None:
    names = ("refused", "over_refused", "refusal_precision", "correct", "gold_recall", "brier")
    refused = item(kind="unanswerable", confidence=0.1)
    assert only(refused, *names) == (1.0, None, 1.0, None, None, pytest.approx(0.01))
    answered = item(said("a", "b"), kind="unanswerable", must_not_include=("12",))
    assert only(answered, *names) == (0.0, None, None, None, None, pytest.approx(0.64))
    assert only(answered, "extra_citations", "must_include", "citation_recall") == (2.0, None, 1.0)


def test_failed_items_have_the_worst_share_and_no_part_in_the_rest() -> None:
    failed = score(item(gold=GOLD, must_include=("12",), found="ab", error="broke off"))
    zero = (
        "correct all_gold_cited gold_recall must_include citation_precision citation_recall "
        "alce_precision alce_recall recall@5 recall@10 ndcg@10 mrr@10"
    ).split()
    one = ["unsupported", "over_refused", "brier"]
    assert {name for name, value in failed.items() if value == 0.0} == set(zero)
    assert {name for name, value in failed.items() if value == 1.0} == set(one)
    assert all(failed[name] == METRICS[name].worst for name in (*zero, *one))
    unanswerable = score(item(kind="unanswerable", error="broke off"))
    assert (unanswerable["refused"], unanswerable["brier"]) == (0.0, 1.0)
    assert (unanswerable["correct"], unanswerable["refusal_precision"]) == (None, None)


def test_what_was_not_reached_has_no_scores() -> None:
    assert set(score(skipped(gold=GOLD)).values()) == {None}


def test_questions_of_which_nothing_is_expected() -> None:
    answered, refused = item(said("a", "b"), kind="unlabelled"), item(kind="unlabelled")
    names = ("over_refused", "refusal_precision", "correct", "brier", "extra_citations", "mrr@10")
    assert only(answered, *names) == only(refused, *names) == (None,) * 6
    assert only(answered, "citation_precision", "invented_ids") == (1.0, 0.0)
    failed = score(item(kind="unlabelled", error="broke off"))
    assert (failed["brier"], failed["citation_precision"]) == (None, 0.0)


def test_unsupported_statements_and_invented_ids_are_counted() -> None:
    answered = item(
        said("a"), said("zz", "yy", supported=False, together=False), unknown=["yy", "zz"]
    )
    names = ("unsupported", "unsupported_statements", "invented_ids", "citation_precision")
    assert only(answered, *names) == (0.5, 1.0, 2.0, pytest.approx(1 / 3))


def test_times_that_were_not_taken_are_not_0() -> None:
    answered = item(said("a"))
    assert answered.answer is not None and answered.result is not None
    answer = {**answered.answer, "seconds": {"total": 2.0}}
    timed = Item(answered.question, (), {**answered.result, "answer": answer})
    assert only(timed, "seconds", "retrieve_seconds") == (2.0, None)


RANKINGS = ("recall@5", "recall@10", "ndcg@10", "mrr@10")
IDEAL = 1 + 1 / log2(3)


@pytest.mark.parametrize(
    ("found", "gold", "expected"),
    [
        ("ab", GOLD, (1, 1, 1, 1)),
        ("zb", GOLD, (1 / 2, 1 / 2, 1 / log2(3) / IDEAL, 1 / 2)),
        # The second alternative of a group is one more paper that does not help.
        ("axb", GOLD, (1, 1, (1 + 1 / log2(4)) / IDEAL, 1)),
        ("zyxwvb", GOLD, (1 / 2, 1, (1 / log2(4) + 1 / log2(7)) / IDEAL, 1 / 3)),
        ("zyuwvtsrqpb", GOLD, (0, 0, 0, 0)),
        ("", GOLD, (0, 0, 0, 0)),
        # A group that the corpus does not hold stays in the ideal ranking.
        ("a", [["a"], []], (1 / 2, 1 / 2, 1 / IDEAL, 1)),
        # A paper of two groups stands for both.
        ("za", [["a", "b"], ["a", "c"]], (1, 1, (1 / log2(3) + 1 / log2(4)) / IDEAL, 1 / 2)),
    ],
)
def test_papers_found(found: str, gold: list[list[str]], expected: tuple[float, ...]) -> None:
    # A refusal has found papers too.
    for given_item in (item(found=found, gold=gold), item(said("a"), found=found, gold=gold)):
        assert only(given_item, *RANKINGS) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("found", "gold", "at_5", "at_10"),
    [
        ("zyxwa", [["a", "b"], ["a", "c"]], 1, 1),
        ("azyxb", [["a"], ["a", "c"], ["b"]], 1, 1),
        ("azyxwb", [["a"], ["a", "c"], ["b"]], 2 / 3, 1),
        ("zyxwvutsra", [["a"], ["a", "b"], []], 0, 2 / 3),
    ],
)
def test_a_paper_of_two_groups_pushes_no_other_out_of_reach(
    found: str, gold: list[list[str]], at_5: float, at_10: float
) -> None:
    assert only(item(found=found, gold=gold), "recall@5", "recall@10") == (at_5, at_10)


@given(
    st.lists(st.sampled_from("abcdefghijklmn"), unique=True, max_size=14),
    st.lists(st.integers(0, 4), min_size=14, max_size=14),
    st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_recall_is_that_of_ir_measures_where_no_paper_has_two_groups(
    found: list[str], places: list[int], missing: bool
) -> None:
    # Paper n is in group places[n]; 4 is none.
    papers = dict(zip("abcdefghijklmn", places, strict=True))
    gold = [[p for p, place in papers.items() if place == g] for g in range(4)]
    gold = [group for group in gold if group or missing] or [[]]
    # Of each group the paper that is found first, or one that is not.
    relevant = [next((p for p in found if p in group), f"{n}") for n, group in enumerate(gold)]
    measured = measure("", {"q": [(p, 0.0) for p in found]}, {"q": dict.fromkeys(relevant, 1)})
    expected = tuple(measured.values[name]["q"] for name in ("Recall@5", "Recall@10"))
    assert only(item(found=found, gold=gold), "recall@5", "recall@10") == pytest.approx(expected)


def test_what_was_found_for_an_unanswerable_question_is_not_measured() -> None:
    assert only(item(found="ab", kind="unanswerable"), *RANKINGS) == (None,) * 4


@st.composite
def items(draw: st.DrawFn) -> Item:
    statements = draw(
        st.lists(
            st.builds(
                lambda cited, together: said(*sorted(cited), together=together),
                st.frozensets(st.sampled_from("abcx")),
                st.booleans(),
            ),
            max_size=3,
        )
    )
    return item(
        *statements,
        kind=draw(st.sampled_from(["fact", "unanswerable", "unlabelled", "mine"])),
        gold=draw(st.lists(st.frozensets(st.sampled_from("abcx"), max_size=2), max_size=3)),
        found="".join(draw(st.lists(st.sampled_from("abcdxyz"), unique=True, max_size=7))),
        must_include=tuple(draw(st.lists(st.sampled_from(["12", "13", "("]), max_size=2))),
        confidence=draw(st.sampled_from([0.0, 0.3, 1.0])),
        error=draw(st.sampled_from([None, None, "broke off"])),
    )


@given(st.lists(items(), max_size=6))
@settings(max_examples=60, deadline=None)
def test_scores_are_in_bounds_and_the_same_one_by_one_and_together(given_items: list[Item]) -> None:
    together = scored(given_items)
    for given_item, found in zip(given_items, together, strict=True):
        assert found.values == pytest.approx(score(given_item), nan_ok=False)
        for name, value in found.values.items():
            if value is not None:
                assert 0 <= value <= (1 if METRICS[name].unit == "share" else 1e6)
                worst = METRICS[name].worst
                assert not found.failed or worst is None or value == worst
        # An item that is correct has every part of being so.
        if found.values["correct"] == 1.0:
            assert found.values["all_gold_cited"] != 0.0
            assert found.values["must_include"] != 0.0
        assert (found.foretold is None) == (found.values["brier"] is None or found.failed)


def test_many_items_are_scored_in_several_parts() -> None:
    many = [item(said("a"), gold=[["a"]], found="ab" if n % 2 else "ba") for n in range(1201)]
    ranks = [found.values["mrr@10"] for found in scored(iter(many))]
    assert ranks == [1.0 if n % 2 else 0.5 for n in range(1201)]
