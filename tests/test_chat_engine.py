"""What a chat waits for: opened once, in the background, and left at Ctrl-C."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from doubles.commands import FACT, QUESTION, Rag, reply
from doubles.endpoint import Request, Response, stalled
from doubles.service import Service

from rag.chat import engine as engines
from rag.chat.engine import Engine
from rag.chat.loop import Loop
from rag.chat.sessions import Session
from rag.chat.stop import Stopper
from rag.chat.talk import Conversation, Listener
from rag.chat.view import View
from rag.config import load_settings
from rag.session import Search
from rag.types import Usage

needs_kill = pytest.mark.skipif(not hasattr(os, "kill"), reason="Ctrl-C is sent as a signal")


class Typed:
    """Lines one after the other; a function is called, and its line is what it returns."""

    def __init__(self, *lines: str | Callable[[], str]) -> None:
        self._lines = iter(lines)

    def read(self, prompt: str) -> str | None:
        line = next(self._lines, None)
        return line() if callable(line) else line


def talk(engine: Engine, *lines: str | Callable[[], str]) -> Conversation:
    """A whole chat without a terminal, in which Ctrl-C works as in one."""
    stopper, view = Stopper(), View(piped=True)
    found = Conversation(engine, Session(""), stopper, view.warn)
    with stopper.installed():
        Loop(found, view, Typed(*lines)).run()
    return found


def test_the_search_is_opened_once_and_again_where_another_store_lies_there(
    filled: Rag, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Search] = []

    @contextmanager
    def counted(settings: Any) -> Iterator[Search]:
        with open_search(settings) as search:
            opened.append(search)
            yield search

    open_search = engines.open_search
    monkeypatch.setattr(engines, "open_search", counted)
    engine = Engine(load_settings())
    engine.begin()
    assert engine._search.settle(30)
    assert engine.search() is engine.search() is opened[0]
    assert len(opened) == 1
    Path("vectorstore").rename("moved")
    assert filled("ingest", "papers.jsonl").code == 0
    assert engine.search() is opened[1]
    assert engine.close()


@needs_kill
@pytest.mark.parametrize(
    ("line", "opener"),
    [
        ("/search noise", "open_search"),
        ("/show alpha", "open_search"),
        ("/filter year=2026", "open_search"),
        ("/model", "open_chat"),
    ],
)
def test_ctrl_c_ends_the_wait_of_a_command(
    filled: Rag,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    line: str,
    opener: str,
) -> None:
    going_on = threading.Event()

    def slow(*given: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        assert going_on.wait(30)
        return usual(*given)

    def then(line: str) -> Callable[[], str]:
        def go_on() -> str:
            going_on.set()
            return line

        return go_on

    usual = getattr(engines, opener)
    monkeypatch.setattr(engines, opener, slow)
    engine = Engine(load_settings())
    found = talk(engine, line, then("/filter"), "/show beta")
    shown = capsys.readouterr()
    assert shown.err == "Stopped.\n"
    assert shown.out.startswith("No filter. ")
    assert "ID        beta" in shown.out
    assert not found.condition
    assert engine.close()


@needs_kill
def test_ctrl_c_ends_the_wait_for_an_endpoint_that_hangs(
    filled: Rag, service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    def hangs(request: Request) -> Response:
        os.kill(os.getpid(), signal.SIGINT)
        return Response(delay_seconds=30)

    usual, service.default = service.default, hangs
    engine = Engine(load_settings())

    def mended() -> str:
        service.default = usual
        return "/search protein"

    talk(engine, "/search noise", mended)
    shown = capsys.readouterr()
    assert shown.err == "Stopped.\n"
    assert shown.out.startswith("  1. 1.000  beta")
    assert engine.close()


def test_a_mistake_of_ours_while_asking_again_loses_no_answer(
    filled: Rag,
    service: Service,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a mistake of ours")

    def breaking() -> str:
        monkeypatch.setattr("rag.answer.Answerer.answer", broken)
        return "/retry"

    service.replies.append(reply((FACT, [1])))
    engine = Engine(load_settings())
    found = talk(engine, QUESTION, breaking, "/sources")
    shown = capsys.readouterr()
    assert shown.err.startswith("Line 2: Internal error: ZeroDivisionError: a mistake of ours. ")
    assert shown.out.count("Sources\n  alpha") == 2
    assert [exchange.whole for exchange in found.exchanges] == [True]
    assert engine.close()


@needs_kill
def test_what_a_stopped_answer_cost_is_counted(filled: Rag, service: Service) -> None:
    def stop(text: str) -> None:
        if text.endswith("lowers"):
            os.kill(os.getpid(), signal.SIGINT)

    service.replies.append(stalled('{"statements": [{"text": "AlphaNet lowers', piece=3))
    engine, stopper = Engine(load_settings()), Stopper()
    found = Conversation(engine, Session(""), stopper, print)
    with stopper.installed():
        stopped = found.ask(QUESTION, Listener(print, print, stop, print))
    assert (stopped.stopped, stopped.unfinished) == (True, "AlphaNet lowers")
    # Of the question whether the papers answer 400 and 30; the rest is what was stopped.
    assert stopped.spent.prompt_tokens > 500
    assert 35 < stopped.spent.completion_tokens < 50
    assert found.usage() == stopped.spent
    assert engine.spent() == Usage()
    assert engine.close()


def test_a_line_that_cannot_be_read_does_not_end_the_chat(
    filled: Rag, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> str:
        raise ValueError("a mistake of ours")

    engine = Engine(load_settings())
    talk(engine, broken, "/filter", broken, "/filter")
    shown = capsys.readouterr()
    assert shown.err.count("Internal error: ValueError: a mistake of ours. ") == 2
    assert shown.out.count("No filter.") == 2
    with pytest.raises(ValueError, match="a mistake of ours"):  # again: it will never do
        talk(engine, broken, broken)
    assert engine.close()
