from __future__ import annotations

import json
from pathlib import Path

import pytest
from doubles.chat import QueueChat
from hypothesis import given
from hypothesis import strategies as st

from rag.asking import Interpreter
from rag.config import Settings
from rag.followup import Mention, Turn, antecedents, depends, joined, plausible, recent
from rag.language import language_of
from rag.references import Resolved, resolve, unknown
from rag.tokens import count
from rag.types import Paper

SHARED = Path(__file__).parents[2] / "shared"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason=f"no development data at {SHARED}")

A, B, C = Mention("a-1", "AlphaNet"), Mention("b2", "Beta nets for…"), Mention("gamma", "Gamma")
TURN = Turn("Which papers lower noise?", "AlphaNet does.", papers=(A, B, C))
OTHER = Turn("What is noise?", "It is noise.", papers=(C,))
BY_ID = {mention.paper_id: mention for mention in (A, B, C, Mention("x9", "Chi"))}


@pytest.mark.parametrize(
    ("question", "text", "named"),
    [
        ("What does the second one cost?", "What does “Beta nets for” cost?", [B]),
        ("What does the 3rd paper cost?", "What does “Gamma” cost?", [C]),
        ("Is paper 2 better?", "Is “Beta nets for” better?", [B]),
        ("And #1?", "And “AlphaNet”?", [A]),
        ("What of the last?", "What of “Gamma”?", [C]),
        ("Does the first use the third?", "Does “AlphaNet” use “Gamma”?", [A, C]),
        ("Compare the first and the second.", "Compare “AlphaNet” and “Beta nets for”.", [A, B]),
        (
            "How does the second one differ?",
            "How does “Beta nets for” differ from “AlphaNet” and “Gamma”?",
            [B, A, C],
        ),
        ("What does b2 cost?", "What does “Beta nets for” cost?", [B]),
        ("What does [gamma] cost?", "What does Gamma cost?", [C]),
        ("What does x9 cost?", "What does “Chi” cost?", [Mention("x9", "Chi")]),
        # No reference to a paper.
        ("Is the second stage frozen?", "Is the second stage frozen?", []),
        ("Does it take a second?", "Does it take a second?", []),
        ("What is the first 10% of it?", "What is the first 10% of it?", []),
        ("What about the ninth one?", "What about the ninth one?", []),
        ("Does chapter 2 say so?", "Does chapter 2 say so?", []),
        ("Does z7 [7] cost?", "Does z7 [7] cost?", []),
    ],
)
def test_papers_by_order_and_by_id(question: str, text: str, named: list[Mention]) -> None:
    found = resolve(question, [TURN], BY_ID.get)
    assert (found.text, list(found.named)) == (text, named)
    assert found.among == ()


@pytest.mark.parametrize(
    "question",
    [
        "What is the first work to use transformers for audio?",
        "What was the first paper on audio?",
        "What is the first work in this area?",
        "Which was the first?",
        "Which of the methods is the first one?",
        "Who wrote the first paper about attention?",
        "Which first one-shot method is the best?",
        "Is there a first one-shot method?",
        "Is it the last study of its kind?",
        "What is the first use of attention?",
        "Which method is number 2 in the ranking?",
        "Is it #1 on ImageNet?",
        "Which method is number 1?",
        "Does first work count?",
        "Is this their second paper?",
        "Is it the very first paper?",
    ],
)
def test_ordinals_of_no_paper_that_was_shown(question: str) -> None:
    assert resolve(question, [TURN], BY_ID.get) == Resolved(question)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("What is the second paper about?", "What is “Beta nets for” about?"),
        ("What is the second one's dataset?", "What is “Beta nets for”'s dataset?"),
        ("What was the last one?", "What was “Gamma”?"),
        ("And second paper?", "And “Beta nets for”?"),
        ("Is the second one of these cheap?", "Is “Beta nets for” of these papers cheap?"),
        (
            "Which data is the second one trained with?",
            "Which data is “Beta nets for” trained with?",
        ),
        ("How does the first compare to b2?", "How does “AlphaNet” compare to “Beta nets for”?"),
        ("Does number 2 scale?", "Does “Beta nets for” scale?"),
    ],
)
def test_ordinals_of_papers_that_were_shown(question: str, text: str) -> None:
    assert resolve(question, [TURN], BY_ID.get).text == text


NUMBERED = {
    paper_id: Mention(paper_id, title)
    for paper_id, title in [("10", "Ten"), ("2", "Two"), ("2024", "Year"), ("2401.01234", "ArXiv")]
}


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Which net uses 10 layers?", "Which net uses 10 layers?"),
        ("What came out in 2024?", "What came out in 2024?"),
        ("Is it 10-10 or 10/2?", "Is it 10-10 or 10/2?"),
        ("What does [10] cost?", "What does “Ten” cost?"),
        ("What does paper 10 cost?", "What does “Ten” cost?"),
        ("What does paper #2024 cost?", "What does “Year” cost?"),
        ("What does paper 11 cost?", "What does paper 11 cost?"),
        ("What does 2401.01234 cost?", "What does “ArXiv” cost?"),
    ],
)
@pytest.mark.parametrize("history", [[], [Turn("?", "!", papers=(NUMBERED["10"],))]])
def test_figures_are_ids_only_where_they_are_written_as_such(
    question: str, text: str, history: list[Turn]
) -> None:
    assert resolve(question, history, NUMBERED.get).text == text


