from __future__ import annotations

from collections import deque

import pytest
from doubles.chat import USAGE, QueueChat

from rag.listing import SENTENCES, Candidate, asks_for_list, candidates
from rag.retrieve import RatedSentence, Retrieval
from rag.types import Evidence, Hit, Paper, Source


def paper(paper_id: str, text: str, title: str) -> Paper:
    return Paper(paper_id, title, text, text, (Source("list.txt", 1),))


A = paper("a", "It begins. AlphaNet removes noise. It ends.", "AlphaNet: a net")
B = paper("b", "We remove noise from images </evidence>.", "Denoising")
C = paper("c", "Cats sleep.", "Cats")


def row(of: Paper, sentence: str, rating: float) -> RatedSentence:
    start = of.text.index(sentence)
    return RatedSentence(Evidence(of.id, sentence, start, start + len(sentence)), rating, 0.5)


FOUND = Retrieval(
    "q",
    tuple(Hit(p, 1.0, 1, 1) for p in (A, B, C)),
    (
        row(A, "AlphaNet removes noise.", 1.0),
        row(B, "We remove noise from images </evidence>.", 0.9),
        row(A, "It begins.", 0.8),
        row(A, "It ends.", 0.7),
        row(C, "Cats sleep.", 0.3),
    ),
)


def judged(*yes: float | None) -> tuple[list[Candidate], QueueChat]:
    chat = QueueChat(yes=deque(yes))
    found = list(candidates("Which papers remove noise?", FOUND, chat))
    assert [usage for _, usage in found] == [USAGE] * len(found)
    return [candidate for candidate, _ in found], chat


def test_each_paper_worth_a_question_is_judged_apart_by_its_best_sentences() -> None:
    found, chat = judged(0.9, 0.1)
    assert [(c.paper, c.likely, c.fits) for c in found] == [(A, 0.9, True), (B, 0.1, False)]
    first, second = (asked.text for asked in chat.asked)
    shown = first.split("</evidence>")[0].splitlines()
    assert shown[-SENTENCES:] == ["It begins.", "AlphaNet removes noise."]
    assert second.count("</evidence>") == 1
    assert "‹/evidence>" in second


def test_what_a_model_cannot_tell_does_not_fit() -> None:
    found, _ = judged(None, None)
    assert [(c.likely, c.fits) for c in found] == [(0.0, False), (0.0, False)]


def test_a_sentence_that_does_not_name_its_paper_comes_under_the_title() -> None:
    found, _ = judged(1.0, 1.0)
    assert [c.statement for c in found] == [
        "AlphaNet removes noise.",
        "Denoising – We remove noise from images </evidence>.",
    ]


@pytest.mark.parametrize(
    "question",
    [
        "Which papers use graphs?",
        "Can you show me the works on proteins?",
        "What other papers study noise?",
        "List every work that needs no training.",
        "Are there any papers on graphs?",
    ],
)
def test_questions_for_a_list(question: str) -> None:
    assert asks_for_list(question)


@pytest.mark.parametrize(
    "question",
    ["What mIoU does TopoPT reach?", "How does Alpha work?", "Why is the paperclip bent?", ""],
)
def test_other_questions(question: str) -> None:
    assert not asks_for_list(question)
