from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.statements import Draft, StatementStream, schema

NUMBERS = {1, 2, 3}


def reply(*statements: Any, **dump: Any) -> str:
    return json.dumps({"statements": list(statements)}, **dump)


def said(text: str, *evidence: object) -> dict[str, object]:
    return {"evidence": list(evidence), "text": text}


def drafts(whole: str, piece: int = 10_000) -> list[Draft]:
    stream = StatementStream(NUMBERS)
    pieces = [whole[i : i + piece] for i in range(0, len(whole), piece)]
    return [draft for part in pieces for draft in stream.feed(part)]


def test_a_statement_comes_when_its_object_is_complete() -> None:
    stream = StatementStream(NUMBERS)
    assert stream.feed('{"statements": [{"evidence": [2, 2, 1], "text": "A is B') == []
    assert not stream.understood
    assert stream.feed('."}, {"text"') == [Draft("A is B.", (2, 1))]
    assert stream.understood
    assert stream.feed(': "C.", "evidence": [3]}') == [Draft("C.", (3,))]
    assert stream.feed("]}") == []


@pytest.mark.parametrize(
    ("whole", "expected"),
    [
        (reply(said("A.", 9, 1)), [Draft("A.", (1,), ("9",))]),
        (reply(said("A.", "2", "[3]", "x")), [Draft("A.", (2, 3), ("x",))]),
        (reply(said("A.", True, 1.0, None)), [Draft("A.", (), ("True", "1.0", "None"))]),
        (reply({"text": "A.", "evidence": 2}), [Draft("A.", (2,))]),
        (reply({"text": "A."}), [Draft("A.", ())]),
        (reply(said(" A\n\tis  B. ", 1)), [Draft("A is B.", (1,))]),
        (reply(said("A\x1b[31m is\u202e \u200bB.\U000e0041", 1)), [Draft("A is B.", (1,))]),
        (reply(said("\ud800A.", 1)), [Draft("A.", (1,))]),
        ("[" + json.dumps(said("A.", 1)) + "]", [Draft("A.", (1,))]),
        ("```json\n[" + json.dumps(said("A.", 1)) + "]\n```", [Draft("A.", (1,))]),
        ("Here it is: " + reply(said("A.", 1)), [Draft("A.", (1,))]),
        ('{"statements": [{"text": "two\nlines", "evidence": [1]}]}', [Draft("two lines", (1,))]),
        (reply(said("", 1), said("\u200b", 1), said("[1]", 1), {"text": 3}, "x", 7), []),
        (reply(), []),
        ("Paris.", []),
        ('{"answer": "Paris", "evidence": [1]}', []),
        ("", []),
    ],
)
def test_what_a_reply_gives(whole: str, expected: list[Draft]) -> None:
    assert drafts(whole) == expected
    assert drafts(whole, 1) == expected


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("A is B [2].", "A is B."),
        ("A [1, 3] and [1-2] B [ 2 ]", "A and B"),
        ("A [0, 1] interval, [4], [bold], (n = 12000 papers)", None),
        ("A [" + "1" * 5000 + "]", None),
        ("BLEU [0.7123]", None),
    ],
)
def test_only_markers_of_given_numbers_leave_the_text(text: str, left: str | None) -> None:
    assert drafts(reply(said(text, 1))) == [Draft(left or text, (1,))]


@pytest.mark.parametrize(
    ("whole", "understood"),
    [
        (reply(said("A.", 1)), True),
        (reply(), True),
        ("[ ]", True),
        ("Paris.", False),
        (reply({"claim": "A."}), False),
        (reply("A."), False),
        (reply(said("A.", 1))[:-6], False),
        ("", False),
    ],
)
def test_whether_a_reply_was_understood(whole: str, understood: bool) -> None:
    stream = StatementStream(NUMBERS)
    stream.feed(whole)
    assert stream.understood is understood


JSON_LIKE = st.recursive(
    st.one_of(
        st.integers(-5, 12), st.booleans(), st.none(), st.floats(), st.text(max_size=10),
        st.sampled_from(["A is B [1].", "[9]", "{", '"', "\\", "text", "\x1b[31mred"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["text", "evidence", "statements", "x"]), inner),
    ),
    max_leaves=8,
)  # fmt: skip
REPLIES = st.one_of(
    st.lists(
        st.one_of(
            JSON_LIKE,
            st.fixed_dictionaries({"text": JSON_LIKE, "evidence": JSON_LIKE}),
            st.fixed_dictionaries(
                {"text": st.text(max_size=12), "evidence": st.lists(st.integers(0, 5), max_size=4)}
            ),
        ),
        max_size=4,
    ).map(lambda statements: reply(*statements)),
    st.text(alphabet='[]{}",:123abc \n\\`', max_size=60),
    st.text(max_size=30),
    st.text(alphabet='[]{}",: 12\\x', max_size=40).map(lambda t: '{"statements": [' + t),
)


@given(REPLIES, st.lists(st.integers(1, 9), min_size=1, max_size=8), st.integers(0, 200))
def test_the_drafts_are_the_same_however_the_reply_is_cut(
    whole: str, sizes: list[int], cut: int
) -> None:
    whole = whole[: len(whole) - cut] if cut % 3 == 0 else whole
    stream = StatementStream(NUMBERS)
    found: list[Draft] = []
    start = turn = 0
    while start < len(whole):
        size = sizes[turn % len(sizes)]
        found += stream.feed(whole[start : start + size])
        start, turn = start + size, turn + 1
    assert found == drafts(whole)
    for draft in found:
        assert draft.text == draft.text.strip() != ""
        assert set(draft.evidence) <= NUMBERS
        assert len(set(draft.evidence)) == len(draft.evidence)


@pytest.mark.parametrize("depth", [50, 900, 100_000])
def test_deep_nesting_raises_nothing(depth: int) -> None:
    nested = "[" * depth + "]" * depth
    whole = '{"statements": [{"text": "A.", "evidence": ' + nested + "}]}"
    assert {draft.text for draft in drafts(whole)} <= {"A."}


def test_a_number_too_long_to_read_raises_nothing() -> None:
    assert drafts('{"statements": [{"text": "A.", "evidence": [' + "1" * 5000 + "]}]}") == []


@pytest.mark.parametrize("text", [" " * 200_000 + "[", "[1" * 60_000, "[ 1 ," * 40_000])
def test_time_is_linear_in_hostile_text(text: str) -> None:
    started = time.process_time()
    drafts(reply(said(text, 1)))
    assert time.process_time() - started < 2.0


def test_time_is_linear_in_the_pieces_of_a_reply() -> None:
    whole = reply(said("word " * 80_000, 1))
    started = time.process_time()
    (draft,) = drafts(whole, piece=4)
    assert len(draft.text) == 399_999
    assert time.process_time() - started < 2.0


def test_the_schema_lets_only_the_given_numbers_be_cited() -> None:
    made = schema({3, 1}, most=4)
    statements = made["properties"]["statements"]
    assert (statements["minItems"], statements["maxItems"]) == (1, 4)
    statement = statements["items"]
    assert statement["properties"]["evidence"]["items"] == {"type": "integer", "enum": [1, 3]}
    assert statement["required"] == ["text", "evidence"]
    # The order in which a model writes: a small one that names numbers first picks wrong ones.
    assert list(statement["properties"]) == ["text", "evidence"]
    assert made["additionalProperties"] is statement["additionalProperties"] is False
