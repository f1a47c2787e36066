from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.questions.datasets import (
    Problem,
    Question,
    QuestionSet,
    question_json,
    read_questions,
)
from eval.questions.fields import FIELDS
from eval.questions.gold import GoldIndex
from rag.answer import Turn
from rag.errors import ReadError
from rag.types import Paper, Source

SHARED = Path(__file__).parents[2] / "shared"
DATA = Path(__file__).parents[1] / "eval" / "data"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason=f"no development data at {SHARED}")

GOOD = '{"id": "0", "kind": "fact", "question": "q"}'
EVERYTHING = {
    "id": 7,
    "kind": "followup",
    "question": "And\u2028then?",
    "gold": [["000:7", "a"], ["b"]],
    "must_include": ["x"],
    "must_not_include": ["y"],
    "history": [{"question": "q", "answer": "a"}],
    "note": "n",
}


def paper(paper_id: str, *places: tuple[str, int]) -> Paper:
    return Paper(paper_id, "t", "t", "t", tuple(Source(f, p) for f, p in places))


def written(content: str | bytes, name: str = "q.jsonl") -> Path:
    path = Path(name)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_a_question_with_everything() -> None:
    plain = {"id": "8", "kind": "unanswerable", "question": "Q", "note": None}
    content = json.dumps(EVERYTHING, ensure_ascii=False) + "\r\n\r\n" + json.dumps(plain)
    found = read_questions(written(content))
    first, second = found.questions
    assert first == Question(
        "7",
        "followup",
        "And\u2028then?",
        (("000:7", "a"), ("b",)),
        ("x",),
        ("y",),
        (Turn("q", "a"),),
        "n",
    )
    assert first.answerable
    assert second == Question("8", "unanswerable", "Q")
    assert not second.answerable
    assert (found.problems, found.lost, found.lines) == ((), 0, (1, 3))
    assert found.first(1) == QuestionSet((first,), (), (1,), "q.jsonl")
    assert question_json(second) == {"id": "8", "kind": "unanswerable", "question": "Q"}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "it is not JSON (Expecting property name enclosed in double quotes)"),
        ("[" * 100_000, "it is not JSON (maximum recursion depth exceeded"),
        ("[]", "it is a list, not an object {...}"),
        ("null", "it is null, not an object {...}"),
        ('{"kind": "fact", "question": "q"}', "the field 'id' is missing"),
        ('{"id": "1", "kind": "fact"}', "the field 'question' is missing"),
        ('{"id": true, "kind": "fact", "question": "q"}', "the field 'id' is true or false, not"),
        ('{"id": " ", "kind": "fact", "question": "q"}', "the field 'id' is empty"),
        ('{"id": "1", "kind": "fact", "question": " ?"}', "the field 'question' is empty"),
        ('{"id": "1", "kind": "fact", "question": 5}', "the field 'question' is a number, not a"),
        (GOOD, "the ID '0' stands in line 1 too"),
    ],
)
def test_a_line_that_is_no_question_is_named_and_the_rest_is_read(line: str, said: str) -> None:
    last = '{"id": "9", "kind": "fact", "question": "q"}'
    found = read_questions(written(f"{GOOD}\n{line}\n{last}"))
    assert [question.id for question in found.questions] == ["0", "9"]
    (problem,) = found.problems
    assert (problem.line, problem.lost, found.lost) == (2, True, 1)
    assert problem.message.startswith(said)


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ({"question": "a" * 8001}, "the field 'question' has 8,001 characters; at most 8,000 can"),
        ({"question": "half \ud800"}, "it holds half of a surrogate pair"),
        ({"gold": "000:1"}, "the field 'gold' is a text, not a list of groups [[...]]"),
        ({"gold": ["000:1"]}, "group 1 of the field 'gold' is not a list of texts"),
        ({"gold": [["a"], []]}, "group 2 of the field 'gold' names no paper"),
        ({"gold": [["a", ""]]}, "group 1 of the field 'gold' names no paper"),
        ({"must_include": "x"}, "the field 'must_include' is not a list of texts"),
        ({"must_include": ["x", 5]}, "the field 'must_include' is not a list of texts"),
        (
            {"must_not_include": ["(a"]},
            "the field 'must_not_include' holds a bad regular expression: '(a': missing )",
        ),
        ({"must_include": ["a{99999999999}"]}, "the field 'must_include' holds a bad regular"),
        ({"history": ["x"]}, "the field 'history' is not a list of turns"),
        ({"history": {"question": "q", "answer": "a"}}, "the field 'history' is not a list of"),
        ({"history": [{"question": "q"}]}, "the field 'history' is not a list of turns"),
        ({"note": ["n"]}, "the field 'note' is a list, not a text"),
    ],
)
def test_a_field_that_does_not_fit_is_named(field: dict[str, object], said: str) -> None:
    bad = {"id": "1", "kind": "fact", "question": "q", **field}
    found = read_questions(written(f"{json.dumps(bad)}\n{GOOD}"))
    assert [question.id for question in found.questions] == ["0"]
    (problem,) = found.problems
    assert problem.message.startswith(said)


