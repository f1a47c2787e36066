"""Where the traceback of an unforeseen error goes: to a file, never to the screen."""

from __future__ import annotations

import itertools
import os
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rag.state import PRIVATE_DIRECTORY, PRIVATE_FILE

_UNKEPT = "No file is to be written of this."


def record(error: Exception, *, keep: bool = True) -> str:
    """Write the traceback to the user's log directory; say where, for the message.

    It holds questions, and is readable by the user alone. Without `keep` nothing is written.
    """
    if not keep or _UNKEPT in getattr(error, "__notes__", ()):
        return "Please report it."
    from platformdirs import user_log_dir

    directory = Path(user_log_dir("citewise"))
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=PRIVATE_DIRECTORY)
        path = _written(directory, "".join(traceback.format_exception(error)))
    except OSError:
        return "Please report it."
    return f"Details are in {path}. Please report it with that file."


@contextmanager
def unkept() -> Iterator[None]:
    """Of an error that leaves the block, no file is written."""
    try:
        yield
    except Exception as error:
        error.add_note(_UNKEPT)
        raise


def _written(directory: Path, text: str) -> Path:
    """A file of its own, with a number where that second has one already."""
    moment = time.strftime("%Y%m%d-%H%M%S")
    for number in itertools.count(1):
        path = directory / f"crash-{moment}{f'-{number}' if number > 1 else ''}.txt"
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE)
        except FileExistsError:
            continue
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        return path
    raise AssertionError("numbers do not end")
