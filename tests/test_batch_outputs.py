from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.batch.outputs import COLUMNS, cell, write_csv, write_markdown
from rag.errors import BatchError
from rag.markup import escaped
from rag.text import visible

OUT = Path("out.csv")


def cited(paper_id: str, quote: str) -> dict[str, Any]:
    return {"paper_id": paper_id, "quote": quote, "start": 0, "end": 1, "support": 1.0}


def line(question: str = "What?", error: str | None = None, **answer: Any) -> dict[str, Any]:
    usual = {"answered": True, "confidence": 0.5, "text": "Text. [a]", "statements": []}
    return {
        "id": "q1",
        "question": question,
        "answer": None if error else {**usual, "papers": [], **answer},
        "error": error,
    }


ANSWERED = line(
    statements=[
        {
            "text": "A *is* B.",
            "supported": True,
            "citations": [cited("a", "A is B."), cited("b", "B.")],
        },
        {"text": "1. C", "supported": False, "citations": [cited("a", "A is B.")]},
    ]
)
REFUSED = line(
    answered=False,
    text="The papers do not answer this.",
    papers=[{"paper_id": f"p{n}", "title": f"Title <{n}>", "sources": []} for n in range(5)],
)
FAILED = line("Why\n?", error="The server is down. Start it.")


def rows(*lines: dict[str, Any]) -> list[dict[str, str]]:
    write_csv(OUT, lines)
    with OUT.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_table_has_a_row_for_each_line() -> None:
    answered, refused, failed = rows(ANSWERED, REFUSED, FAILED)
    assert OUT.read_text().splitlines()[0] == ",".join(COLUMNS)
    assert answered == {
        "id": "q1",
        "question": "What?",
        "answered": "true",
        "confidence": "0.5",
        "text": "Text. [a]",
        "cited": "a; b",
        "quotes": "A is B. | B.",
        "error": "",
    }
    assert (refused["answered"], refused["cited"], refused["quotes"]) == ("false", "", "")
    assert failed == {
        **dict.fromkeys(COLUMNS, ""),
        "id": "q1",
        "question": "Why ?",
        "error": "The server is down. Start it.",
    }


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        "+1",
        "-1",
        "@SUM(A1)",
        "\t=1",
        "  =1",
        "＝1+1",
        "\x00=1",
        "\u200b@x",
        "\r=cmd|'/c'!A0",
    ],
)
def test_no_cell_is_a_formula(text: str) -> None:
    (row,) = rows(
        line(
            text,
            text=text,
            statements=[{"text": "", "supported": True, "citations": [cited(text, text)]}],
        )
    )
    for column in ("question", "text", "cited", "quotes"):
        assert row[column] == f"'{visible(text)}"


@given(st.text(st.characters(), max_size=40))
def test_a_cell_never_begins_like_a_formula_and_loses_nothing_visible(text: str) -> None:
    shown = cell(text)
    assert not shown.lstrip().startswith(tuple("=+-@＝＋－＠"))
    assert shown.removeprefix("'") == visible(text).removeprefix("'")


def test_markdown_shows_questions_statements_quotes_and_what_is_closest() -> None:
    out = Path("out.md")
    write_markdown(out, [ANSWERED, REFUSED, FAILED])
    assert out.read_text() == (
        "## What?\n\n"
        "A \\*is\\* B. \\[a\\] \\[b\\]\n\n"
        "> A is B. \\[a\\]\n\n"
        "> B. \\[b\\]\n\n"
        "1\\. C \\[a\\] **(not supported by the paper it cites)**\n\n"
        "> A is B. \\[a\\]\n\n"
        "## What?\n\n"
        "The papers do not answer this.\n\n"
        "Closest papers:\n\n"
        "- Title \\<0\\> \\[p0\\]\n"
        "- Title \\<1\\> \\[p1\\]\n"
        "- Title \\<2\\> \\[p2\\]\n\n"
        "## Why ?\n\n"
        "**Failed:** The server is down. Start it.\n\n"
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("# Head", "\\# Head"),
        ("- item", "\\- item"),
        ("12) x", "12\\) x"),
        ("<script>alert(1)</script>", "\\<script\\>alert(1)\\</script\\>"),
        ("[a](http://x)", "\\[a\\](http\\://x)"),
        ("a\n\n# b", "a \\# b"),
        ("&lt;", "\\&lt;"),
        ("---", "\\---"),
        ("~~~ x", "\\~\\~\\~ x"),
        ("\x1b[31mred\u202e", "red"),
    ],
)
def test_nothing_of_a_text_is_markup(text: str, shown: str) -> None:
    assert escaped(text) == shown


def test_a_file_is_replaced_whole_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    OUT.write_text("before")

    def broken(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", broken)
        with pytest.raises(BatchError, match=r"out\.csv cannot be written: No space left"):
            write_csv(OUT, [ANSWERED])
    assert OUT.read_text() == "before"
    assert [p.name for p in Path().glob("*out*")] == ["out.csv"]
    write_csv(OUT, [ANSWERED])
    assert OUT.read_text().startswith("id,question")
