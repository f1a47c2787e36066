"""Options and texts that commands share."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from rag.config import Settings, is_address, load_settings
from rag.errors import UsageError

# Exit codes beside 0 (done), 1 (failed) and 2 (usage).
NOT_ANSWERED = 3
INTERRUPTED = 130

StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="DIR|URL",
        help="Directory of the index, or address of a Chroma server.",
        envvar="RAG_STORE",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]


def settings_for(store: str | None) -> Settings:
    """The settings, with the store of the command line where it names one."""
    if not store:
        return load_settings()
    return load_settings(overrides={"store": store if is_address(store) else Path(store)})


def print_json(value: Any) -> None:
    """Print a value as JSON that every program can read."""
    from rag.render import to_json

    # Other programs read JSON as UTF-8, whatever this terminal's encoding is.
    encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower()
    typer.echo(to_json(value, ascii_only=encoding.replace("-", "") != "utf8"))


def question_text(argument: str | None) -> str:
    """The argument, or standard input where it is a pipe."""
    if argument is not None and argument != "-":
        return as_utf8(argument)
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError('Nothing to look for. Give it in quotes, or through a pipe: rag ask "..."')
    return sys.stdin.buffer.read(1_000_000).decode("utf-8", errors="replace")


def as_utf8(argument: str) -> str:
    """The argument, where Python could not decode its bytes by the locale: as UTF-8."""
    try:
        argument.encode("utf-8")
    except UnicodeEncodeError:
        return os.fsencode(argument).decode("utf-8", "replace")
    return argument
