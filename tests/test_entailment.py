from __future__ import annotations

import itertools
from collections import deque
from typing import Any

import pytest
from doubles.chat import USAGE, QueueChat
from doubles.embedder import WordCountEmbedder

from eval.items import Item
from eval.questions.datasets import Question
from eval.runs.entailment import Entailment
from eval.runs.judge import judge, opinion
from rag.passages import Passages
from rag.types import Paper, Source
from rag.verify import Verifier

ALPHA = "AlphaNet lowers the graph noise by 12.5% on ImageNet. It needs no labels."
BETA = "BetaNet folds a protein in 7 seconds. The reward is language."
GAMMA = "GammaNet draws an image of a graph. It costs 40 cents."
FACT = "AlphaNet lowers graph noise by 12.5% on ImageNet."
JOINED = "AlphaNet lowers graph noise by 12.5%, BetaNet folds a protein in 7 seconds."


def paper(paper_id: str, text: str) -> Paper:
    return Paper(paper_id, "A title", text, text, (Source("list.txt", 1),))


PAPERS = {"a": paper("a", ALPHA), "b": paper("b", BETA), "c": paper("c", GAMMA)}


def stated(text: str, *cited: str) -> dict[str, Any]:
    """A statement with the verdict that it got when it was written."""
    papers = [PAPERS[paper_id] for paper_id in cited if paper_id in PAPERS]
    supported = Verifier(Passages(WordCountEmbedder())).check(text, papers).supported
    citations = [{"paper_id": paper_id} for paper_id in cited]
    return {"text": text, "supported": supported, "citations": citations}


TEXTS = (
    FACT,
    JOINED,
    ALPHA[:20],
    "It shows that " + FACT,
    "GammaNet draws graphs for 40 cents.",
    "x",
)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("given", itertools.permutations("abc", 3))
def test_the_verdict_of_an_answer_is_that_of_its_citations(text: str, given: tuple[str]) -> None:
    verifier = Verifier(Passages(WordCountEmbedder()))
    for papers in (given[:1], given[:2], given):
        statement = verifier.check(text, [PAPERS[paper_id] for paper_id in papers])
        cited = [PAPERS[citation.paper_id] for citation in statement.citations]
        assert verifier.check(statement.text, cited).supported == statement.supported


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (stated(FACT), {"all": False, "each": [], "without": []}),
        (stated(FACT, "a"), {"all": True, "each": [True], "without": [False]}),
        (stated(FACT, "b"), {"all": False, "each": [False], "without": [False]}),
        (stated(FACT, "zz"), {"all": False, "each": [False], "without": [False]}),
        (stated(FACT, "a", "zz"), {"all": True, "each": [True, False], "without": [False, True]}),
        (stated(FACT, "b", "a"), {"all": True, "each": [False, True], "without": [True, False]}),
        (
            stated(JOINED, "a", "b"),
            {"all": True, "each": [False, False], "without": [False, False]},
        ),
        (
            stated(JOINED, "a", "b", "c"),
            {"all": True, "each": [False] * 3, "without": [False, False, True]},
        ),
    ],
)
def test_support_by_all_by_each_and_without_each(
    statement: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert Entailment(Passages(WordCountEmbedder()), PAPERS.get).of([statement]) == [expected]


def test_a_statement_is_embedded_once_and_sentences_are_taken_from_the_passages() -> None:
    embedder = WordCountEmbedder()
    passages = Passages(embedder)
    for known in PAPERS.values():
        passages.sentences(known)
    before = len(embedder.embedded)
    Entailment(passages, PAPERS.get).of([stated(FACT, "a"), stated(JOINED, "a", "b", "c")])
    embedded = embedder.embedded[before:]
    assert (embedded.count(FACT), embedded.count(JOINED)) == (0, 1)
    assert len(embedded) == len(set(embedded))
    assert not set(embedded) & set(embedder.embedded[:before])


def test_the_judge_is_asked_once_where_scripts_differ() -> None:
    asked: list[tuple[str, str]] = []

    def judge(claim: str, source: str) -> float:
        asked.append((claim, source))
        return 0.9

    found = Entailment(Passages(WordCountEmbedder()), PAPERS.get, judge).of(
        [{**stated("图像的噪声降低了。", "a", "b"), "supported": True}] * 2
    )
    assert found == [{"all": True, "each": [True, True], "without": [True, True]}] * 2
    assert len(asked) == 2


def test_the_model_is_asked_about_each_statement_and_all_its_papers() -> None:
    chat = QueueChat(yes=deque([0.91234, None]))
    found = judge(
        chat, [stated(JOINED, "a", "b", "a"), stated(FACT, "zz"), stated("No.", "c")], PAPERS.get
    )
    assert found.support == (0.9123, None, None)
    assert found.to_json() == {"model": "queue", "support": [0.9123, None, None]}
    assert found.usage == USAGE + USAGE
    first, second = chat.asked
    assert f"Source: A title. {ALPHA} A title. {BETA}\n\nClaim: {JOINED}" in first.text
    assert "Claim: No." in second.text


def test_the_opinion_is_the_mean_over_answers_and_leaves_out_what_was_not_judged() -> None:
    def item(*support: float | None) -> Item:
        return Item(Question("1", "fact", "q"), (), {"judge": {"model": "m", "support": support}})

    found = opinion([item(0.9, 0.5), item(None), item(0.3, None), item()])
    assert found is not None
    assert found.models == ("m",)
    assert (found.support.value, found.support.n) == (pytest.approx(0.5), 2)
    assert opinion([Item(Question("1", "fact", "q"), (), None)]) is None
