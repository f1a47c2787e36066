"""What a run was made with: versions, the checkout's state, the machine; never whose it is."""

from __future__ import annotations

import os
import platform
import subprocess
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from rag.config import ServerAddress

# What may change an answer, a figure or a time.
PACKAGES = (
    "citewise",
    "PyStemmer",
    "chromadb",
    "numpy",
    "onnxruntime",
    "openai",
    "pylatexenc",
    "scipy",
    "sentence-transformers",
    "tiktoken",
    "tokenizers",
    "torch",
    "xllamacpp",
)
GIT_SECONDS = 10


def versions() -> dict[str, str | None]:
    """The versions of Python and of the packages that matter; None where one is not installed."""
    return {"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}}


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def git_state(root: Path = Path(__file__).parents[2]) -> dict[str, Any] | None:
    """The commit of the checkout at `root`, and whether files differ from it.

    None outside a checkout: an installed package may lie inside that of another project.
    """
    if not (root / ".git").exists():
        return None
    try:
        commit = _git(root, "rev-parse", "HEAD")
        return {"commit": commit, "dirty": bool(_git(root, "status", "--porcelain"))}
    except (OSError, subprocess.SubprocessError):
        return None


def _git(root: Path, *arguments: str) -> str:
    ran = subprocess.run(
        ["git", "-C", root, *arguments],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=GIT_SECONDS,
        check=True,
    )
    return ran.stdout.strip()


def machine() -> dict[str, Any]:
    """`{"platform", "cpus", "memory_bytes"}`; memory is None where the system does not say."""
    return {
        "platform": platform.platform(),
        "cpus": os.cpu_count(),
        "memory_bytes": _memory_bytes(),
    }


def _memory_bytes() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # no such call on Windows, no such name elsewhere
        return None


def shown_path(path: Path | ServerAddress) -> str:
    """A path as a run may keep it: `~` for the home directory, whose name may be the user's."""
    if isinstance(path, ServerAddress):
        return str(path)
    with suppress(ValueError, RuntimeError):  # it lies elsewhere; there is no home
        return str("~" / path.relative_to(Path.home()))
    return str(path)
