"""Lines that ask for nothing, or name what there is not; and what they leave behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from doubles.commands import FACT, QUESTION, Rag, reply
from doubles.service import Service

ANSWERED = reply((FACT, [1]))


def piped(*lines: str) -> bytes:
    return "".join(line + "\n" for line in lines).encode()


def test_a_paper_that_there_is_not_costs_no_answer(filled: Rag, service: Service) -> None:
    service.replies.append(ANSWERED)
    lines = (QUESTION, "how does the ninth one differ?", "what does paper 99 say?")
    ran = filled("chat", "--no-save", stdin=piped(*lines, "what does [nope123] say?"))
    assert ran.code == 1
    assert ran.err.splitlines() == [
        "Line 2: There is no ninth one: the list has 1 paper. Count again, or give an ID.",
        "Line 3: There is no paper 99: the list has 1 paper, and none has this ID.",
        "Line 4: There is no paper [nope123] in the store. Where no paper is meant, leave out "
        "the brackets.",
    ]
    assert len(service.chats) == 2  # of the first question


def test_a_place_in_a_list_of_search_is_no_unknown_one(filled: Rag, service: Service) -> None:
    lines = (QUESTION, "/search noise", "what does the third one say?")
    service.replies += [ANSWERED, ANSWERED]
    assert filled("chat", "--no-save", stdin=piped(*lines)).code == 0


def test_a_line_of_escape_codes_alone_is_no_question(filled: Rag, service: Service) -> None:
    ran = filled("chat", "--no-save", stdin=b"\x1b[2J\n")
    assert (ran.code, service.chats) == (1, [])
    assert ran.err.startswith("Line 1: The question is empty.")


def test_a_question_that_is_too_long_is_not_repeated_whole(filled: Rag) -> None:
    ran = filled("chat", "--no-save", stdin=piped("word " * 20_000))
    assert ran.code == 1
    assert len(ran.out) < 100
    assert ran.err.startswith("Line 1: The question has 99,999 characters")


@pytest.mark.parametrize("name", ["my dir/x.md", "'my dir/x.md'", '"my dir/x.md"'])
def test_the_name_of_a_file_may_stand_in_quotes(filled: Rag, service: Service, name: str) -> None:
    service.replies.append(ANSWERED)
    Path("my dir").mkdir()
    assert filled("chat", "--no-save", stdin=piped(QUESTION, f"/save {name}")).code == 0
    assert [path.name for path in Path("my dir").iterdir()] == ["x.md"]


@pytest.mark.parametrize("name", ["'a b.md", "'a' b.md", "''"])
def test_quotes_that_hold_no_one_name(filled: Rag, service: Service, name: str) -> None:
    service.replies.append(ANSWERED)
    ran = filled("chat", "--no-save", stdin=piped(QUESTION, f"/save {name}"))
    assert ran.code == 1
    assert "quote" in ran.err


@pytest.mark.parametrize("flags", [(), ("--no-save",)])
def test_no_save_leaves_no_crash_file_either(
    filled: Rag, isolated: Path, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a mistake of ours")

    said: list[str] = []
    monkeypatch.setattr("rag.chat.talk.Conversation.ask", broken)
    monkeypatch.setattr("rag.chat.view.View.error", lambda _, text: said.append(text))
    assert filled("chat", *flags, stdin=piped(QUESTION)).code == 1
    (line,) = said
    assert ("Details are in" in line) == (not flags)
    assert len(list(isolated.glob("**/crash-*.txt"))) == (not flags)
