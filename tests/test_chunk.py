from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.chunk import chunks, embedding_text, pieces
from rag.sentences import sentence_spans
from rag.types import Paper, Source, Span


def words(text: str) -> int:
    return len(text.split())


def characters(text: str) -> int:
    return len(text)


def paper(text: str, title: str = "") -> Paper:
    return Paper("p", title, text, text, (Source("f.txt", 1),))


FIVE = "Alpha is one. Beta is two. Gamma is three. Delta is four. Epsilon is five."


def texts(of: Paper, count: object = words, limit: int = 512) -> list[str]:
    return [of.text[c.start : c.end] for c in chunks(of, count, limit)]  # type: ignore[arg-type]


def test_windows_hold_three_sentences_and_share_one() -> None:
    assert texts(paper(FIVE)) == [
        "Alpha is one. Beta is two. Gamma is three.",
        "Gamma is three. Delta is four. Epsilon is five.",
    ]


def test_four_sentences_end_in_a_window_of_two() -> None:
    four = "Alpha is one. Beta is two. Gamma is three. Delta is four."
    assert texts(paper(four))[-1] == "Gamma is three. Delta is four."


def test_chunks_are_numbered_and_named_after_their_paper() -> None:
    assert [(c.paper_id, c.index, c.id) for c in chunks(paper(FIVE), words, 512)] == [
        ("p", 0, "p#0"),
        ("p", 1, "p#1"),
    ]


def test_text_without_sentences_has_no_chunks() -> None:
    assert chunks(paper("  "), words, 512) == []


def test_a_window_takes_fewer_sentences_where_the_title_leaves_less_room() -> None:
    # Three words a sentence, four of title: ten words hold the title and two sentences.
    assert texts(paper(FIVE, "A title of four"), limit=10) == [
        "Alpha is one. Beta is two.",
        "Beta is two. Gamma is three.",
        "Gamma is three. Delta is four.",
        "Delta is four. Epsilon is five.",
    ]


def test_a_sentence_too_long_for_the_model_is_split_at_words() -> None:
    assert texts(paper("One two three four five six seven."), limit=3) == [
        "One two three",
        "four five six",
        "seven.",
    ]


def test_a_word_too_long_for_the_model_is_cut_between_characters() -> None:
    assert texts(paper("abcdefgh xy"), characters, 3) == ["abc", "def", "gh", "xy"]


def test_the_title_stands_in_front_and_gives_way_word_by_word() -> None:
    one = paper("Beta is two.", "A long title")
    (chunk,) = chunks(one, words, 512)
    assert embedding_text(one, chunk, words, 512) == "A long title. Beta is two."
    assert embedding_text(one, chunk, words, 5) == "A long. Beta is two."
    assert embedding_text(one, chunk, words, 3) == "Beta is two."


@pytest.mark.parametrize(("title", "expected"), [("Why?", "Why? B."), ("", "B."), ("T", "T. B.")])
def test_a_title_gets_a_stop_only_where_it_has_none(title: str, expected: str) -> None:
    one = paper("B.", title)
    (chunk,) = chunks(one, words, 512)
    assert embedding_text(one, chunk, words, 512) == expected


def test_a_long_text_is_measured_in_small_parts() -> None:
    measured: list[int] = []

    def count(text: str) -> int:
        measured.append(words(text))
        return measured[-1]

    text = "word " * 20_000
    spans = pieces(text, Span(0, len(text)), lambda t: count(t) <= 100)
    assert len(spans) == 200
    # The whole is measured once, then nothing much longer than a piece.
    assert sorted(measured)[-2] <= 200


sentence = st.lists(
    st.text(st.characters(codec="utf-8", exclude_categories=["Z", "C"]), min_size=1, max_size=9),
    min_size=1,
    max_size=12,
).map(lambda parts: " ".join(parts).capitalize() + ".")


@settings(max_examples=150)
@given(
    st.lists(sentence, min_size=1, max_size=9).map(" ".join),
    sentence,
    st.integers(1, 40),
    st.sampled_from([words, characters]),
)
def test_every_sentence_is_covered_and_no_text_exceeds_the_limit(
    text: str, title: str, limit: int, count: object
) -> None:
    one = paper(text, title)
    found = chunks(one, count, limit)  # type: ignore[arg-type]
    covered = {i for c in found for i in range(c.start, c.end)}
    for span in sentence_spans(text):
        gaps = [i for i in range(span.start, span.end) if i not in covered]
        assert all(text[i].isspace() for i in gaps)
    for c in found:
        assert 0 <= c.start < c.end <= len(text)
        whole = embedding_text(one, c, count, limit)  # type: ignore[arg-type]
        assert whole.endswith(text[c.start : c.end])
        assert count(whole) <= max(limit, 1)  # type: ignore[operator]
