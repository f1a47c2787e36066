from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.answer import Turn
from rag.batch.questions import Asked, Questions, _gathered, _json_lines, read_questions
from rag.errors import UsageError


def read(name: str, content: str | bytes) -> Questions:
    path = Path(name)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_questions(path)


def texts(found: Questions) -> list[str]:
    return [asked.question for asked in found.asked]


def bad(found: Questions) -> list[tuple[int, str]]:
    return [(line.line, line.reason) for line in found.bad]


def refused(name: str, content: str | bytes) -> str:
    with pytest.raises(UsageError) as caught:
        read(name, content)
    return str(caught.value)


def test_json_lines() -> None:
    turn = {"question": "What is A?", "answer": "A net."}
    found = read(
        "q.jsonl",
        '{"question": " What is B? ", "id": "b1", "kind": "fact"}\n\n'
        '{"id": 7, "question": "And C?\u2028Really?"}\n'
        + json.dumps({"question": "How fast?", "history": [turn]}),
    )
    assert found.asked[:2] == (
        Asked("b1", "What is B?", (), 1),
        Asked("7", "And C?\u2028Really?", (), 3),
    )
    assert found.asked[2].history == (Turn("What is A?", "A net."),)
    assert found.bad == ()


def test_bad_lines_are_named_and_the_rest_is_read() -> None:
    found = read(
        "q.jsonl",
        "What?\n"
        '{"question": "Good?"}\n'
        '["question"]\n'
        '{"text": "Question?"}\n'
        '{"question": 7}\n'
        '{"question": " ?! "}\n'
        '{"question": "What?", "id": ["a"]}\n'
        '{"question": "What?", "history": "before"}\n'
        '{"question": "What?", "history": [{"question": 1, "answer": 2}]}\n'
        + json.dumps({"question": "x" * 8001})
        + "\n"
        + '{"question": "Also good?"}',
    )
    assert texts(found) == ["Good?", "Also good?"]
    assert bad(found) == [
        (1, "It is not JSON (Expecting value: line 1 column 1 (char 0))."),
        (3, "It is no JSON object."),
        (4, "It has no field 'question'."),
        (5, "Its 'question' is no text."),
        (6, 'The question is empty. Ask something, as in: rag ask "What is ...?".'),
        (7, "Its 'id' is neither text nor a number."),
        (8, "Its 'history' is no list of {question, answer}."),
        (9, "Its 'history' holds what is no text."),
        (
            10,
            "The question has 8,001 characters; at most 8,000 can be read at once. Ask its parts "
            "one by one.",
        ),
    ]


def test_an_id_made_here_depends_on_the_question_alone() -> None:
    first = read("a.txt", "What is A?\nWhat is B?\n")
    second = read("b.csv", "n,Question\n1,What is B?\n2, What is A? \n")
    assert [a.id for a in first.asked] == [a.id for a in second.asked][::-1]
    assert first.asked[0].id == "q-b130fa7fc1e4"
    followup = {"question": "What is A?", "history": [{"question": "x", "answer": "y"}]}
    third = read("c.jsonl", json.dumps(followup))
    assert third.asked[0].id != first.asked[0].id


def test_a_question_that_stands_twice_is_one() -> None:
    found = read("q.txt", "What is A?\nWhat is B?\nWhat is A?\n")
    assert texts(found) == ["What is A?", "What is B?", "What is A?"]
    assert [asked.line for asked in found.distinct] == [1, 2]
    assert found.bad == ()


def test_an_id_that_stands_for_two_questions_is_a_bad_line() -> None:
    found = read("q.csv", "id,question\na,What is A?\nb,What is B?\na,What is C?\na,What is A?\n")
    assert texts(found) == ["What is A?", "What is B?", "What is A?"]
    assert bad(found) == [(4, "The ID 'a' stands for another question on line 2.")]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("name", ["q.csv", "q.tsv", "q.txt"])
def test_tables(delimiter: str, name: str) -> None:
    content = 'ID,Note,QUESTION \nx,"a, b","Is ""A""\nnew?"\n,,\ny,,Is it B?\n'
    found = read(name, content.replace(",", delimiter))
    assert found.asked == (
        Asked("x", 'Is "A"\nnew?', (), 2),
        Asked("y", "Is it B?", (), 5),
    )


def test_a_table_of_one_column_needs_no_quotes() -> None:
    found = read("q.csv", 'question\nWhat, then, is A?\n"Quoted, is B?"\n')
    assert texts(found) == ["What, then, is A?", "Quoted, is B?"]


