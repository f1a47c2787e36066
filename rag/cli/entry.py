"""Runs the command line: every error becomes a message and an exit code."""

from __future__ import annotations

import errno
import os
import sys

from rag.errors import RagError
from rag.interrupt import INTERRUPTED


def main() -> None:
    """Run the command line and leave with its exit code; no error ends in a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run())


def run() -> int:
    """Run the command that `sys.argv` names; its exit code."""
    try:
        return _invoke()
    except RagError as error:
        return _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        return _fail("Interrupted.", INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output has gone, as `head` does: say nothing more to it, nor at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            return _fail("There is no space left to write to. Free some, then run it again.", 1)
        return _unexpected(error)


def _invoke() -> int:
    # Here, where Ctrl-C is caught: it takes a good part of the program's start.
    import typer

    from rag.cli.app import app

    if sys.stdout is None:
        raise RagError("Standard output is closed. Send it somewhere, to /dev/null for nothing.")
    try:
        code = app(prog_name="rag", standalone_mode=False)
    except typer.Abort:
        raise KeyboardInterrupt from None
    except SystemExit as leaving:
        if isinstance(leaving.__context__, BrokenPipeError):  # how typer and rich leave it
            raise leaving.__context__ from None
        raise
    if code == INTERRUPTED:  # how typer returns from Ctrl-C
        raise KeyboardInterrupt
    if sys.stdout is not None:
        sys.stdout.flush()
    return code if isinstance(code, int) else 0


def _unexpected(error: Exception) -> int:
    if hasattr(error, "show") and hasattr(error, "exit_code"):  # click's own usage errors
        error.show()
        return int(error.exit_code)
    from rag.crash import record

    return _fail(f"Internal error: {type(error).__name__}: {error}. {record(error)}", 1)


def _fail(message: str, code: int) -> int:
    from rag.render import Screen

    Screen(stderr=True).line(message, "red")
    return code
