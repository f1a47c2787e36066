from __future__ import annotations

import pytest

from rag.polarity import negated, polarity_differs

DENIES = (
    "Our analysis finds that present ways of merging forecasts do not preserve a person's degree "
    "of calibration, while handing over keeps it."
)


@pytest.mark.parametrize(
    ("statement", "quote", "differs"),
    [
        ("Merging forecasts preserves the person's degree of calibration.", DENIES, True),
        ("Merging does not preserve the degree of calibration of a person.", DENIES, False),
        ("The margin is sparse.", "The margin is sparse, without any added supervision.", False),
        ("The margin needs no supervision.", "The margin needs supervision.", True),
        ("Labels needn't be refreshed.", "Labels need not be refreshed.", False),
        ("Wholly other words here.", "The margin cannot be computed.", False),
        ("Norms explode for lack of idempotency.", "Norms explode for lack of idempotency.", False),
    ],
)
def test_a_statement_may_not_turn_its_quote_around(
    statement: str, quote: str, differs: bool
) -> None:
    assert polarity_differs(statement, quote) is differs


def test_negations_are_words() -> None:
    assert negated("It isn't so.")
    assert not negated("A notable nobody knows the knot.")