def test_a_first_column_without_a_name_is_a_column() -> None:
    # As pandas writes a table with its index.
    found = read("q.tsv", "\tquestion\n0\tWhat is A?\n1\tWhat is B?\n")
    assert (texts(found), bad(found)) == (["What is A?", "What is B?"], [])


@pytest.mark.parametrize("blank", ["\n", "  \n", ",,\n", '"",\n \n'])
def test_rows_without_anything_are_no_header(blank: str) -> None:
    found = read("q.csv", f"{blank}id,question\na,What?\n")
    assert (texts(found), bad(found)) == (["What?"], [])


def test_a_header_whose_cell_goes_on_in_the_next_line() -> None:
    assert refused("q.csv", '"question\nor so"\nWhat?\n') == (
        "The first row of the questions has no cell that is `question` alone."
    )


def test_rows_that_do_not_fit_the_header_are_named() -> None:
    found = read("q.csv", 'id,question\na,What, then?\nb\nc,Good?\nd,"x"y\ne,"never closed\nf,g\n')
    assert texts(found) == ["Good?"]
    assert bad(found) == [
        (2, "It has more cells than the header; quote the question."),
        (3, 'The question is empty. Ask something, as in: rag ask "What is ...?".'),
        (5, "It is no row of a table (',' expected after '\"')."),
        (6, "It is no row of a table (unexpected end of data)."),
    ]


@pytest.mark.parametrize(
    "content",
    [
        "﻿id,question\r\n1,Größe?\r\n".encode(),
        "id;question\r1;Größe?\r".encode("cp1252"),
        "id\tquestion\n1\tGröße?\n".encode("utf-16"),
    ],
)
def test_encodings_and_line_ends_are_guessed(content: bytes) -> None:
    assert texts(read("q.csv", content)) == ["Größe?"]


def test_plain_lines() -> None:
    found = read("q.txt", "What is A, or B?\n\n  [1] Is this one?  \n")
    assert texts(found) == ["What is A, or B?", "[1] Is this one?"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b'{"question": "Is A?"}\n{"question": "Is B?"}', ["Is A?", "Is B?"]),
        (b"question;id\nIs A?;1\n", ["Is A?"]),
        (b"Is A?\nIs B?\n", ["Is A?", "Is B?"]),
    ],
)
def test_what_is_piped_in_tells_its_form(
    monkeypatch: pytest.MonkeyPatch, content: bytes, expected: list[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert texts(read_questions(Path("-"))) == expected


def test_what_cannot_be_read_or_holds_no_question() -> None:
    assert refused("q.csv", "id,text\n1,What?\n") == (
        "q.csv has no column `question`: its first line is 'id,text'. Name the column of the "
        "questions so."
    )
    assert refused("q.jsonl", "") == (
        "q.jsonl holds no question. Give one question a line, JSON objects with a field "
        "`question`, or CSV with a column `question`."
    )
    assert "holds no question. Line 1: It is not JSON" in refused("q.jsonl", "What?")
    assert refused("q.json", '[{"question":\n "A?"}]') == (
        "q.json is one JSON array. Write one object a line instead."
    )
    assert "is a binary file, not text" in refused("q.txt", bytes(range(256)) * 10)
    with pytest.raises(UsageError, match=r"nowhere\.csv cannot be read: No such file"):
        read_questions(Path("nowhere.csv"))
    with pytest.raises(UsageError, match="cannot be read"):
        read_questions(Path())


@given(
    st.lists(
        st.one_of(
            st.text(max_size=20).map(lambda t: json.dumps({"question": t})),
            st.builds(
                lambda i, t: json.dumps({"id": i, "question": t}),
                st.sampled_from(["a", "b", 1, 1.5, None, "", " "]),
                st.sampled_from(["What?", "Why?", ""]),
            ),
            st.text(st.characters(exclude_characters="\n"), max_size=20),
            st.just('{"question": null, "id": "a"}'),
        ),
        max_size=8,
    )
)
def test_every_line_becomes_a_question_or_is_named(lines: list[str]) -> None:
    found = _gathered(_json_lines("\n".join(lines)))
    numbers = [number for number, line in enumerate(lines, start=1) if line.strip()]
    assert sorted([a.line for a in found.asked] + [b.line for b in found.bad]) == numbers
    assert len({(a.id, a.question) for a in found.asked}) == len({a.id for a in found.asked})
    assert all(any(c.isalnum() for c in asked.question) for asked in found.asked)


def test_a_first_line_longer_than_a_table_may_have_is_no_header() -> None:
    found = read("q.txt", "x" * 131_073 + "\nWhat?\n")
    assert texts(found) == ["What?"]
    assert [line for line, _ in bad(found)] == [1]
