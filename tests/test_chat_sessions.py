from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from doubles.commands import FACT, QUESTION, Rag, reply
from doubles.endpoint import hang
from doubles.service import Service

from rag.chat.exchanges import replay
from rag.chat.journal import SessionError
from rag.chat.sessions import (
    open_session,
    read_session,
    sessions_directory,
)
from rag.errors import UsageError

ANSWERED = reply((FACT, [1]))


def piped(*lines: str) -> bytes:
    return "".join(line + "\n" for line in lines).encode()


def test_sessions_are_listed_exported_and_deleted(filled: Rag, service: Service) -> None:
    assert filled("sessions").err == "No conversation was kept yet.\n"
    assert filled("sessions", "--json").json == []
    for name in ("first", "second one"):
        service.replies.append(ANSWERED)
        filled("chat", "--session", name, stdin=piped(QUESTION))
        time.sleep(0.02)
    rows = filled("sessions", "--json").json
    assert [(r["name"], r["questions"], r["first_question"]) for r in rows] == [
        ("second one", 1, QUESTION),
        ("first", 1, QUESTION),
    ]
    assert set(rows[0]) == {"name", "started", "last", "questions", "first_question", "store"}
    assert filled("sessions").out.splitlines()[1].startswith("first  20")
    exported = filled("sessions", "export", "first").out
    assert f"## 1\\. {QUESTION}" in exported
    assert filled("sessions", "export", "first", "-o", "a.md").code == 0
    assert Path("a.md").read_text(encoding="utf-8") == exported
    assert filled("sessions", "delete", "first", "second one").code == 0
    assert list(sessions_directory().iterdir()) == []
    ran = filled("sessions", "delete", "firts")
    assert (ran.code, ran.err) == (
        2,
        "There is no session 'firts'. Run `rag sessions` for the list.\n",
    )
    assert filled("chat", "--continue", stdin=b"").code == 2


@pytest.mark.parametrize(
    "name", ["", "../a", "a/b", ".a", "a" * 61, "con", "a\n", "a.", " a", "-a"]
)
def test_names_that_cannot_be_files(name: str) -> None:
    with pytest.raises(UsageError, match="cannot name a session"):
        open_session(Path("store"), name)
    assert not sessions_directory().exists()


def test_an_empty_name_begins_no_session(filled: Rag) -> None:
    ran = filled("chat", "--session", "", stdin=piped("/help"))
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("'' cannot name a session.")
    assert not sessions_directory().exists()


def test_the_first_line_is_written_as_soon_as_there_is_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with open_session(Path("store"), "a") as session:
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", full)
            with pytest.raises(SessionError, match="No space left on device"):
                session.append({"type": "clear"})
        session.append({"type": "clear"})
        session.append({"type": "clear"})
    assert [r["type"] for r in read_session("a")] == ["session", "clear", "clear"]


def test_a_session_that_is_taken_over_while_it_is_closed_has_one_holder() -> None:
    session = open_session(Path("store"), "a")
    lock, others = session._lock, []
    release = lock.release

    def taken_over() -> None:
        release()
        others.append(open_session(Path("store"), "a"))

    lock.release = taken_over
    session.close()
    with others[0], pytest.raises(SessionError, match="open in another chat"):
        open_session(Path("store"), "a")
    assert list(sessions_directory().iterdir()) == []


def test_a_torn_last_line_is_dropped_and_the_rest_is_kept() -> None:
    with open_session(Path("store"), "a") as session:
        session.append({"type": "clear"})
        with pytest.raises(SessionError, match="open in another chat"):
            open_session(Path("store"), "a")
    path = sessions_directory() / "a.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + b"{broken}\n" + whole.split(b"\n")[1] + b'\n{"type": "quest')
    with open_session(Path("store"), "a") as session:
        assert [r["type"] for r in session.records] == ["session", "clear", "clear"]
        assert "its last line was torn" in session.repaired
        assert "1 of its lines cannot be read" in session.repaired
        session.append({"type": "clear"})
    assert [r["type"] for r in read_session("a")] == ["session", *["clear"] * 3]
    assert path.stat().st_mode & 0o777 == 0o600
    assert [p.name for p in sessions_directory().iterdir()] == ["a.jsonl"]


def test_a_last_line_that_lacks_only_its_end_is_kept() -> None:
    with open_session(Path("store"), "a") as session:
        session.append({"type": "clear"})
    path = sessions_directory() / "a.jsonl"
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    with open_session(Path("store"), "a") as session:
        assert session.repaired == ""
        session.append({"type": "clear"})
    assert [r["type"] for r in read_session("a")] == ["session", "clear", "clear"]


def test_where_no_session_can_be_kept_the_chat_goes_on(filled: Rag, service: Service) -> None:
    blocked = sessions_directory().parent
    blocked.parent.mkdir(parents=True, exist_ok=True)
    blocked.write_text("in the way")
    service.replies.append(ANSWERED)
    ran = filled("chat", stdin=piped(QUESTION))
    assert ran.code == 0
    assert FACT in ran.out
    assert ran.err.startswith("This conversation is not kept. Sessions cannot be kept in ")
    assert filled("chat", "--session", "a", stdin=b"").code == 1


@pytest.mark.parametrize("second", ["What of BetaNet and protein?", "/retry"])
def test_a_killed_chat_loses_only_the_answer_in_the_making(
    filled: Rag, service: Service, second: str
) -> None:
    service.replies += [ANSWERED, hang(30)]
    main = [sys.executable, "-c", "from rag.cli import main; main()", "chat", "--session", "a"]
    path = {"PYTHONPATH": str(Path(__file__).parents[1])}
    with subprocess.Popen(main, stdin=subprocess.PIPE, env=os.environ | path) as process:
        assert process.stdin is not None
        process.stdin.write(piped(QUESTION, second))
        process.stdin.flush()
        deadline = time.monotonic() + 30
        while len(service.chats) < 4 and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    records = read_session("a")
    assert [r["type"] for r in records] == ["session", "question", "answer", "question"]
    assert records[-1]["question"] == (QUESTION if second == "/retry" else second)
    (exchange,) = replay(records).exchanges
    assert exchange.answer is not None
    assert exchange.answer.statements[0].text == FACT
