"""Every test has a home, cache and working directory of its own, and no settings from outside."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from doubles.chroma import Chroma, Machines, executable
from doubles.commands import RECORDS, Rag, Run, write
from doubles.service import Service

from rag.cli import entry

# What could change an answer, a colour or an address.
_PREFIXES = ("RAG_", "OPENAI_", "HF_")
_NAMES = (
    "NO_COLOR FORCE_COLOR CLICOLOR_FORCE TTY_COMPATIBLE TTY_INTERACTIVE COLUMNS "
    "HTTP_PROXY HTTPS_PROXY ALL_PROXY http_proxy https_proxy all_proxy"
).split()


@pytest.fixture(autouse=True)
def isolated(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The empty home directory, also the working directory."""
    home = tmp_path_factory.mktemp("home")
    for name in [n for n in os.environ if n.startswith(_PREFIXES)] + _NAMES:
        monkeypatch.delenv(name, raising=False)
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(home))
    for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(home / name.split("_")[1].lower()))
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.chdir(home)
    return home


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """The endpoint that the settings name for both models."""
    with Service() as running:
        for name, value in running.environ.items():
            monkeypatch.setenv(name, value)
        yield running


@pytest.fixture
def rag(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], service: Service
) -> Rag:
    """Runs the command line in this process; `stdin` is what a pipe brings."""

    def run(*arguments: str | Path, stdin: bytes | None = None) -> Run:
        monkeypatch.setattr(sys, "argv", ["rag", *map(str, arguments)])
        piped = io.TextIOWrapper(io.BytesIO(stdin)) if stdin is not None else None
        monkeypatch.setattr(sys, "stdin", piped)
        code = entry.run()
        shown = capsys.readouterr()
        assert "Traceback" not in shown.out + shown.err
        assert "Internal error" not in shown.err
        return Run(code, shown.out, shown.err)

    return run


@pytest.fixture
def filled(rag: Rag) -> Rag:
    """`rag` with a store of three papers."""
    assert rag("ingest", write("papers.jsonl", *RECORDS)).code == 0
    return rag


@pytest.fixture(scope="session")
def chroma(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chroma]:
    """A real Chroma server on loopback."""
    if executable() is None:
        pytest.skip("chroma is not beside this Python")
    running = Chroma(tmp_path_factory.mktemp("chroma"))
    running.start()
    yield running
    running.stop()


@pytest.fixture
def machines(chroma: Chroma, tmp_path: Path) -> Machines:
    """The address of one new database, as machines of different names have it."""
    database = chroma.database()
    return lambda name: chroma.address(tmp_path / name, database)
