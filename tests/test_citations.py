"""Each case is worked out by hand from Gao et al. 2023 and the ALCE script's own steps."""

from __future__ import annotations

import pytest
from doubles.items import item, said, skipped
from hypothesis import given
from hypothesis import strategies as st

from eval.items import Item
from eval.metrics.citations import CitationScores, alce, strict
from rag.errors import ReadError

RIGHT = CitationScores(1.0, 1.0)
WRONG = CitationScores(0.0, 0.0)
YES_NO = (True, False)


def test_one_citation_that_supports() -> None:
    assert (strict(item(said("a"))), alce(item(said("a")))) == (RIGHT, RIGHT)


def test_one_citation_that_does_not() -> None:
    wrong = item(said("a", together=False))
    assert (strict(wrong), alce(wrong)) == (WRONG, WRONG)


@pytest.mark.parametrize(
    ("each", "without", "precision"),
    [
        ((True, True), (True, True), 1.0),  # both support alone
        ((True, False), (False, True), 1 / 2),  # the second is superfluous
        ((False, False), (False, False), 1.0),  # only both together: each is needed
        ((False, False), (True, False), 1 / 2),  # the first is neither enough nor needed
    ],
)
def test_two_citations(each: tuple[bool, ...], without: tuple[bool, ...], precision: float) -> None:
    given_item = item(said("a", "b", each=each, without=without))
    expected = CitationScores(precision, 1.0)
    assert (strict(given_item), alce(given_item)) == (expected, expected)


def test_citations_of_a_statement_that_is_not_supported_are_wrong_whatever_each_does() -> None:
    given_item = item(said("a", "b", together=False, each=(True, False)), said("c"))
    assert strict(given_item) == CitationScores(1 / 3, 1 / 2)


def test_a_statement_without_citations_lowers_recall_alone() -> None:
    assert strict(item(said("a"), said())) == CitationScores(1.0, 1 / 2)
    # `rag.verify` finds nothing supported by nothing; a file may say so all the same.
    assert strict(item(said(together=True), said("a"))) == CitationScores(1.0, 1 / 2)


def test_an_answer_that_cites_nothing() -> None:
    assert (strict(item(said())), alce(item(said()))) == (WRONG, WRONG)


# Quirk: only the first line is scored, and each statement has a line of its own.
def test_alce_scores_the_first_line_alone() -> None:
    two = item(said("a"), said("b", "c", together=False))
    assert strict(two) == CitationScores(1 / 3, 1 / 2)
    assert alce(two) == RIGHT
    assert alce(item(said("b", together=False), said("a"))) == WRONG


@pytest.mark.parametrize("text", ["It is 12%.\nNo less.", "It is 12%.\n"])
def test_alce_loses_citations_behind_a_line_end(text: str) -> None:
    assert strict(item(said("a", text=text))) == RIGHT
    assert alce(item(said("a", text=text))) == WRONG


def test_alce_strips_the_answer_before_it_takes_the_first_line() -> None:
    assert alce(item(said("a", text="\n It is 12%."))) == RIGHT


# Quirk: only the first three citations of a sentence.
def test_alce_reads_three_citations_of_four() -> None:
    # The fourth alone supports it: the first three do not.
    last = said(
        "a", "b", "c", "d", each=(False, False, False, True), without=(True,) * 3 + (False,)
    )
    assert strict(item(last)) == CitationScores(1 / 4, 1.0)
    assert alce(item(last)) == WRONG
    # The fourth is superfluous: of the first three, the first supports it and the others do not.
    first = said(
        "a", "b", "c", "d", each=(True, False, False, False), without=(False, True, True, True)
    )
    assert strict(item(first)) == CitationScores(1 / 4, 1.0)
    assert alce(item(first)) == CitationScores(1 / 3, 1.0)


def test_of_five_citations_alce_knows_what_one_of_the_first_three_shows() -> None:
    shown = said(
        "a", "b", "c", "d", "e", each=(False, True, False, False, False), without=(True,) * 5
    )
    assert alce(item(shown)) == CitationScores(1 / 3, 1.0)
    # Here phi of the first three is not on record: it counts as not supported.
    open_case = said("a", "b", "c", "d", "e", each=(False,) * 5, without=(True,) * 5)
    assert alce(item(open_case)) == WRONG


