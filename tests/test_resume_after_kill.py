"""Runs that are killed at any moment and begun again end like a run that nobody disturbed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
from doubles.commands import Rag, write
from doubles.reader import Reader
from test_eval_answers import timeless

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="cheap starts need fork")

KILLS = 20
SEED = 20_260_501
QUESTIONS = 24
SUBJECTS = (
    "By how much does AlphaNet lower the graph noise",
    "In how many seconds does BetaNet fold a protein",
    "What does GammaNet draw and what does it cost",
)

# A program that has loaded everything, and forks a `rag` for each line of arguments: what is begun
# again 20 times must not load for a second each time.
NURSERY = """
import json, os, sys
from rag.cli import entry
import openai.resources.chat, rag.render, rich.progress, rag.llm.openai_chat, tiktoken
import eval.runs.run
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        sys.argv = ["rag", *json.loads(line)]
        code = entry.run()
        sys.stdout.flush()
        os._exit(code)
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Nursery:
    """Starts commands, each a process of its own that can be killed."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", NURSERY],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def run(self, arguments: Sequence[str], kill_when: Callable[[], bool] | None = None) -> int:
        """The exit code of the command; -9 where `kill_when` came true before its end."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(list(arguments)) + "\n")
        self._process.stdin.flush()
        child = int(self._said())
        if kill_when is not None:
            with suppress(ProcessLookupError):  # it has ended
                while not kill_when():
                    time.sleep(0.001)
                    os.kill(child, 0)
                os.kill(child, signal.SIGKILL)
        return int(self._said())

    def _said(self) -> str:
        assert self._process.stdout is not None
        # What the command prints is not the nursery's: its numbers stand alone on their lines.
        while not (line := self._process.stdout.readline()).strip().lstrip("-").isdecimal():
            assert line, "the nursery has ended"
        return line

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.communicate()


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    with Reader(delay_seconds=0.005) as running:
        for name, value in running.environ.items():
            monkeypatch.setenv(name, value)
        yield running


def lines(directory: Path) -> list[dict[str, Any]]:
    """The whole lines of the results as they are."""
    path = directory / "results.jsonl"
    content = path.read_bytes() if path.exists() else b""
    return [json.loads(line) for line in content.splitlines(True) if line.endswith(b"\n")]


def moment(service: Reader, chance: random.Random) -> Callable[[], bool]:
    """Some requests from now and a little later: amid items, at the start, or after the last."""
    requests = len(service.requests) + chance.choice((*[chance.randrange(40)] * 3, 0, 10**6))
    pause = chance.uniform(0, 0.05)

    def come() -> bool:
        # Once every question was asked no more requests come: what is left is writing.
        if len(service.requests) < requests and len(service.asked) < QUESTIONS:
            return False
        time.sleep(pause)
        return True

    return come


def test_a_run_killed_at_any_moment_ends_as_if_undisturbed(filled: Rag, service: Reader) -> None:
    questions = [
        {"id": f"q-{n}", "kind": "fact", "question": f"{SUBJECTS[n % 3]}, case {n}?"}
        for n in range(QUESTIONS)
    ]
    write("set.jsonl", *questions)
    texts = {str(question["id"]): str(question["question"]) for question in questions}
    chance = random.Random(SEED)

    def command(directory: Path, jobs: int) -> list[str]:
        options = ["--out", str(directory), "--jobs", str(jobs), "--no-cache"]
        return ["eval", "answers", "set.jsonl", *options]

    with Nursery() as nursery:
        assert nursery.run(command(Path("whole"), 1)) == 0
        expected = timeless(lines(Path("whole")))
        assert [line["id"] for line in expected] == list(texts)
        kills = runs = 0
        while kills < KILLS:
            directory, jobs = Path(f"run-{runs}"), 1 + runs % 3
            service.asked.clear()
            runs, in_flight, code = runs + 1, 0, -signal.SIGKILL
            while code:
                done, asked = {line["id"] for line in lines(directory)}, service.asked.copy()
                goes_on = kills == KILLS or len(asked) == QUESTIONS
                when = None if goes_on else moment(service, chance)
                code = nursery.run(command(directory, jobs), when)
                assert code in (0, -signal.SIGKILL)
                kills += bool(code)
                in_flight += jobs * bool(code)
                assert [i for i in done if service.asked[texts[i]] != asked[texts[i]]] == []
            assert timeless(lines(directory)) == expected
            assert sum(service.asked.values()) <= QUESTIONS + in_flight
