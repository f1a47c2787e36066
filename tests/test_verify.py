from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from doubles.embedder import WordCountEmbedder
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from rag.facts import missing
from rag.passages import Passages
from rag.polarity import polarity_differs
from rag.types import Paper, Source
from rag.verify import SUPPORTED, Signals, Verifier, choose_quote, compare, foreign, support

ALPHA = (
    "We study graphs with noise. AlphaNet lowers the graph noise by 12.5% on ImageNet. "
    "It needs no labels."
)
BETA = "BetaNet folds a protein in 7 seconds. The reward is language."


def paper(paper_id: str, text: str, title: str = "A title") -> Paper:
    return Paper(paper_id, title, text, text, (Source("list.txt", 1),))


A, B = paper("a", ALPHA), paper("b", BETA)


def verifier(judge: float | None = None, asked: list[tuple[str, str]] | None = None) -> Verifier:
    def answer(claim: str, source: str) -> float | None:
        (asked if asked is not None else []).append((claim, source))
        return judge

    return Verifier(Passages(WordCountEmbedder()), answer)


def test_a_restated_sentence_is_supported_and_quoted_with_its_place() -> None:
    statement = verifier().check("AlphaNet lowers graph noise by 12.5% on ImageNet.", [A])
    assert statement.supported
    (citation,) = statement.citations
    assert citation.paper_id == "a"
    assert citation.quote == "AlphaNet lowers the graph noise by 12.5% on ImageNet."
    assert ALPHA[citation.start : citation.end] == citation.quote
    assert citation.support >= SUPPORTED


@pytest.mark.parametrize(
    "text",
    [
        "AlphaNet lowers graph noise by 12.6% on ImageNet.",
        "AlphaNet lowers graph noise by 12.5% on CIFAR.",
        "GammaNet lowers graph noise by 12.5% on ImageNet.",
        "AlphaNet lowers graph noise by 12.5% on ImageNet in 7 seconds.",
    ],
)
def test_a_number_or_name_that_the_paper_has_not_is_never_supported(text: str) -> None:
    assert not verifier(judge=1.0).check(text, [A]).supported


def test_content_that_the_paper_has_not_is_not_supported() -> None:
    assert not verifier().check("Cats sleep longer when it rains outside.", [A]).supported


def test_a_statement_may_join_two_papers_and_cites_both() -> None:
    joined = "AlphaNet lowers graph noise by 12.5%, BetaNet folds a protein in 7 seconds."
    statement = verifier().check(joined, [A, B])
    assert statement.supported
    assert [c.paper_id for c in statement.citations] == ["a", "b"]
    assert not verifier().check(joined, [A]).supported


def test_the_title_is_a_part_of_the_paper() -> None:
    named = paper("a", ALPHA, "ZetaNet: graphs with noise")
    statement = verifier().check("ZetaNet studies graphs with noise.", [named])
    assert statement.supported


def test_without_papers_or_words_nothing_is_supported() -> None:
    assert verifier().check("AlphaNet lowers graph noise.", []).supported is False
    assert verifier().check("  ", [A]).citations == ()


def test_another_script_is_put_to_the_judge_and_numbers_are_checked_all_the_same() -> None:
    asked: list[tuple[str, str]] = []
    claim = "AlphaNet在ImageNet上将图噪声降低了12.5%。"
    statement = verifier(0.9, asked).check(claim, [A])
    assert statement.supported
    assert statement.citations[0].support == 0.9
    assert asked == [(claim, statement.citations[0].quote)]
    assert not verifier(0.1).check(claim, [A]).supported
    assert not verifier(0.9).check("AlphaNet将图噪声降低了63.9%。", [A]).supported


def test_a_judge_that_cannot_tell_leaves_the_words_to_decide() -> None:
    assert not verifier(None).check("图噪声降低了。", [A]).supported
    assert not Verifier(Passages(WordCountEmbedder())).check("图噪声降低了。", [A]).supported


def test_support_is_a_probability_that_grows_with_each_signal() -> None:
    low = support(Signals(0.0, 0.0, -1.0, True))
    high = support(Signals(1.0, 1.0, 1.0, False))
    assert 0.0 < low < 0.01
    assert 0.9 < high < 1.0
    middle = Signals(0.5, 0.5, 0.7, False)
    for better in (
        Signals(0.6, 0.5, 0.7, False),
        Signals(0.5, 0.6, 0.7, False),
        Signals(0.5, 0.5, 0.8, False),
    ):
        assert support(better) > support(middle)
    assert support(Signals(0.5, 0.5, 0.7, True)) < support(middle)


