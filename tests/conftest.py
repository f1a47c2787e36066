"""Every test runs in a home, cache and working directory of its own, with no settings from outside."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

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
