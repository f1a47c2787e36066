from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from doubles.chat import USAGE, QueueChat
from doubles.embedder import WordCountEmbedder
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.answer import ANSWERABLE, STAGES, Answerer, Turn
from rag.chat_model import Reply
from rag.config import Settings
from rag.errors import EndpointError, UsageError
from rag.facts import missing
from rag.ingest import entries
from rag.passages import Passages
from rag.retrieve import Retriever
from rag.store import Store, fingerprint_of
from rag.types import Answer, Paper, Source, Statement, Usage
from rag.verify import Verifier

TEXTS = {
    "alpha": "AlphaNet lowers the graph noise by 12.5% on ImageNet. It needs 3 GPUs for a week.",
    "beta": "BetaNet folds a protein in 7 seconds. The reward is language and noise.",
    "gamma": "GammaNet draws an image of a graph. It costs 40 cents and no noise.",
}
QUESTION = "By how much does AlphaNet lower the graph noise?"
FACT = "AlphaNet lowers the graph noise by 12.5% on ImageNet."


def paper(paper_id: str, text: str) -> Paper:
    return Paper(paper_id, f"{paper_id} title", text, text, (Source("list.txt", 1),))


@pytest.fixture(scope="module")
def retriever(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Retriever, Passages]]:
    directory = tmp_path_factory.mktemp("store")
    embedder = WordCountEmbedder()
    with Store.open(directory, fingerprint_of(embedder), write=True) as store:
        store.upsert(entries([paper(i, t) for i, t in TEXTS.items()], embedder))
    passages = Passages(embedder)
    with Store.open(directory, fingerprint_of(embedder)) as store:
        yield Retriever(store, embedder, passages, Settings().retrieval), passages


Make = Callable[..., tuple[Answerer, QueueChat]]


@pytest.fixture(scope="module")
def make(retriever: tuple[Retriever, Passages]) -> Make:
    def build(
        *replies: str | Reply, yes: Sequence[float | None] = (), **options: Any
    ) -> tuple[Answerer, QueueChat]:
        chat = QueueChat(deque(replies), deque(yes), **options)
        search, passages = retriever
        verifier = Verifier(passages, lambda claim, source: _judged(chat, claim, source))
        return Answerer(search, verifier, chat, Settings()), chat

    return build


def _judged(chat: QueueChat, claim: str, source: str) -> float | None:
    return chat.yes_probability([{"role": "user", "content": f"{claim} {source}"}])[0]


def reply(*statements: tuple[str, list[Any]]) -> str:
    return json.dumps({"statements": [{"evidence": e, "text": t} for t, e in statements]})


def number_of(chat: QueueChat, sentence: str) -> int:
    """The number that the prompt gave a sentence."""
    line = next(line for line in chat.asked[0].text.splitlines() if line.endswith(sentence))
    return int(line[1 : line.index("]")])


def shown(make: Make, question: str = QUESTION) -> QueueChat:
    """What a model is shown for a question; it then refuses."""
    answerer, chat = make(yes=[0.0])
    answerer.answer(question)
    return chat


def cited(answer: Answer) -> set[str]:
    return {c.paper_id for s in answer.statements for c in s.citations}


def test_an_answer_with_its_quote_its_papers_and_its_costs(make: Make) -> None:
    number = number_of(shown(make), FACT)
    answerer, chat = make(reply((FACT, [number])), yes=[0.9])
    answer = answerer.answer(f" {QUESTION}\n")
    assert answer.question == QUESTION
    assert answer.answered
    assert answer.confidence == 0.9
    (statement,) = answer.statements
    assert (statement.text, statement.supported) == (FACT, True)
    (citation,) = statement.citations
    assert (citation.paper_id, citation.quote) == ("alpha", FACT)
    assert (citation.start, citation.end) == (0, len(FACT))
    assert [p.id for p in answer.papers] == ["alpha"]
    assert answer.model == "queue"
    assert answer.usage == USAGE + USAGE
    assert tuple(answer.seconds) == STAGES == ("retrieve", "generate", "verify", "total")
    assert answer.notes == ()
    assert len(chat.asked) == 2


