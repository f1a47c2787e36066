from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.errors import ReadError
from rag.review import reading
from rag.review.items import find_items
from rag.review.reading import Review, read_reviews, reviews_in

FLAT = {"id": "r1", "summary": "It folds.", "weaknesses": "No ablation.", "rating": "5: accept"}
NESTED = {
    "id": "r2",
    "content": {
        "title": {"value": "Review"},
        "summary": {"value": "It sorts."},
        "questions": {"value": "Why not merge?"},
        "confidence": {"value": 4},
    },
}


def read(value: object) -> tuple[Review, ...]:
    return reviews_in(json.dumps(value).encode(), "reviews.json")


def test_text_is_kept_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "r.md"
    file.write_text("WEAKNESSES:\r\n- No ablation.\r\n", encoding="utf-8", newline="")
    assert read_reviews(file) == (Review(str(file), 1, None, "WEAKNESSES:\n- No ablation.\n"),)


def test_smart_quotes_in_a_legacy_encoding() -> None:
    data = "QUESTIONS:\nWhat does “näive” mean?".encode("cp1252")
    (review,) = reviews_in(data, "r.txt")
    assert [item.text for item in find_items(review.text)] == ["What does “näive” mean?"]


@pytest.mark.parametrize("wrap", [lambda notes: notes, lambda notes: {"notes": notes}])
def test_notes_of_a_conference_site(wrap: object) -> None:
    reviews = read(wrap([FLAT, NESTED]))  # type: ignore[operator]
    assert [(r.number, r.id) for r in reviews] == [(1, "r1"), (2, "r2")]
    assert reviews[0].text == "## Summary\n\nIt folds.\n\n## Weaknesses\n\nNo ablation."
    assert reviews[1].text == "## Summary\n\nIt sorts.\n\n## Questions\n\nWhy not merge?"
    assert [(i.section, i.text) for r in reviews for i in find_items(r.text)] == [
        ("weaknesses", "No ablation."),
        ("questions", "Why not merge?"),
    ]


@pytest.mark.parametrize("field", ["text", "review", "comment"])
def test_one_text_field(field: str) -> None:
    assert [r.text for r in read({field: "Why?"})] == ["Why?"]
    assert [r.text for r in read([{"content": {field: {"value": "Why?"}}}])] == ["Why?"]


def test_reviews_as_lines_by_id_and_as_replies() -> None:
    lines = "\n".join(json.dumps({"id": n, "text": f"Why {n}?"}) for n in (1, 2))
    assert [(r.id, r.text) for r in reviews_in(lines.encode(), "r.jsonl")] == [
        ("1", "Why 1?"),
        ("2", "Why 2?"),
    ]
    assert [r.id for r in read({"a": FLAT | {"id": None}, "b": {"text": "Why?"}})] == ["a", "b"]
    submission = {"content": {"title": "T", "abstract": "A"}, "details": {"replies": [NESTED]}}
    assert [r.id for r in read({"notes": [submission]})] == ["r2"]


def test_lists_of_texts_are_paragraphs() -> None:
    (review,) = read({"weaknesses": ["No proof.", "No code."], "questions": "Why?"})
    assert [(i.section, i.text) for i in find_items(review.text)] == [
        ("weaknesses", "No proof."),
        ("weaknesses", "No code."),
        ("questions", "Why?"),
    ]
    assert [r.text for r in read({"content": {"review": {"value": ["A.", None, "B."]}}})] == [
        "A.\n\nB."
    ]


def test_a_note_exported_twice_is_one_review() -> None:
    other = NESTED | {"id": "r3"}
    details = {"replies": [NESTED, other], "directReplies": [NESTED]}
    assert [r.id for r in read({"notes": [{"id": "s", "details": details}]})] == ["r2", "r3"]
    # Without an id, or with another text, it is another review.
    assert [r.text for r in read([{"text": "Why?"}, {"text": "Why?"}])] == ["Why?", "Why?"]
    assert [r.id for r in read([FLAT, FLAT | {"summary": "It sorts."}])] == ["r1", "r1"]


def test_reviews_below_a_name() -> None:
    by_name = {"title": "T", "reviews": {"R1": FLAT | {"id": None}, "R2": "The bound is loose."}}
    assert [(r.id, r.text.split("\n")[0]) for r in read(by_name)] == [
        ("R1", "## Summary"),
        ("R2", "The bound is loose."),
    ]
    assert [r.text for r in read({"paper_id": "p", "review": {"weaknesses": "No proof."}})] == [
        "## Weaknesses\n\nNo proof."
    ]
    assert [r.text for r in read({"reviews": {"R1": {"text": "Why?"}}})] == ["Why?"]


def test_what_the_authors_wrote_is_no_review() -> None:
    reply = {"signatures": ["Conf/2026/Paper1/Authors"], "content": {"comment": "Thank you."}}
    assert [r.id for r in read([FLAT, reply])] == ["r1"]