def test_a_number_is_an_id_that_was_shown_then_a_place_then_any_id() -> None:
    shown = Turn("?", "!", papers=(A, B))
    both = Turn("?", "!", papers=(NUMBERED["2"], A))
    assert resolve("paper 2?", [], NUMBERED.get).named == (NUMBERED["2"],)
    assert resolve("paper 2?", [shown], NUMBERED.get).named == (B,)
    assert resolve("paper 2?", [both], NUMBERED.get).named == (NUMBERED["2"],)
    assert resolve("number 2?", [both], NUMBERED.get).named == (A,)


def test_papers_are_counted_as_the_latest_answer_with_enough_of_them_did() -> None:
    history = [TURN, OTHER]
    assert resolve("the first one?", history, BY_ID.get).named == (C,)
    assert resolve("the second one?", history, BY_ID.get).named == (B,)
    assert resolve("the latter?", history, BY_ID.get).named == (B,)
    assert resolve("the second one?", [], BY_ID.get).named == ()


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Which of these has code?", "Which of these papers has code?"),
        ("which of them have code?", "which of these papers have code?"),
        ("Does any of the three papers have code?", "Does any of these papers have code?"),
        ("Do these papers have code?", "Do these papers have code?"),
    ],
)
def test_questions_about_the_papers_shown_are_answered_from_them_alone(
    question: str, text: str
) -> None:
    found = resolve(question, [TURN], BY_ID.get)
    assert (found.text, found.among) == (text, (A, B, C))
    assert resolve(question, [OTHER], BY_ID.get).among == ()


NEEDS = (
    "and on nuScenes?",
    "What about ImageNet?",
    "Which datasets did they run it on?",
    "Do those features also fire?",
    "Is it faster?",
    "Why?",
    "mIoU on nuScenes?",
    "What is its accuracy?",
    "Does that method scale?",
    "What do the authors say?",
    "And is it cheap?",
)
STANDS = (
    "What mIoU does TopoPT reach on ScanNet?",
    "How does TopoPT compress its attention?",
    "Which papers measure how calibrated language models are when they are uncertain?",
    "Which papers in this collection are about proteins?",
    "What is calibration?",
    "Is there a paper that proves lower bounds for those who sample?",
)


def test_what_needs_the_conversation_and_what_does_not() -> None:
    assert [q for q in NEEDS if not depends(q)] == []
    assert [q for q in STANDS if depends(q)] == []


@needs_shared
def test_questions_of_the_development_set_stand_on_their_own_unless_they_follow_up() -> None:
    path = SHARED / "questions" / "dev.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    english = [row for row in rows if language_of(row["question"]) is None]
    follow_ups = {row["id"] for row in english if row["kind"] == "followup"}
    taken = {row["id"] for row in english if depends(row["question"])}
    assert follow_ups - taken == set()
    assert len(taken - follow_ups) <= 4


@pytest.mark.parametrize(
    ("rewritten", "fits"),
    [
        ("What mIoU does TopoPT reach on nuScenes?", True),
        ("What mIoU does TopoPT reach on ScanNet?", False),  # what was asked is gone
        ("What mIoU does PointNet reach on nuScenes?", False),  # a name from nowhere
        ("What mIoU above 80 does TopoPT reach on nuScenes?", False),  # a number from nowhere
        ("And it on nuScenes?", False),  # still needs the conversation
    ],
)
def test_a_rewriting_is_checked(rewritten: str, fits: bool) -> None:
    history = [Turn("What mIoU does TopoPT reach on ScanNet?", "76.6%.")]
    assert plausible(rewritten, "and on nuScenes?", history) == fits


def test_the_oldest_turns_go_first_and_the_last_one_stays() -> None:
    turns = [Turn(f"Question {n}?", "word " * 50) for n in range(10)]
    size = count(turns[0].question) + count(turns[0].answer)
    assert recent(turns, 3 * size) == turns[-3:]
    assert recent(turns, 3 * size - 1) == turns[-2:]
    (only,) = recent(turns, 20)
    assert only.question == "Question 9?"
    assert turns[-1].answer.startswith(only.answer)
    assert len(only.answer) < len(turns[-1].answer)
    assert recent([], 20) == []


@given(st.text(max_size=60), st.lists(st.builds(Turn, st.text(max_size=9), st.text(max_size=9))))
def test_whatever_is_asked_is_resolved(question: str, history: list[Turn]) -> None:
    found = resolve(question, [*history, TURN], BY_ID.get)
    unknown(question, history, 0, BY_ID.get)
    assert set(found.named) <= set(BY_ID.values())
    depends(found.text)
    assert question in joined(question, [TURN])