def test_gate_and_answer_share_their_beginning_so_that_it_is_read_once(make: Make) -> None:
    answerer, chat = make(reply((FACT, [1])))
    answerer.answer(QUESTION)
    gate, written = chat.asked
    assert gate.messages[0] == written.messages[0]
    evidence = gate.messages[1]["content"].split("\n\nDoes the")[0]
    assert written.messages[1]["content"].startswith(evidence)
    assert evidence.startswith("<evidence>\n")
    assert evidence.endswith(f"</evidence>\n\nQuestion: {QUESTION}")
    assert gate.schema is None
    assert written.schema is not None
    statement = written.schema["properties"]["statements"]["items"]
    numbers = [int(line[1]) for line in evidence.splitlines() if line.startswith("[")]
    assert statement["properties"]["evidence"]["items"]["enum"] == numbers


def test_below_the_threshold_nothing_is_written_and_the_closest_papers_are_named(
    make: Make,
) -> None:
    answerer, chat = make(yes=[ANSWERABLE - 0.01])
    answer = answerer.answer(QUESTION)
    assert not answer.answered
    assert answer.statements == ()
    assert answer.confidence == round(ANSWERABLE - 0.01, 4)
    assert {p.id for p in answer.papers} == set(TEXTS)
    assert answer.papers[0].id == "alpha"
    assert len(chat.asked) == 1


def test_a_model_that_says_neither_yes_nor_no_is_told_and_asked_all_the_same(make: Make) -> None:
    answerer, _ = make(reply((FACT, [1])), yes=[None])
    answer = answerer.answer(QUESTION)
    assert answer.answered
    assert answer.confidence == ANSWERABLE
    assert answer.notes == ("The endpoint could not say whether the papers answer; assumed so.",)


def test_statements_are_given_as_soon_as_they_are_checked(make: Make) -> None:
    second = "BetaNet folds a protein in 7 seconds."
    chat = shown(make, "graph noise protein")
    numbers = [number_of(chat, FACT), number_of(chat, second)]
    answerer, _ = make(reply((FACT, numbers[:1]), (second, numbers[1:]), (FACT, numbers[:1])))
    given: list[Statement] = []
    answer = answerer.answer("graph noise protein", on_statement=given.append)
    assert tuple(given) == answer.statements
    assert [s.text for s in given] == [FACT, second]
    assert {p.id for p in answer.papers} == {"alpha", "beta"}


def test_a_wrong_number_gives_way_to_the_papers_own_words(make: Make) -> None:
    number = number_of(shown(make), FACT)
    wrong = "AlphaNet lowers the graph noise by 21.5% on ImageNet."
    answerer, _ = make(reply((wrong, [number])))
    answer = answerer.answer(QUESTION)
    assert [(s.text, s.supported) for s in answer.statements] == [(FACT, True)]
    assert answer.notes == (
        f'Not supported by alpha, whose own words are shown instead: "{wrong}"',
    )


def test_a_statement_that_cites_nothing_known_is_shown_as_unsupported_beside_others(
    make: Make,
) -> None:
    number = number_of(shown(make), FACT)
    answerer, _ = make(reply((FACT, [number]), ("Noise is bad.", [99])), yes=[0.8])
    answer = answerer.answer(QUESTION)
    assert [(s.supported, s.citations != ()) for s in answer.statements] == [
        (True, True),
        (False, False),
    ]
    assert answer.confidence == 0.4
    assert answer.notes == ('The model cited 99, which it was not given: "Noise is bad."',)


def test_only_unsupported_statements_are_no_answer(make: Make) -> None:
    answerer, _ = make(reply(("Noise is bad.", [99])))
    answer = answerer.answer(QUESTION)
    assert not answer.answered
    assert answer.statements == ()


def test_an_empty_list_means_that_the_papers_do_not_answer(make: Make) -> None:
    answerer, _ = make(reply())
    assert not answerer.answer(QUESTION).answered


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (Reply("It is 12.5%.", USAGE, "stop", truncated=False), "did not reply in the JSON"),
        (Reply('{"answer": "12.5%"}', USAGE, "stop", truncated=False), "RAG_LLM_BASE_URL"),
        (Reply("", USAGE, "stop", truncated=False), "did not reply in the JSON"),
        (Reply('{"statements": [{"evid', USAGE, None, truncated=True), "broke off before its"),
        (Reply("<think>", USAGE, "length", truncated=True), "RAG_ANSWER_MAX_ANSWER_TOKENS"),
    ],
)
def test_a_reply_without_any_statement_is_an_error_not_a_refusal(
    make: Make, raw: Reply, said: str
) -> None:
    answerer, _ = make(raw)
    with pytest.raises(EndpointError, match=said):
        answerer.answer(QUESTION)


