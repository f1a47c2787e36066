from __future__ import annotations

import pytest

from rag.repetition import echoes

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