# Quirk: `[1, 2]` is read as `[1]`. The answers print `[a] [b]`, of which the script reads both.
def test_each_citation_has_brackets_of_its_own() -> None:
    both = said("a", "b", each=(False, True), without=(True, False))
    # Read as the first alone it would be CitationScores(0.0, 0.0).
    assert alce(item(both)) == CitationScores(1 / 2, 1.0)


# Quirk: IDs out of range leave the denominator of precision.
def test_unknown_ids_are_wrong_citations_and_out_of_range_ones() -> None:
    beside = said("a", "zz", each=(True, False), without=(False, True))
    given_item = item(beside, said("b"), unknown=["zz"])
    assert strict(given_item) == CitationScores(2 / 3, 1.0)
    # The script's first sentence: no support, and neither citation counted: 0 of 0.
    assert alce(given_item) == WRONG
    alone = item(said("zz", together=False), unknown=["zz"])
    assert (strict(alone), alce(alone)) == (WRONG, WRONG)


def test_an_unknown_id_is_wrong_even_where_the_judge_errs() -> None:
    given_item = item(said("a", "zz"), unknown=["zz"])
    assert strict(given_item) == CitationScores(1 / 2, 1.0)


def test_an_unknown_fourth_citation_still_spoils_alces_sentence() -> None:
    four = said("a", "b", "c", "zz", each=(True, True, True, False), without=(True,) * 4)
    assert alce(item(four, unknown=["zz"])) == WRONG
    assert strict(item(four, unknown=["zz"])) == CitationScores(3 / 4, 1.0)


# Quirk: abstentions score 0/0.
def test_abstentions_are_apart_and_0_in_alce() -> None:
    assert (strict(item()), alce(item())) == (CitationScores(None, None), WRONG)


def test_failed_items_score_0_and_those_not_reached_nothing() -> None:
    failed = item(error="no answer")
    assert (strict(failed), alce(failed)) == (WRONG, WRONG)
    assert strict(skipped()) == alce(skipped()) == CitationScores(None, None)


@pytest.mark.parametrize("entry", [None, {"all": True, "each": [True, True], "without": [False]}])
def test_verdicts_that_do_not_fit_are_damage(entry: dict[str, object] | None) -> None:
    good = item(said("a"), id="q-7")
    damaged = Item(
        good.question, good.gold, {**(good.result or {}), "entailment": [entry] if entry else []}
    )
    for measure in (strict, alce):
        with pytest.raises(ReadError, match=r"question q-7 is damaged.*rag eval answers"):
            measure(damaged)


@st.composite
def statements(draw: st.DrawFn) -> dict[str, object]:
    """Verdicts of a judge for whom more text never supports less."""
    size = draw(st.integers(0, 6))
    enough = draw(st.lists(st.frozensets(st.integers(0, 5), min_size=1), max_size=4))

    def phi(places: frozenset[int]) -> bool:
        return any(needed <= places for needed in enough)

    whole = frozenset(range(size))
    return said(
        *"abcdef"[:size],
        together=phi(whole),
        each=[phi(frozenset({i})) for i in whole],
        without=[phi(whole - {i}) for i in whole],
    )


@given(st.lists(statements(), min_size=1, max_size=4), st.frozensets(st.sampled_from("abcdef")))
def test_shares_stay_within_bounds(
    answer: list[dict[str, object]], unknown: frozenset[str]
) -> None:
    given_item = item(*answer, unknown=sorted(unknown))
    for found in (strict(given_item), alce(given_item)):
        assert found.precision is not None and found.recall is not None
        assert 0 <= found.precision <= 1
        assert 0 <= found.recall <= 1
    known = item(*answer)
    strictly = strict(known)
    # Citations count only in statements that are supported.
    assert strictly.precision == 0 or strictly.recall > 0  # type: ignore[operator]
    if len(answer) == 1 and len(answer[0]["statement"]["citations"]) <= 3:  # type: ignore[index,call-overload]
        assert alce(known) == strictly


def test_supported_statements_may_cite_only_what_is_superfluous() -> None:
    # Any two of three are enough: none supports alone, and none is needed.
    given_item = item(said("a", "b", "c", each=(False,) * 3, without=(True,) * 3))
    assert strict(given_item) == CitationScores(0.0, 1.0)