def test_a_reply_that_breaks_off_keeps_what_it_said_and_says_so(make: Make) -> None:
    number = number_of(shown(make), FACT)
    whole = reply((FACT, [number]), ("It needs 3 GPUs", [number]))
    answerer, _ = make(Reply(whole[:-12], USAGE, None, truncated=True))
    answer = answerer.answer(QUESTION)
    assert [s.text for s in answer.statements] == [FACT]
    assert answer.notes == ("The model's reply broke off; a last statement may be missing.",)


def test_what_the_endpoint_does_not_support_is_said(make: Make) -> None:
    answerer, _ = make(reply((FACT, [1])), degraded=("No schema here.",))
    assert answerer.answer(QUESTION).notes[0] == "No schema here."


def test_a_follow_up_is_asked_on_its_own_feet(make: Make) -> None:
    answerer, chat = make(QUESTION, reply((FACT, [1])))
    told: list[str] = []
    answer = answerer.answer(
        "By how much does it?",
        [Turn("What does AlphaNet do to graph noise?", "It lowers it.")],
        on_question=told.append,
    )
    assert answer.question == "By how much does it?"
    assert (answer.asked, told) == (QUESTION, [QUESTION])
    said = "User: What does AlphaNet do to graph noise?\nAssistant: It lowers it."
    assert said in chat.asked[0].text
    assert f"Question: {QUESTION}" in chat.asked[1].text
    assert answer.usage == Usage(30, 6)


def test_a_question_that_stands_on_its_own_is_asked_as_it_is(make: Make) -> None:
    answerer, chat = make(yes=[0.0])
    answer = answerer.answer(QUESTION, [Turn("What?", "That.")])
    assert answer.asked == ""
    assert len(chat.asked) == 1
    assert f"Question: {QUESTION}" in chat.asked[0].text


@pytest.mark.parametrize("rewritten", ["", " \n", "...", "It is 12.5%.", "What does DeltaNet do?"])
def test_a_rewriting_that_cannot_be_used_leaves_both_questions(make: Make, rewritten: str) -> None:
    answerer, chat = make(rewritten, yes=[0.0])
    answerer.answer("How much is it?", [Turn("What does AlphaNet do?", "It lowers noise.")])
    both = "Question: How much is it? (This follows on from: What does AlphaNet do?)"
    assert both in chat.asked[1].text


def test_a_question_in_another_language_is_answered_in_it(make: Make) -> None:
    english, question = "How much graph noise does AlphaNet remove?", "AlphaNet把图噪声降低多少？"
    translated = "AlphaNet在ImageNet上把图噪声降低了12.5%。"
    answerer, chat = make(english, reply((FACT, [1])), translated, yes=[0.9, 0.8])
    given: list[Statement] = []
    answer = answerer.answer(question, on_statement=given.append)
    assert question in chat.asked[0].text
    assert f"Question: {english}" in chat.asked[1].text
    assert "into Chinese" in chat.asked[3].text
    assert FACT in chat.asked[4].text
    assert [s.text for s in given] == [s.text for s in answer.statements] == [translated]
    assert answer.statements[0].citations[0].quote == FACT
    assert (answer.asked, answer.notes) == (english, ())


@pytest.mark.parametrize(
    ("translated", "likely"),
    [
        ("AlphaNet在ImageNet上把图噪声降低了21.5%。", 1.0),  # another number
        ("AlphaNet把图噪声降低了12.5%。", 1.0),  # a name is lost
        ("AlphaNet在ImageNet和COCO2017上把图噪声降低了12.5%。", 1.0),  # a name is new
        ("AlphaNet在ImageNet上把图噪声降低了12.5%。", 0.2),  # not the same, says the judge
        ("", 1.0),
    ],
)
def test_a_translation_that_says_another_thing_gives_way_to_the_english(
    make: Make, translated: str, likely: float
) -> None:
    answerer, _ = make("How much noise?", reply((FACT, [1])), translated, yes=[0.9, likely])
    answer = answerer.answer("图噪声降低多少？")
    assert [(s.text, s.supported) for s in answer.statements] == [(FACT, True)]
    assert answer.notes == (f'No sound translation was found for: "{FACT}"',)


