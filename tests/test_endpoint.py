from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.http import excerpt, is_this_machine
from rag.llm import endpoint as wire

KEY = "sk-very-secret-0123456789"


@given(st.dictionaries(st.sampled_from(["Yes", "yes", "No", " no", "x"]), st.floats(-9, 0)))
def test_a_yes_probability_is_one_and_grows_with_yes(top: dict[str, float]) -> None:
    probability = wire.yes_probability(top)
    if not top.keys() - {"x"}:
        assert probability is None
        return
    assert probability is not None
    assert 0 <= probability <= 1
    raised = wire.yes_probability({**top, "YES": 0.0})
    assert raised is not None
    assert raised >= probability - 1e-12


def test_a_yes_probability_by_hand() -> None:
    top = {"Yes": math.log(0.6), " yes": math.log(0.2), "No": math.log(0.2)}
    assert wire.yes_probability(top) == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:8080/v1", True),
        ("http://127.9.9.9/v1", True),
        ("http://[::1]:1/v1", True),
        ("http://LocalHost:1/v1", True),
        ("http://a.localhost/v1", True),
        ("http://0.0.0.0:1/v1", True),
        ("http://127.0.0.1.example.org/v1", False),
        ("http://localhost.example.org/v1", False),
        ("http://10.0.0.1/v1", False),
        ("https://api.openai.com/v1", False),
    ],
)
def test_which_addresses_are_this_machine(url: str, expected: bool) -> None:
    assert is_this_machine(url) is expected


@given(st.text(max_size=800))
def test_an_excerpt_is_short_printable_and_without_the_key(said: str) -> None:
    shown = excerpt(f"{said}{KEY}{said}", KEY)
    assert KEY not in shown
    assert shown.isprintable()
    assert len(shown) <= 303
