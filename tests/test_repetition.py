from __future__ import annotations

import pytest

from rag.checking import without_evidence
from rag.repetition import asks, echoes, parted

ASKED = "The paper proposes masks, but they are not new. Is the bound of Lee known? Say why."


@pytest.mark.parametrize(
    ("text", "echo"),
    [
        ("The paper proposes masks, but they are not new.", True),
        ("Masks are not new.", True),
        ("The bound of Lee is known.", False),  # that is what is asked
        ("Masks improve accuracy.", False),
        ("New masks.", False),  # in another order
    ],
)
def test_what_the_question_tells_is_an_echo(text: str, echo: bool) -> None:
    assert echoes(text, ASKED) is echo


@pytest.mark.parametrize(
    ("question", "told", "asked"),
    [
        (
            ASKED,
            "The paper proposes masks, but they are not new. Say why.",
            "Is the bound of Lee known?",
        ),
        ("Is it known?", "", "Is it known?"),
        ("The bound is loose.", "", "The bound is loose."),
    ],
)
def test_what_is_told_and_what_is_asked(question: str, told: str, asked: str) -> None:
    assert parted(question) == (told, asked)


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("How can it improve at all? (By weights.)", True),
        ("It asks “why?”", True),
        ('Masks improve "Is it all?" by 3%.', False),
        ("Masks improve.", False),
    ],
)
def test_a_statement_that_asks(text: str, question: bool) -> None:
    assert asks(text) is question


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("The first statement in the evidence shows that no coreset exists.", "No coreset exists."),
        ("The evidence states that it is 5%.", "It is 5%."),
        ("The third sentence in the evidence gives a bound.", "The paper gives a bound."),
        ("The evidence is weak.", "The evidence is weak."),
        ("The evidenced claim holds.", "The evidenced claim holds."),
        ("Evidence shows that it holds.", "Evidence shows that it holds."),
    ],
)
def test_a_statement_does_not_speak_of_the_evidence(text: str, shown: str) -> None:
    assert without_evidence(text) == shown