def test_what_is_written_is_told_before_it_is_checked(make: Make) -> None:
    answerer, _ = make(reply((FACT, [1])), piece=9)
    told: list[str] = []
    answerer.answer(QUESTION, on_writing=told.append)
    begun = [text for text in told if text]
    assert begun == sorted(begun, key=len)
    assert all(FACT.startswith(text) for text in begun)
    assert FACT[:20] in {text[:20] for text in begun}


def test_only_papers_among_some_are_answered_from(make: Make) -> None:
    answerer, _ = make(yes=[0.0])
    answer = answerer.answer(QUESTION, among={"beta", "gamma"})
    assert {paper.id for paper in answer.papers} == {"beta", "gamma"}


def test_a_statement_that_cites_the_wrong_paper_is_given_the_right_one(make: Make) -> None:
    asked = "graph noise protein"
    other = number_of(shown(make, asked), "BetaNet folds a protein in 7 seconds.")
    said = "On ImageNet, AlphaNet lowers the graph noise by 12.5%."
    answerer, _ = make(reply((said, [other])))
    (statement,) = answerer.answer(asked).statements
    assert statement.text == said
    assert (statement.supported, cited_by(statement)) == (True, ["alpha"])


def cited_by(statement: Statement) -> list[str]:
    return [citation.paper_id for citation in statement.citations]


@pytest.mark.parametrize("question", ["", " ", "?", "x" * 8_001])
def test_a_question_that_cannot_be_read_asks_no_model(make: Make, question: str) -> None:
    answerer, chat = make()
    with pytest.raises(UsageError):
        answerer.answer(question)
    assert chat.asked == []


CITATIONS = st.lists(st.one_of(st.integers(-2, 12), st.text(max_size=3), st.none()), max_size=4)
STATEMENTS = st.one_of(
    st.sampled_from([*(s for t in TEXTS.values() for s in t.split(". ")), "GammaNet needs 12.5%."]),
    st.lists(
        st.sampled_from("AlphaNet BetaNet graph noise 12.5% 7 40 DeltaNet [1] [alpha] not".split()),
        max_size=7,
    ).map(" ".join),
    st.text(max_size=20),
)


@settings(max_examples=60)
@given(
    st.one_of(
        st.lists(st.tuples(STATEMENTS, CITATIONS), max_size=6).map(lambda rows: reply(*rows)),
        st.text(max_size=40),
    ),
    st.integers(1, 30),
    st.sampled_from([QUESTION, "Which papers lower noise?", "protein image"]),
)
def test_whatever_the_model_replies_only_retrieved_papers_and_their_facts_are_shown(
    make: Make, raw: str, piece: int, question: str
) -> None:
    answerer, _ = make(raw, piece=piece)
    given: list[Statement] = []
    try:
        answer = answerer.answer(question, on_statement=given.append)
    except EndpointError:
        return
    assert cited(answer) <= set(TEXTS)
    assert {p.id for p in answer.papers} <= set(TEXTS)
    assert cited(answer) <= {p.id for p in answer.papers}
    assert 0.0 <= answer.confidence <= 1.0
    assert answer.answered == any(s.supported for s in given)
    for statement in answer.statements:
        papers = " ".join(f"{c.paper_id} title. {TEXTS[c.paper_id]}" for c in statement.citations)
        if statement.supported:
            assert statement.citations
            assert missing(statement.text, papers) == ()
        for citation in statement.citations:
            assert TEXTS[citation.paper_id][citation.start : citation.end] == citation.quote


def test_without_papers_nothing_is_asked(tmp_path: Path) -> None:
    embedder = WordCountEmbedder()
    with Store.open(tmp_path, fingerprint_of(embedder), write=True):
        pass
    chat = QueueChat()
    passages = Passages(embedder)
    with Store.open(tmp_path, fingerprint_of(embedder)) as store:
        search = Retriever(store, embedder, passages, Settings().retrieval)
        answer = Answerer(search, Verifier(passages), chat, Settings()).answer(QUESTION)
    assert not answer.answered
    assert answer.papers == ()
    assert chat.asked == []


def test_what_only_the_question_says_is_left_out(make: Make) -> None:
    said = "ZetaNet doubles the graph noise on every known image"
    answerer, _ = make(reply((f"{said}.", [1]), (FACT, [1])), yes=[0.9])
    answer = answerer.answer(f"{said}. {QUESTION}")
    assert [s.text for s in answer.statements] == [FACT]
    assert f'Left out, since only the question says it: "{said}."' in answer.notes
