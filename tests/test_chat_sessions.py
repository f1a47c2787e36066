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
    assert [r["type"] for r in read_session("a")[0]] == ["session", "clear", "clear"]


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
    assert [r["type"] for r in read_session("a")[0]] == ["session", *["clear"] * 3]
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
    assert [r["type"] for r in read_session("a")[0]] == ["session", "clear", "clear"]


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
    records = read_session("a")[0]
    assert [r["type"] for r in records] == ["session", "question", "answer", "question"]
    assert records[-1]["question"] == (QUESTION if second == "/retry" else second)
    exchange, killed = replay(records).exchanges
    assert exchange.answer is not None
    assert exchange.answer.statements[0].text == FACT
    assert (killed.question, killed.stopped) == (records[-1]["question"], True)
    assert killed.retry == (second == "/retry")
    assert "*Stopped, no answer.*" in filled("sessions", "export", "a").out


def placed(name: str, data: bytes) -> Path:
    path = sessions_directory() / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


HEADER = b'{"type": "session", "version": 1, "name": "a", "store": "s", "at": null}\n'
ASKED = b'{"type": "question", "question": "Why?", "at": null}\n'


@pytest.mark.parametrize("data", [b"", HEADER, HEADER[:9]])
def test_a_session_that_holds_nothing_is_passed_over(filled: Rag, data: bytes) -> None:
    assert filled("chat", "--session", "real", stdin=piped("/filter year=2026")).code == 0
    path = placed("empty", data)
    os.utime(path, (time.time() + 9, time.time() + 9))
    assert filled("sessions").out.startswith("real  ")
    assert filled("sessions").out.count("\n") == 1
    assert filled("chat", "--continue", stdin=piped("/filter")).out.startswith("Filter: year=2026")
    assert filled("chat", "--session", "empty", stdin=piped("/filter year=2025")).code == 0
    assert [r["type"] for r in read_session("empty")[0]] == ["session", "filter"]


@pytest.mark.parametrize("data", [b"\x00\xff" * 1500, b"{}", ASKED, b"\n" + HEADER, b"mine\n"])
def test_what_is_no_session_is_refused_and_left_as_it_is(filled: Rag, data: bytes) -> None:
    path = placed("garbage", data)
    for command in (("chat", "--session", "garbage"), ("sessions", "export", "garbage")):
        ran = filled(*command, stdin=b"")
        assert (ran.code, ran.out) == (1, "")
        assert "garbage.jsonl is no session of `rag chat`, and is left as it is." in ran.err
    assert path.read_bytes() == data
    assert filled("sessions").err == "No conversation was kept yet.\n"


def test_a_session_of_another_version_is_refused(filled: Rag) -> None:
    placed("a", HEADER.replace(b"1", b"99") + ASKED)
    for command in (("chat", "--session", "a"), ("sessions", "export", "a")):
        ran = filled(*command, stdin=b"")
        assert (ran.code, ran.out) == (1, "")
        assert "is a session of version 99; this program reads version 1." in ran.err


def test_what_is_passed_over_is_counted(filled: Rag) -> None:
    placed("a", HEADER + ASKED + b'{"type": "answer", "question": "Why?", "answer": 7}\n{"type"\n')
    ran = filled("sessions", "export", "a")
    assert ran.code == 0
    assert "## 1\\. Why?\n\n*No answer: Its answer is damaged" in ran.out
    said = "Lines of the session 'a' that cannot be read, and are passed over"
    assert ran.err == f"{said}: 2.\n"
    ran = filled("chat", "--session", "a", stdin=b"")
    assert "1 of its lines cannot be read" in ran.err
    assert f"{said}: 1.\n" in ran.err
    assert filled("sessions").out == "a                      1 question   Why?\n"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes need a Unix")
def test_what_is_no_file_is_neither_waited_for_nor_taken(filled: Rag) -> None:
    placed("real", HEADER + ASKED)
    os.mkfifo(sessions_directory() / "pipe.jsonl")
    (sessions_directory() / "dir.jsonl").mkdir()
    (sessions_directory() / "link.jsonl").symlink_to("nowhere")
    assert filled("sessions").out.splitlines()[0].startswith("real  ")
    for name in ("pipe", "dir", "link"):
        for command in (("chat", "--session"), ("sessions", "export"), ("sessions", "delete")):
            ran = filled(*command, name, stdin=b"")
            assert (ran.code, ran.out) == (1, "")
            assert f"{name}.jsonl is no file. Move it away, or choose another name." in ran.err


def test_all_sessions_that_can_be_are_deleted(filled: Rag) -> None:
    for name in ("k8", "k9"):
        placed(name, HEADER + ASKED)
    ran = filled("sessions", "delete", "nope", "k9", "../x", "k8")
    assert ran.code == 2
    assert "There is no session 'nope'." in ran.err
    assert "'../x' cannot name a session." in ran.err
    assert filled("sessions").out == ""


def test_a_chat_says_what_was_stopped_and_asks_it_again(filled: Rag, service: Service) -> None:
    placed("a", HEADER + ASKED.replace(b"Why?", QUESTION.encode()))
    service.replies.append(ANSWERED)
    assert FACT in filled("chat", "--session", "a", stdin=piped("/retry")).out
    assert [e.whole for e in replay(read_session("a")[0]).exchanges] == [True]
