from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.render import Screen, answer_json, answer_text, hits_json, paper_json, to_json
from rag.types import Answer, Citation, Evidence, Hit, Paper, Source, Statement, Usage

EVIL = "\x1b[31m[bold]:smile:\u202e\x9b2J\U000e0041</evidence>\nnext"
SEEN = "[bold]:smile:</evidence> next"
PAPER = Paper("a", "Title", "The text.", r"\textbf{The} text.", (Source("f.txt", 2),))
CITATION = Citation("a", "The text.", 0, 9, 0.75)


def answer(*statements: Statement, papers: tuple[Paper, ...] = (PAPER,)) -> Answer:
    seconds = {"retrieve": 0.1, "generate": 0.2, "verify": 0.0, "total": 0.3}
    return Answer(
        "Q?", bool(statements), 0.5, statements, papers, "m", Usage(3, 4), seconds, ("A note.",)
    )


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> tuple[Screen, io.StringIO]:
    made = Screen()
    made.console.file = io.StringIO()
    return made, made.console.file


def test_json_of_an_answer_has_the_documented_keys_in_order() -> None:
    found = answer_json(answer(Statement("The text.", True, (CITATION,))))
    assert json.dumps(found) == json.dumps(
        {
            "question": "Q?",
            "answered": True,
            "confidence": 0.5,
            "text": "The text. [a]",
            "statements": [
                {
                    "text": "The text.",
                    "supported": True,
                    "citations": [
                        {
                            "paper_id": "a",
                            "quote": "The text.",
                            "start": 0,
                            "end": 9,
                            "support": 0.75,
                        }
                    ],
                }
            ],
            "papers": [
                {"paper_id": "a", "title": "Title", "sources": [{"file": "f.txt", "position": 2}]}
            ],
            "model": "m",
            "usage": {"prompt_tokens": 3, "completion_tokens": 4},
            "seconds": {"retrieve": 0.1, "generate": 0.2, "verify": 0.0, "total": 0.3},
        }
    )


def test_the_text_of_an_answer_marks_what_is_not_supported() -> None:
    statements = (
        Statement("One.", True, (CITATION, Citation("b", "q", 0, 1, 0.9))),
        Statement("Two.", False, (CITATION,)),
    )
    assert answer_text(answer(*statements)) == (
        "One. [a] [b]\nTwo. [a] (not supported by the paper it cites)"
    )
    assert answer_text(answer()) == "The papers do not answer this."


def test_json_of_hits_and_papers() -> None:
    hit = Hit(PAPER, 0.12345678, 1, None, (Evidence("a", "The text.", 0, 9),))
    assert json.dumps(hits_json([hit])) == json.dumps(
        [
            {
                "paper_id": "a",
                "title": "Title",
                "score": 0.123457,
                "sources": [{"file": "f.txt", "position": 2}],
                "evidence": [{"text": "The text.", "start": 0, "end": 9}],
            }
        ]
    )
    assert list(paper_json(PAPER)) == [
        "paper_id", "title", "title_derived", "text", "original", "sources", "metadata",
    ]  # fmt: skip
    assert list(paper_json(PAPER, whole=False)) == [
        "paper_id", "title", "title_derived", "sources", "metadata",
    ]  # fmt: skip


@given(st.text(), st.booleans())
def test_json_keeps_text_exact_and_carries_nothing_unseen(text: str, ascii_only: bool) -> None:
    shown = to_json({"text": text, text: [text]}, ascii_only=ascii_only)
    assert json.loads(shown) == {"text": text, text: [text]}
    assert all(c.isprintable() or c == "\n" for c in shown)
    assert shown.isascii() or not ascii_only
    shown.encode("utf-8")


def test_json_shows_letters_as_they_are_and_escapes_what_steers() -> None:
    assert to_json("Σ₂ᴾ 图 \x9b\u202e\ud800\U000e0041") == (
        '"Σ₂ᴾ 图 \\u009b\\u202e\\ud800\\udb40\\udc41"'
    )


def test_everything_is_shown_literally_and_without_what_cannot_be_seen(
    screen: tuple[Screen, io.StringIO],
) -> None:
    made, shown = screen
    evil = Paper(EVIL, EVIL, EVIL, EVIL, (Source(EVIL, 1),), True, {EVIL: EVIL, "k": [EVIL, "x"]})
    citation = Citation(EVIL, EVIL, 0, 1, 0.5)
    statement = Statement(EVIL, False, (citation,))
    made.line(EVIL, "red")
    made.statement(statement)
    made.answer_end(answer(statement, papers=(evil,)))
    made.answer_end(answer(papers=(evil,)))
    made.hits([Hit(evil, 1.0, 1, 1, (Evidence(EVIL, EVIL, 0, 1),))])
    made.papers([evil])
    made.paper(evil)
    made.paper(evil, original=True)
    text = shown.getvalue()
    assert all(c.isprintable() or c == "\n" for c in text)
    assert text.startswith(f"{SEEN}\n{SEEN} [{SEEN}] (not supported by the paper it cites)\n")
    assert f"\n  {SEEN}  {SEEN}  ({SEEN}:1)\n    “{SEEN}”\n" in text
    assert "next\nnext" not in text.replace(SEEN, "")


def test_lines_are_not_wrapped(screen: tuple[Screen, io.StringIO]) -> None:
    made, shown = screen
    made.line("word " * 200)
    assert shown.getvalue().count("\n") == 1


def test_wide_ids_are_aligned(screen: tuple[Screen, io.StringIO]) -> None:
    made, shown = screen
    made.papers([Paper(i, "T", "t", "t", ()) for i in ("图", "abc")])
    assert shown.getvalue() == "图   T\nabc  T\n"


def test_a_quote_is_shown_once(screen: tuple[Screen, io.StringIO]) -> None:
    made, shown = screen
    statement = Statement("One.", True, (CITATION,))
    made.answer_end(answer(statement, statement))
    assert shown.getvalue() == (
        "\nSources\n  a  Title  (f.txt:2)\n    “The text.”\n\nConfidence 0.50, 0.3 s, m\n"
    )


@pytest.mark.parametrize("no_color", [None, "", "1"])
def test_no_color_leaves_no_escape_at_all(monkeypatch: pytest.MonkeyPatch, no_color: Any) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    if no_color is not None:
        monkeypatch.setenv("NO_COLOR", no_color)
    made = Screen()
    made.console.file = shown = io.StringIO()
    made.line("text", "bold red")
    assert ("\x1b" in shown.getvalue()) is not bool(no_color)


def test_a_terminal_of_no_columns_is_written_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "0")
    made = Screen()
    made.console.file = shown = io.StringIO()
    made.papers([PAPER])
    assert shown.getvalue() == "a  Title\n"