def test_compare_counts_shares_of_the_statements_words() -> None:
    signals = compare("graphs remove noise", "graph noise", "a graph removes it", 0.25)
    assert signals == Signals(2 / 3, 2 / 3, 0.25, False)
    assert compare("It doesn’t work", "it works", "it works", 0.0).negation_differs
    assert compare("", "", "", 0.0) == Signals(0.0, 0.0, 0.0, False)


@pytest.mark.parametrize(
    ("statement", "source", "differ"),
    [
        ("图噪声降低", "graph noise", True),
        ("Шум графа", "graph noise", True),
        ("AlphaNet 在 ImageNet 上的 mIoU 是 76.6%.", "graph noise", True),
        ("AlphaNet на ImageNet", "graph noise", True),
        ("We evaluate on 中文 data of the web", "graph noise", False),
        ("AlphaNet in Σ₂ᴾ with ∀x", "graph noise", False),
        ("Σ₂ᴾ", "graph noise", False),
        ("12.5%", "graph noise", False),
        ("图噪声", "图的噪声", False),
    ],
)
def test_scripts_that_cannot_be_compared(statement: str, source: str, differ: bool) -> None:
    assert foreign(statement, source) is differ


def test_a_neighbour_joins_the_quote_where_it_adds_much() -> None:
    sentences = ["Graphs are noisy.", "AlphaNet is new.", "It lowers noise by 12.5%."]
    assert choose_quote("AlphaNet lowers noise.", sentences, [0.1, 0.2, 0.5]) == [1, 2]
    assert choose_quote("AlphaNet is new.", sentences, [0.1, 0.9, 0.5]) == [1]
    assert choose_quote("Nothing of it.", sentences, [0.0, 0.0, 0.0]) == [0]


WORDS = st.lists(
    st.sampled_from("graph noise 12.5% AlphaNet BetaNet seven not of 7 图 protein".split()),
    min_size=1,
    max_size=8,
).map(" ".join)


@given(WORDS, st.lists(st.tuples(WORDS, st.floats(-1, 1)), min_size=1, max_size=7))
def test_a_quote_is_one_sentence_or_two_neighbours(
    text: str, rated: list[tuple[str, float]]
) -> None:
    chosen = choose_quote(text, [s for s, _ in rated], [c for _, c in rated])
    assert chosen in ([chosen[0]], [chosen[0], chosen[0] + 1])
    assert 0 <= chosen[0] <= chosen[-1] < len(rated)


class Agreeable(WordCountEmbedder):
    """Every text means the same: only the check of facts can refuse."""

    def queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.tile(np.eye(1, 7, dtype=np.float32), (len(texts), 1))


@given(WORDS, st.sampled_from([[A], [B], [A, B]]))
def test_a_supported_statement_has_its_numbers_and_names_in_the_cited_papers(
    text: str, papers: list[Paper]
) -> None:
    checker = Verifier(Passages(Agreeable()), lambda claim, source: 1.0)
    statement = checker.check(text, papers)
    cited = [p for p in papers if p.id in {c.paper_id for c in statement.citations}]
    assert [c.paper_id for c in statement.citations] == [p.id for p in cited] != []
    if statement.supported:
        assert missing(text, " ".join(f"{p.title}. {p.text}" for p in cited)) == ()
    else:
        assert (
            missing(text, ALPHA + BETA)
            or len(cited) == len(papers)
            or any(polarity_differs(text, c.quote) for c in statement.citations)
        )
    for citation, source in zip(statement.citations, cited, strict=True):
        assert source.text[citation.start : citation.end] == citation.quote
        assert 0.0 <= citation.support <= 1.0


def test_a_citation_that_adds_nothing_is_dropped_beside_one_that_supports() -> None:
    text = "AlphaNet lowers the graph noise by 12.5% on ImageNet."
    statement = verifier().check(text, [B, A])
    assert statement.supported
    assert [c.paper_id for c in statement.citations] == ["a"]
    both = verifier().check("Cats sleep.", [B, A])
    assert [c.paper_id for c in both.citations] == ["b", "a"]


def test_a_papers_own_words_are_supported_whatever_their_score() -> None:
    said = "For ε > 0 no pruning without retraining keeps the error small — without any retraining."
    paper = Paper("own", "Own", f"{said} It ends.", said, ())
    statement = verifier().check(said, [paper])
    assert statement.supported
    assert [(c.quote, c.start, c.end, c.support) for c in statement.citations] == [
        (said, 0, len(said), 1.0)
    ]


def test_what_only_introduces_a_statement_is_not_weighed() -> None:
    plain = verifier().check("AlphaNet lowers graph noise by 12.5% on ImageNet.", [A])
    spoken = verifier().check(
        "The paper shows that AlphaNet lowers graph noise by 12.5% on ImageNet.", [A]
    )
    assert spoken.text.startswith("The paper shows that")
    assert spoken.citations == plain.citations
