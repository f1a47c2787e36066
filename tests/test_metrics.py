from __future__ import annotations

import json
from collections import deque

import pytest
from doubles.chat import QueueChat

from eval import naive
from eval.datasets import Question
from eval.metrics import Score, by_kind, score, summary
from rag.retrieve import Retrieval
from rag.types import Answer, Citation, Hit, Paper, Source, Statement, Usage


def question(kind: str = "fact", **options: tuple[str, ...]) -> Question:
    return Question("1", kind, "q", **options)


def answer(*cited: str, text: str = "It is 12.5%.\nYes.", supported: bool = True) -> Answer:
    citations = tuple(Citation(paper_id, "", 0, 0, 0.9) for paper_id in cited)
    statements = (Statement(text, supported, citations),) if cited else ()
    return Answer("q", bool(cited), 0.8, statements, (), "m", Usage(), {"total": 2.0})


def test_a_right_answer() -> None:
    asked = question(must_include=("IS 12", r"%.*yes"), must_not_include=("no",))
    found = score(asked, answer("a", "b"), [{"a", "x"}, {"b"}], {"a", "b"})
    assert found == Score(
        question=asked,
        answered=True,
        all_gold_cited=True,
        must_include=True,
        extra=0,
        unknown=0,
        unsupported=0,
        seconds=2.0,
        confidence=0.8,
    )


@pytest.mark.parametrize(
    ("gold", "all_cited", "extra"),
    [
        ([{"a"}], True, 1),
        ([{"a"}, {"c"}], False, 1),
        ([{"a", "c"}], True, 1),
        ([set()], False, 2),
        ([], False, 2),
    ],
)
def test_every_group_of_gold_must_be_cited(
    gold: list[set[str]], all_cited: bool, extra: int
) -> None:
    found = score(question(), answer("a", "b"), gold, {"a", "b", "c"})
    assert (found.all_gold_cited, found.extra) == (all_cited, extra)


def test_invented_ids_and_unsupported_statements_are_counted() -> None:
    found = score(question(), answer("a", "zz", supported=False), [{"a"}], {"a"})
    assert (found.unknown, found.unsupported) == (1, 1)


@pytest.mark.parametrize(
    ("include", "forbid", "found"),
    [
        (("12.5", "missing"), (), False),
        (("12.5",), ("yes",), False),
        ((), (), True),
    ],
)
def test_expressions(include: tuple[str, ...], forbid: tuple[str, ...], found: bool) -> None:
    asked = question(must_include=include, must_not_include=forbid)
    assert score(asked, answer("a"), [{"a"}], {"a"}).must_include is found


def test_a_refusal_says_nothing_that_an_expression_could_find() -> None:
    found = score(question(must_include=("papers",)), answer(), [{"a"}], {"a"})
    assert (found.answered, found.must_include) == (False, False)


def test_a_summary_keeps_answerable_and_unanswerable_apart() -> None:
    scores = [
        score(question(), answer("a"), [{"a"}], {"a"}),
        score(question(), answer(), [{"a"}], {"a"}),
        score(question("unanswerable"), answer(), [], {"a"}),
        score(question("unanswerable"), answer("zz"), [], {"a"}),
    ]
    assert summary(scores) == {
        "n": 4,
        "all_gold_cited": 0.5,
        "must_include": 1.0,
        "extra_papers": 0.0,
        "over_refused": 0.5,
        "refused": 0.5,
        "invented_ids": 1,
        "unsupported": 0,
        "seconds_mean": 2.0,
        "seconds_median": 2.0,
    }
    assert {kind: found["n"] for kind, found in by_kind(scores).items()} == {
        "fact": 2,
        "unanswerable": 2,
    }
    assert summary([])["all_gold_cited"] == 0.0


PAPERS = tuple(Paper(i, i, f"Text {i}.", "", (Source("f", 1),)) for i in "abcde")


class FirstPapers:
    """A retriever whose ranking is the alphabet."""

    def retrieve(self, query: str, papers: int | None = None) -> Retrieval:
        return Retrieval(query, tuple(Hit(p, 1.0, 1, 1) for p in PAPERS[:papers]), ())


@pytest.mark.parametrize(
    ("raw", "answered", "text", "cited"),
    [
        (json.dumps({"answer": "A.", "papers": ["b"], "answerable": True}), True, "A.", ["b"]),
        (json.dumps({"answer": "", "papers": [], "answerable": False}), False, None, []),
        ("Just prose.", True, "Just prose.", []),
        ("[1]", True, "[1]", []),
        (json.dumps({"answer": 3, "papers": [4], "answerable": 1}), True, "3", ["4"]),
        (json.dumps({"answer": "A.", "papers": None, "answerable": True}), True, None, []),
    ],
)
def test_the_naive_baseline_believes_its_model(
    raw: str, answered: bool, text: str | None, cited: list[str]
) -> None:
    chat = QueueChat(deque([raw]))
    found = naive.answer("Why?", FirstPapers(), chat)  # type: ignore[arg-type]
    assert found.answered is answered
    assert [c.paper_id for s in found.statements for c in s.citations] == cited
    if text is not None:
        assert [s.text for s in found.statements] == [text]
    assert [p.id for p in found.papers] == ["a", "b", "c", "d"]
    (asked,) = chat.asked
    assert all(f"ID: {p.id}\nText {p.id}." in asked.text for p in PAPERS[:4])
    assert asked.schema is not None
    assert asked.schema["properties"]["papers"]["items"] == {"enum": ["a", "b", "c", "d"]}