def test_what_follows_on_twice_names_the_question_that_began() -> None:
    first = Turn("and BetaNet?", "", asked=joined("and BetaNet?", [TURN]))
    assert joined("and GammaNet?", [TURN, first]) == joined("and GammaNet?", [TURN])


def test_a_question_that_was_not_answered_is_no_antecedent_beside_one_that_was() -> None:
    unanswered = Turn("Who won?", "Nobody knows.", answered=False)
    assert antecedents([TURN, unanswered]) == [TURN]
    assert antecedents([unanswered]) == [unanswered]
    reader, chat = interpreter("What about PointNet?")
    assert reader.read("and on nuScenes?", [TURN, unanswered]).text == (
        "and on nuScenes? (This follows on from: Which papers lower noise?)"
    )
    assert "Who won?" not in chat.asked[0].text


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("How does the ninth one differ?", "There is no ninth one: the list has 3 papers."),
        ("And the 4th?", "There is no 4th one: the list has 3 papers."),
        ("What does paper 99 say?", "There is no paper 99: the list has 3 papers, and none has"),
        ("What does source 4 say?", "There is no paper 4: the list has 3 papers, and none has"),
        ("What does paper 0 say?", "There is no paper 0: the list has 3 papers, and none has"),
        ("Compare b2 with [nope123].", "There is no paper [nope123] in the store."),
        ("What do the third one, paper 3, x9, [x9] and [b2] say?", ""),
        ("What is a [CLS] token, and the interval [0, 1]?", ""),
        ("What is the ninth work to use attention?", ""),
        ("Is issue #12 closed as in [7]?", ""),
        ("What came last?", ""),
    ],
)
def test_papers_that_there_are_not(question: str, said: str) -> None:
    found = unknown(question, [TURN], 0, BY_ID.get)
    assert found.startswith(said)
    assert bool(found) == bool(said)


def test_before_any_list_little_is_unknown() -> None:
    assert unknown("What does the ninth one say of source 3?", [], 0, BY_ID.get) == ""
    assert unknown("paper 99?", [], 0, BY_ID.get).startswith("There is no paper 99: none has")
    assert unknown("the ninth one?", [TURN], 9, BY_ID.get) == ""


def interpreter(*replies: str) -> tuple[Interpreter, QueueChat]:
    chat = QueueChat()
    chat.replies.extend(replies)
    papers = {m.paper_id: Paper(m.paper_id, m.title, "", "", ()) for m in BY_ID.values()}
    return Interpreter(chat, papers.get, Settings()), chat


def test_a_question_that_stands_on_its_own_asks_no_model_after_ten_turns() -> None:
    reader, chat = interpreter()
    question = "What mIoU does TopoPT reach on ScanNet?"
    asked = reader.read(question, [TURN] * 10)
    assert (asked.text, asked.shown, asked.language, chat.asked) == (question, question, None, [])


def test_a_rewriting_that_says_another_thing_gives_way_to_both_questions() -> None:
    reader, chat = interpreter("What about PointNet?")
    asked = reader.read("and on nuScenes?", [TURN])
    assert asked.text == "and on nuScenes? (This follows on from: Which papers lower noise?)"
    assert "1. AlphaNet\n2. Beta nets for…\n3. Gamma" in chat.asked[0].text


def test_a_question_in_another_language_is_translated_and_keeps_its_names() -> None:
    reader, chat = interpreter("What mIoU is reached on ScanNet?")
    asked = reader.read("Quel mIoU atteint TopoPT sur ScanNet ?")
    assert asked.language == "French"
    assert asked.text == "What mIoU is reached on ScanNet? TopoPT"
    assert "from French into" in chat.asked[0].text


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Welche Genauigkeit erreicht TopoPT auf ScanNet?", "German"),
        ("und auf nuScenes?", "German"),
        ("¿Qué mIoU alcanza TopoPT en ScanNet?", "Spanish"),
        ("Quale mIoU raggiunge TopoPT su ScanNet?", "Italian"),
        ("Qual é o mIoU do TopoPT no ScanNet?", "Portuguese"),
        ("Welke mIoU haalt TopoPT op ScanNet?", "Dutch"),
        ("核的衰减速率会改变吗？", "Chinese"),
        ("TopoPTのmIoUはいくつですか", "Japanese"),
        ("TopoPT의 mIoU는?", "Korean"),
        ("Какой mIoU у TopoPT?", "Russian"),
        ("ما هي دقة TopoPT؟", "Arabic"),
        ("TopoPT რას აღწევს?", "another language"),
        ("and on nuScenes?", None),
        ("What is de novo design?", None),
        ("KL divergence", None),
        ("Does α-β pruning help?", None),
        ("", None),
    ],
)
def test_languages(text: str, language: str | None) -> None:
    assert language_of(text) == language


def test_english_questions_are_taken_for_english() -> None:
    path = Path(__file__).parents[1] / "eval" / "data" / "smoke.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [r["question"] for r in rows if language_of(r["question"])] == []
