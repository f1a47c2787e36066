"""A whole chat in a pseudo-terminal, typed as a person types it."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from doubles.commands import BETA, FACT, QUESTION, Rag, reply
from doubles.endpoint import stalled
from doubles.service import Service

pexpect = pytest.importorskip("pexpect", reason="pseudo-terminals need pexpect")
if not hasattr(pexpect, "spawn"):
    pytest.skip("pseudo-terminals need a Unix", allow_module_level=True)

CHAT = ["-c", "from rag.cli import main; main()", "chat"]
ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07]*\x07|[=>])")
CTRL_Z = "\x1a"
CTRL_C, CTRL_D, CTRL_R, ENTER, ALT_ENTER, UP = "\x03", "\x04", "\x12", "\r", "\x1b\r", "\x1b[A"


class Terminal:
    """A running `rag chat`; `sees` waits for a text, with escape codes taken out."""

    def __init__(self, *arguments: str, program: Sequence[str] = ()) -> None:
        command = [*program, sys.executable, *CHAT, *arguments]
        environ = {
            **os.environ,
            "TERM": "xterm-256color",
            "PROMPT_TOOLKIT_NO_CPR": "1",
            "PYTHONPATH": str(Path(__file__).parents[1]),
        }
        self.child: Any = pexpect.spawn(
            command[0],
            command[1:],
            env=environ,
            encoding="utf-8",
            timeout=30,
            dimensions=(50, 160),
        )
        self.raw = ""
        self._seen = 0
        self._prompts = 0

    def sees(self, wanted: str) -> str:
        """Wait until `wanted` is on the screen behind what was seen before."""
        while wanted not in self.text[self._seen :]:
            self._more(wanted)
        before = self._seen
        self._seen = self.text.index(wanted, before) + len(wanted)
        return self.text[before : self._seen]

    def prompts(self) -> None:
        """Wait until another line can be typed: pasted text is bracketed from then on."""
        self._prompts += 1
        while self.raw.count("\x1b[?2004h") < self._prompts:
            self._more("a prompt")
        self._seen = len(self.text)

    def _more(self, wanted: str) -> None:
        try:
            self.raw += self.child.read_nonblocking(4096, timeout=30)
        except (pexpect.TIMEOUT, pexpect.EOF) as error:
            raise AssertionError(f"{wanted!r} is not in {self.text[self._seen :]!r}") from error

    @property
    def text(self) -> str:
        return ESCAPES.sub("", self.raw)

    def types(self, keys: str) -> None:
        self.child.send(keys)

    def asks(self, line: str) -> None:
        self.prompts()
        self.types(line + ENTER)

    def leaves(self) -> int:
        self.prompts()
        self.types(CTRL_D)
        self.child.expect(pexpect.EOF)
        self.child.wait()
        return int(self.child.exitstatus)


@pytest.fixture
def terminals() -> Iterator[list[Terminal]]:
    opened: list[Terminal] = []
    yield opened
    for terminal in opened:
        terminal.child.close(force=True)


def start(terminals: list[Terminal], *arguments: str) -> Terminal:
    terminals.append(Terminal(*arguments))
    return terminals[-1]


def test_a_whole_chat(
    filled: Rag, service: Service, terminals: list[Terminal], isolated: Path
) -> None:
    service.replies.append(reply((FACT, [1])))
    chat = start(terminals, "--session", "mine")
    chat.sees("3 papers in vectorstore. /help lists the commands, Ctrl-D leaves.")
    chat.asks(QUESTION)
    chat.sees(f"{FACT} [alpha]")
    chat.sees("Sources")
    chat.sees("alpha  AlphaNet  (papers.jsonl:1)")

    chat.asks("/sources")
    chat.sees(f"“{FACT}”")

    # A follow-up is rewritten, and the rewriting is shown.
    rewritten = "In how many seconds does BetaNet fold a protein?"
    said = "BetaNet folds a protein in 7 seconds."
    service.replies += [rewritten, reply((said, [1]))]
    chat.asks("and how fast does BetaNet fold one?")
    chat.sees(f"Understood as: {rewritten}")
    chat.sees(f"{said} [beta]")

    # Ctrl-C stops the answer in the middle, and keeps what was written.
    half = json.dumps({"statements": [{"text": FACT, "evidence": [1]}]})[:-2]
    service.replies.append(stalled(half + ', {"text": "It needs a wee'))
    chat.asks(QUESTION)
    chat.sees(f"{FACT} [alpha]")
    chat.sees("It needs a wee")
    chat.types(CTRL_C)
    chat.sees("It needs a wee … (not finished, not checked)")
    chat.sees("Stopped.")
    # ... and at the prompt it only empties the line.
    chat.prompts()
    chat.types("never asked" + CTRL_C)
    chat.sees("(Ctrl-D or /exit leaves.)")
    assert chat.leaves() == 0

    # Taken up again: what was said is shown, and typed lines are remembered.
    chat = start(terminals, "--continue")
    chat.sees(f"> {QUESTION}")
    chat.sees(f"{said} [beta]")
    chat.sees(f"> {QUESTION}")
    chat.sees(f"{FACT} [alpha]")
    chat.sees("It needs a wee … (not finished, not checked)")
    chat.sees("Stopped before the end.")
    chat.prompts()
    service.replies.append(reply((FACT, [1])))
    chat.types(CTRL_R + "does AlphaNet")
    chat.sees(QUESTION)
    chat.types(ENTER + ENTER)
    chat.sees("Sources")
    assert chat.leaves() == 0
    (path,) = isolated.glob("state/citewise/sessions/*")
    assert path.name == "mine.jsonl"
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    answers = [r for r in records if r["type"] == "answer"]
    assert [r["question"] for r in answers] == [
        QUESTION,
        "and how fast does BetaNet fold one?",
        QUESTION,
        QUESTION,
    ]
    assert [r["stopped"] for r in answers] == [False, False, True, False]
    assert [s["text"] for s in answers[2]["answer"]["statements"]] == [FACT]
    assert {p.stat().st_mode & 0o077 for p in isolated.glob("state/citewise/**/*")} == {0}


def test_what_is_written_is_dim_until_it_is_checked(
    filled: Rag, service: Service, terminals: list[Terminal]
) -> None:
    service.replies.append(stalled('{"statements": [{"text": "AlphaNet lowers the noi'))
    chat = start(terminals, "--no-save")
    chat.asks(QUESTION)
    chat.sees("AlphaNet lowers the noi …")
    assert "\x1b[2;3mAlphaNet lowers the noi …" in chat.raw
    chat.types(CTRL_C)
    chat.sees("Stopped.")
    assert chat.leaves() == 0


def test_several_lines_paste_and_completion(
    filled: Rag, service: Service, terminals: list[Terminal], isolated: Path
) -> None:
    chat = start(terminals, "--no-save")
    service.replies += [reply((FACT, [1]))] * 3
    chat.prompts()
    chat.types("By how much" + ALT_ENTER + "does AlphaNet lower\\" + ENTER + "noise?" + ENTER)
    chat.sees("Sources")
    chat.prompts()
    chat.types("\x1b[200~By how much\ndoes AlphaNet\nlower noise?\x1b[201~" + ENTER)
    chat.sees("Sources")
    asked = [c.body["messages"][-1]["content"] for c in service.chats if c.body.get("stream")]
    assert "Question: By how much does AlphaNet lower noise?" in asked[0]
    assert "Question: By how much does AlphaNet lower noise?" in asked[1]
    chat.prompts()
    chat.types("/sh\t")
    chat.sees("/show")
    chat.types(" be\t")
    chat.sees("beta")
    chat.types(ENTER)
    chat.sees(BETA[:40])
    assert chat.leaves() == 0
    assert not list(isolated.glob("state/**/*"))


def test_colour_codes_that_are_typed_do_nothing(
    filled: Rag, service: Service, terminals: list[Terminal]
) -> None:
    service.replies += [reply((FACT, [1]))] * 2
    chat = start(terminals, "--no-save")
    chat.prompts()
    chat.types("\x1b[31m" + QUESTION + "\x1b[0m" + ENTER)
    # Unless it was answered already, this waits for the next prompt.
    chat.types("By how much does \x1b[1;32mAlphaNet\x1b[0m lower the graph noise?" + ENTER)
    chat.sees("Sources")
    chat.sees("Sources")
    chat.prompts()
    assert chat.leaves() == 0
    assert "Unhandled" not in chat.text
    assert "Internal error" not in chat.text
    asked = [c.body["messages"][-1]["content"] for c in service.chats if c.body.get("stream")]
    assert [f"Question: {QUESTION}" in content for content in asked] == [True, True]


def test_a_row_that_only_goes_on_gets_no_mark(filled: Rag, terminals: list[Terminal]) -> None:
    chat = start(terminals, "--no-save")
    chat.prompts()
    chat.types("word " * 70)
    chat.sees("word " * 20)
    chat.types(ALT_ENTER + "behind")
    chat.sees("behind")
    assert chat.text.count("... ") == 1
    chat.types(CTRL_C)
    assert chat.leaves() == 0


@pytest.mark.skipif(not shutil.which("bash"), reason="job control needs a shell")
def test_ctrl_z_gives_the_terminal_to_the_shell_and_fg_takes_it_again(
    filled: Rag, service: Service, terminals: list[Terminal]
) -> None:
    service.replies.append(stalled('{"statements": [{"text": "AlphaNet'))
    jobs = "stty -a | tr ' ' '\\n' | grep -x -- '-*echo;*'; read -r _; echo again; fg >/dev/null"
    script = f'set -m; "$0" "$@"; {jobs}; {jobs}'
    chat = Terminal("--no-save", program=["bash", "-c", script])
    terminals.append(chat)
    chat.prompts()
    chat.types(CTRL_Z)  # at the prompt
    chat.sees("\necho")
    chat.types(ENTER)
    chat.sees("again")
    chat.asks(QUESTION)
    chat.sees("AlphaNet …")
    chat.types(CTRL_Z)
    chat.sees("\necho")
    assert chat.raw.rindex("\x1b[?25h") > chat.raw.rindex("\x1b[?25l")
    chat.types(ENTER)
    chat.sees("again")
    chat.sees("AlphaNet …")
    assert not chat.child.getecho()
    chat.types(CTRL_C)
    chat.sees("Stopped.")
    assert chat.leaves() == 0


def test_json_is_for_a_pipe(filled: Rag, terminals: list[Terminal]) -> None:
    chat = start(terminals, "--json")
    chat.sees("--json is for questions from a pipe: rag chat --json < QUESTIONS.txt")


def test_a_second_chat_of_a_session_is_told(filled: Rag, terminals: list[Terminal]) -> None:
    first = start(terminals, "--session", "mine")
    first.sees("Ctrl-D leaves.")
    ran = filled("chat", "--session", "mine", stdin=b"")
    assert ran.code == 1
    assert "The session 'mine' is open in another chat." in ran.err
    assert filled("sessions", "delete", "mine").code in (1, 2)
    assert first.leaves() == 0