def test_what_a_misspelling_would_silence_is_said_once() -> None:
    lines = [
        {"id": str(n), "kind": "fact", "question": "q", "must_inlcude": ["x"], "owner": "me"}
        for n in range(3)
    ]
    lines.append({"id": "3", "kind": "unanswerabel", "question": "q"})
    lines.append({"id": "4", "kind": "my own", "question": "q"})
    found = read_questions(written("\n".join(map(json.dumps, lines))))
    assert len(found.questions) == 5
    assert found.problems == (
        Problem(
            1,
            "the field 'must_inlcude' is unknown and ignored (is 'must_include' meant?)",
            lost=False,
        ),
        Problem(1, "the field 'owner' is unknown and ignored", lost=False),
        Problem(
            4,
            "the kind 'unanswerabel' is unknown and counts as answerable "
            "(is 'unanswerable' meant?)",
            lost=False,
        ),
    )
    assert found.lost == 0


@pytest.mark.parametrize(
    "encoded",
    [
        '{"id": "1", "kind": "fact", "question": "Größe?"}'.encode(encoding)
        for encoding in ("utf-8", "utf-8-sig", "utf-16", "cp1252")
    ],
)
def test_any_common_encoding_is_read(encoded: bytes) -> None:
    assert read_questions(written(encoded)).questions[0].question == "Größe?"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "q.jsonl holds no question. Give one JSON object a line with at least"),
        (b"\n{\n", "q.jsonl holds no question. Line 2: it is not JSON (Expecting property name"),
        (b"\x00\x01\x02\x03" * 50, "q.jsonl cannot be read. It is a binary file, not text."),
    ],
)
def test_a_file_without_a_question_is_an_error(content: bytes, said: str) -> None:
    with pytest.raises(ReadError, match=re.escape(said)):
        read_questions(written(content))


def test_a_missing_file_is_named() -> None:
    with pytest.raises(ReadError, match=r"nowhere\.jsonl cannot be read: No such file"):
        read_questions(Path("nowhere.jsonl"))


def test_csv_gives_questions_of_which_nothing_is_expected() -> None:
    content = '\ufeffnote,Question\r\nx,Why?\r\n,\r\n,"Two\r\nlines?"\r\nx,?\r\nx,Why?\r\n'
    found = read_questions(written(content, "q.csv"))
    assert [(q.kind, q.question, q.gold) for q in found.questions] == [
        ("unlabelled", "Why?", ()),
        ("unlabelled", "Two\nlines?", ()),
    ]
    assert len({q.id for q in found.questions}) == 2
    assert found.lines == (2, 4)
    bad, twice = found.problems
    assert (bad.line, bad.lost, twice.line, twice.lost) == (6, True, 7, False)
    assert twice.message == "the question stands in line 2 too, and is asked once"


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
ANYTHING = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3), max_leaves=5)
FIELD_NAMES = st.sampled_from((*FIELDS, "must_inlcude")) | st.text(max_size=3)
LINES = st.lists(
    st.text(alphabet=st.characters(exclude_categories=["Cc", "Cs"]))
    | st.dictionaries(FIELD_NAMES, ANYTHING).map(json.dumps)
    | ANYTHING.map(lambda value: json.dumps({**EVERYTHING, "must_include": value})),
    max_size=5,
)