@pytest.mark.parametrize(
    ("data", "name", "said"),
    [
        (b"", "r.md", "'r.md' is empty. Give a review as text, Markdown or JSON."),
        ("\ufeff \n\u200b".encode(), "r.md", "'r.md' is empty"),
        (b'{"title": "T", "score": 3}', "r.json", "its fields are title, score. Name the text"),
        (b'{"text": " "}', "r.json", "holds no review: its fields are text"),
        (b"[]", "r.json", "holds no review: it is empty"),
        (b"[1, 2]", "r.json", "holds no review: it holds no objects"),
        (b'{"text": "a', "r.json", "is not JSON: Unterminated string starting at at line 1"),
        (b"[" * 100_000, "r.json", "is not JSON: it is nested too deeply"),
        (b"\x00\x01\x02\x03" * 50, "r.md", "'r.md' cannot be read. It is a binary file"),
    ],
)
def test_what_cannot_be_read(data: bytes, name: str, said: str) -> None:
    with pytest.raises(ReadError) as raised:
        reviews_in(data, name)
    assert said in str(raised.value)


def test_missing_files_and_folders(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="does not exist or is no file"):
        read_reviews(tmp_path / "none.md")
    with pytest.raises(ReadError, match="is a folder"):
        read_reviews(tmp_path)


def test_advice_fits_the_failure(tmp_path: Path) -> None:
    with pytest.raises(ReadError) as raised:
        read_reviews(tmp_path / ("r" * 300))
    assert str(raised.value).endswith(" name too long. Give the file of a review.")
    with pytest.raises(ReadError, match="does not exist or is no file"):
        read_reviews(Path("a\0b"))


def through_a_pipe(data: bytes) -> tuple[Review, ...]:
    out, into = os.pipe()

    def write() -> None:
        with os.fdopen(into, "wb") as pipe:
            pipe.write(data)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with os.fdopen(out, "rb"):
            return read_reviews(Path(f"/dev/fd/{out}"))
    finally:
        writer.join()


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="no /dev/fd here")
def test_a_pipe_is_read_up_to_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [r.text for r in through_a_pipe(b"QUESTIONS:\nWhy?\n")] == ["QUESTIONS:\nWhy?\n"]
    monkeypatch.setattr(reading, "_MOST_BYTES", 9)
    with pytest.raises(ReadError, match=r"gives more than 0 MB\. Give the file"):
        through_a_pipe(b"0123456789")


def test_a_name_that_is_no_utf_8_can_be_printed() -> None:
    (review,) = reviews_in(b"Why?", os.fsdecode(b"r\xff.md"))
    assert review.file == "r\\udcff.md"


def test_text_that_begins_like_json_is_text() -> None:
    assert [r.text for r in reviews_in(b'["Foo"] is not cited.', "r.md")] == [
        '["Foo"] is not cited.'
    ]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["notes", "content", "value", "text", "weaknesses", "details", "id", "x"]
            ),
            inner,
            max_size=4,
        )
    ),
)


@given(VALUES)
def test_any_json_gives_reviews_or_an_explanation(value: object) -> None:
    try:
        reviews = read(value)
    except ReadError:
        return
    assert [r.number for r in reviews] == list(range(1, len(reviews) + 1))
    assert all(r.text.strip() for r in reviews)


@given(st.binary(max_size=200))
def test_any_bytes_give_reviews_or_an_explanation(data: bytes) -> None:
    for name in ("r.md", "r.json"):
        try:
            assert reviews_in(data, name)
        except ReadError as error:
            assert str(error).startswith(f"'{name}' ")


def test_no_text_of_a_form_is_left_out() -> None:
    form = {
        "rating": "3: reject, not good enough",
        "summary": "It is about graphs.",
        "main_review": "Why is the bound loose?",
        "methods_and_evaluation_criteria": {"value": "The choice of graphs is not motivated."},
        "essential_references_not_discussed": "Lee et al. 2020 must be cited here.",
        "code_of_conduct": "Yes",
        "primary": "yes",
        "title": "A title of the paper here",
        "flag_for_ethics_review": ["No ethics review is needed."],
    }
    (review,) = reviews_in(json.dumps([{"content": form}]).encode(), "r.json")
    assert [(i.section, i.text) for i in find_items(review.text)] == [
        ("comments", "Why is the bound loose?"),
        ("methods and evaluation criteria", "The choice of graphs is not motivated."),
        ("essential references not discussed", "Lee et al. 2020 must be cited here."),
    ]
    assert "reject" not in review.text
    assert "title" not in review.text
    assert "ethics review" not in review.text


def test_a_number_too_long_to_read_is_named() -> None:
    with pytest.raises(ReadError, match="is not JSON: a number in it is too long"):
        reviews_in(b'{"review": ' + b"1" * 5000 + b"}", "r.json")
