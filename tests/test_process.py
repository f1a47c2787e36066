from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from doubles.commands import QUESTION, Rag, write
from doubles.endpoint import hang
from doubles.service import Service

from rag.crash import record, unkept

MAIN = [sys.executable, "-c", "from rag.cli import main; main()"]


def spawn(*arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.Popen([*MAIN, *arguments], stdin=subprocess.DEVNULL, **options)


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['rag', '--help']\n"
        "from rag.cli import entry\n"
        "assert entry.run() == 0\n"
        "heavy = 'torch chromadb openai sentence_transformers onnxruntime tiktoken numpy httpx'\n"
        "sys.exit(','.join(m for m in heavy.split() if m in sys.modules) or 0)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "Usage: rag" in ran.stdout


def test_ctrl_c_exits_with_130(filled: Rag, service: Service) -> None:
    service.replies.append(hang(30))
    process = spawn("ask", QUESTION)
    deadline = time.monotonic() + 30
    while len(service.chats) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (130, b"", b"Interrupted.\n")


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_a_reader_that_has_gone_is_told_nothing(filled: Rag, flags: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = spawn("papers", *flags, stdout=writing)
    os.close(writing)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (0, b"")


def in_terminal(*arguments: str, **environ: str) -> str:
    """What the command writes to a terminal."""
    pty = pytest.importorskip("pty", reason="pseudo-terminals need a Unix")
    ours, theirs = pty.openpty()
    process = spawn(*arguments, stdout=theirs, stderr=theirs, env={**os.environ, **environ})
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # how Linux says that the other end is closed
            part = b""
        if not part:
            break
        shown += part
    os.close(ours)
    assert process.wait(timeout=30) == 0
    return shown.decode()


def test_a_terminal_gets_colours_unless_no_color_is_set(filled: Rag) -> None:
    coloured = in_terminal("papers", TERM="xterm-256color")
    assert coloured.splitlines()[0] == "\x1b[36malpha\x1b[0m  AlphaNet"
    for command in (("papers",), ("show", "alpha")):
        assert "\x1b" in in_terminal(*command, TERM="xterm-256color")
        assert "\x1b" not in in_terminal(*command, TERM="xterm-256color", NO_COLOR="1")


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_json_is_json_in_any_encoding_of_the_output(rag: Rag, encoding: str) -> None:
    wide = "Schrödinger’s 𝔸-graph 图 has noise in it."
    assert rag("ingest", write("papers.jsonl", {"id": "a", "abstract": wide})).code == 0
    process = spawn("show", "a", "--json", env={**os.environ, "PYTHONIOENCODING": encoding})
    out, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (0, b"")
    assert json.loads(out)["text"] == wide


def test_an_output_that_cannot_be_written(filled: Rag) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full on this system")
    with Path("/dev/full").open("wb") as full:
        process = spawn("papers", "--json", stdout=full)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 1
    assert err == b"There is no space left to write to. Free some, then run it again.\n"


def test_an_output_that_is_closed(filled: Rag) -> None:
    if os.name != "posix":
        pytest.skip("closing a descriptor needs a Unix shell")
    command = f"'{sys.executable}' -c 'from rag.cli import main; main()' search graph >&-"
    ran = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    said = "Standard output is closed. Send it somewhere, to /dev/null for nothing.\n"
    assert (ran.returncode, ran.stderr) == (1, said)


def test_a_locale_without_letters(filled: Rag) -> None:
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    process = spawn("show", "zzézz", env={**os.environ, **plain})
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (
        2,
        b"There is no paper 'zz\\xe9zz' in the store. Run `rag papers` for the list.\n",
    )


def test_ctrl_c_while_the_program_starts() -> None:
    code = (
        "import builtins, sys; sys.argv = ['rag', 'papers']\n"
        "usual = builtins.__import__\n"
        "def pressed(name, *given):\n"
        "    if name == 'typer': raise KeyboardInterrupt\n"
        "    return usual(name, *given)\n"
        "builtins.__import__ = pressed\n"
        "from rag.cli import main\n"
        "main()"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, b"", b"Interrupted.\n")


def test_two_crashes_of_one_second_are_two_files_for_their_owner_alone(
    isolated: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "strftime", lambda _: "20260101-000000")
    said = [record(ValueError(f"number {n}")) for n in (1, 2)]
    paths = sorted(isolated.glob("**/crash-*.txt"), key=lambda path: len(path.name))
    assert [path.name for path in paths] == [
        "crash-20260101-000000.txt",
        "crash-20260101-000000-2.txt",
    ]
    for n, (path, told) in enumerate(zip(paths, said, strict=True), start=1):
        assert f"number {n}" in path.read_text(encoding="utf-8")
        assert str(path) in told
        assert path.stat().st_mode & 0o077 == 0


def test_an_error_that_is_to_leave_no_trace_leaves_none(isolated: Path) -> None:
    with pytest.raises(ValueError, match="a question") as caught, unkept():
        raise ValueError("a question")
    assert record(caught.value) == record(ValueError("a question"), keep=False)
    assert not list(isolated.glob("**/crash-*.txt"))