@given(LINES)
def test_every_line_becomes_a_question_or_is_named(tmp_path_factory: Any, lines: list[str]) -> None:
    path = tmp_path_factory.mktemp("sets") / "q.jsonl"
    path.write_text("\n".join([GOOD, *lines]), encoding="utf-8", newline="\n")
    found = read_questions(path)
    named = {problem.line for problem in found.problems if problem.lost}
    held = {n for n, line in enumerate([GOOD, *lines], start=1) if line.strip()}
    assert held == named | set(found.lines)
    assert not named & set(found.lines)
    assert len(found.lines) == len(found.questions)


def test_the_fingerprint_is_of_what_can_change_a_result() -> None:
    question = Question("1", "fact", "q", (("a",),), ("x",), history=(Turn("q", "a"),), note="n")
    same = QuestionSet((question,), (Problem(2, "bad"),)).fingerprint
    assert re.fullmatch("[0-9a-f]{64}", same)
    for other, equal in (
        (Question("1", "fact", "q", (("a",),), ("x",), history=(Turn("q", "a"),)), True),
        (Question("1", "fact", "q", (("a",),), ("y",), history=(Turn("q", "a"),)), False),
        (Question("1", "fact", "q", (("b",),), ("x",), history=(Turn("q", "a"),)), False),
        (Question("1", "fact", "q", (("a",),), ("x",)), False),
    ):
        assert (QuestionSet((other,)).fingerprint == same) is equal
    assert QuestionSet((question, question)).fingerprint != same


def test_gold_is_found_by_id_and_by_the_start_of_a_file_and_a_place() -> None:
    papers = [
        paper("a", ("folder/000_x.txt", 7), ("002_y.txt", 1)),
        paper("000:9", ("000_x.txt", 1)),
        paper("c", ("1000.txt", 7)),
    ]
    gold = (("000:7", "c"), ("000:9",), ("002:1",), ("002:2", "nobody"))
    found = GoldIndex(iter(papers)).resolve(gold)
    assert found.groups == (frozenset("ac"), frozenset({"000:9"}), frozenset("a"), frozenset())


def test_gold_without_a_paper_and_gold_of_many_are_named() -> None:
    papers = [
        paper("a", ("one/000_x.txt", 7)),
        paper("b", ("two/000_y.txt", 7)),
        paper("c", ("000_x.txt", 8), ("000_y.txt", 8)),
    ]
    index = GoldIndex(papers, {"listed": papers[1]}.get)
    found = index.resolve((("000:7",), ("000:8",), ("000_x:7", "zz", "999:1"), ("listed",)))
    assert found.groups == (
        frozenset("ab"),
        frozenset("c"),
        frozenset("a"),
        frozenset("b"),
    )
    assert found.problems == (
        "gold '000:7' means 2 papers, of 000_x.txt, 000_y.txt: any of them counts; write more of "
        "the file's name, or the paper's ID",
        "gold 'zz' is no paper of the store",
        "gold '999:1' is no paper of the store",
    )


NAMES = st.sampled_from(["a", "ab", "abc", "b", "ba", "a:1"])


@given(st.lists(st.tuples(NAMES, st.integers(1, 3)), max_size=12), NAMES, st.integers(1, 3))
def test_a_place_finds_every_paper_there_and_no_other(
    places: list[tuple[str, int]], prefix: str, position: int
) -> None:
    papers = [paper(f"p{n}", place) for n, place in enumerate(places)]
    expected = {
        f"p{n}" for n, (name, at) in enumerate(places) if name.startswith(prefix) and at == position
    }
    assert GoldIndex(papers).resolve(((f"{prefix}:{position}",),)).groups[0] == expected


def test_the_smoke_questions_refer_to_the_demo_corpus() -> None:
    lines = (DATA / "demo.jsonl").read_text(encoding="utf-8").splitlines()
    ids = {json.loads(line)["id"] for line in lines}
    found = read_questions(DATA / "smoke.jsonl")
    assert (len(ids), len(found.questions), found.problems) == (56, 10, ())
    for question in found.questions:
        assert question.answerable is bool(question.gold)
        assert {i for group in question.gold for i in group} <= ids


@needs_shared
def test_the_development_data_can_be_read() -> None:
    found = read_questions(SHARED / "questions" / "dev.jsonl")
    assert (len(found.questions), found.problems) == (70, ())
    assert all(bool(q.gold) is q.answerable for q in found.questions)
