from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.lexical import searchable, tokens


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Calibrating the networks", ["calibr", "network"]),
        ("H-LRU", ["h", "lru", "hlru"]),
        ("GA²M", ["ga2m", "ga"]),
        ("mAP50", ["map50", "map"]),
        ("state-of-the-art", ["state", "art", "stateoftheart"]),
        ("Gödel", ["godel"]),
        ("ＧＰＴ４", ["gpt4", "gpt"]),
        ("the model's", ["model"]),
        ("fine‑tuning finetuning", ["fine", "tune", "finetun", "finetun"]),
        ("校准", ["校", "准", "校准"]),
        ("用LAPE校准", ["用", "lape", "校", "准", "校准"]),
        ("of the and", []),
        ("<|endoftext|> [bold]", ["endoftext", "bold"]),
        ("", []),
    ],
)
def test_tokens(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


@given(st.text())
def test_tokens_are_never_empty_or_blank(text: str) -> None:
    assert all(token and not token.isspace() for token in tokens(text))


@given(st.text(st.characters(codec="ascii")))
def test_tokens_ignore_case(text: str) -> None:
    assert tokens(text.upper()) == tokens(text.lower())


def test_a_title_counts_twice() -> None:
    assert tokens(searchable("Zebra", "lion")) == ["zebra", "zebra", "lion"]


def test_a_word_too_long_to_be_remembered_is_one_word_all_the_same() -> None:
    assert tokens("Zebra" * 100) == ["zebra" * 100]
