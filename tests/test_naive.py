"""The baseline that figures are compared with."""

from __future__ import annotations

import json
from collections import deque

import pytest
from doubles.chat import QueueChat

from eval import naive
from rag.retrieve import Retrieval
from rag.types import Hit, Paper, Source

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
