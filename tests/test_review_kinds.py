from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.review.items import ReviewItem
from rag.review.kinds import Kind, kind_of


def sort(text: str) -> Kind:
    return kind_of(ReviewItem(None, "questions", text, 0, len(text)))


@pytest.mark.parametrize(
    "text",
    [
        "The related work section leaves out tree sorting.",
        "How does this differ from the sorting networks of Smith et al. (2019)?",
        "The novelty is limited, since similar losses have been proposed before [3].",
        "Which one is better in theory, quick sort or this method?",
        "Is it known whether every tree can be balanced?",
        "What is the definition of a balanced tree?",
        "The problem is not well motivated.",
        "Could this be extended to other domains such as speech?",
        "Please cite the work of Jones.",
    ],
)
def test_what_papers_may_answer(text: str) -> None:
    kind = sort(text)
    assert kind.kind == "answerable"
    assert kind.reason.startswith("Papers may answer it: it ")


@pytest.mark.parametrize(
    "text",
    [
        "Typo in line 12: teh -> the.",
        "Will the code be released?",
        "What is the run time on a GPU?",
        "How were the hyperparameters chosen?",
        "Table 2 has no error bars.",
        "Why does it perform worse than the baseline in Figure 3?",
        "The assumption in Theorem 1 is strong.",
        "Only one dataset is used in the experiments.",
        "The authors do not compare with quick sort in the experiments.",
        "Did you try more layers?",
        "The limitations are not discussed.",
        "Hm?",
    ],
)
def test_what_only_the_authors_know(text: str) -> None:
    kind = sort(text)
    assert kind.kind == "authors"
    assert kind.reason.startswith("Only the authors can answer it: it ")


def test_the_reason_is_the_weightiest_cue() -> None:
    assert sort("Will the code be released?").reason == (
        "Only the authors can answer it: it asks for code or what reproducing needs."
    )
    assert sort("Hm?").reason == (
        "Only the authors can answer it: it says nothing that other papers would answer."
    )


@given(st.text())
def test_any_text_has_a_kind_and_a_reason(text: str) -> None:
    kind = sort(text)
    assert kind.kind in ("answerable", "authors")
    assert kind.reason.endswith(".")


@pytest.mark.parametrize(
    "unit", ["why ", "contribution ", "how it ", "$x$ ", "a", "compare a ", "("]
)
def test_time_is_bounded(unit: str) -> None:
    started = time.process_time()
    sort(unit * 50_000)
    assert time.process_time() - started < 1
