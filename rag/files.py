"""Text files: read whatever their encoding, and written so that nobody meets half of one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from rag.errors import ReadError
from rag.readers.encoding import decode


def read_text(name: str, read: Callable[[], bytes]) -> str:
    """The text in the bytes that `read` gives; its lines end in line feeds.

    Raises:
        ReadError: they cannot be read, or are no text; the message calls them `name`.
    """
    try:
        return decode(read())
    except OSError as error:
        raise ReadError(
            f"{name} cannot be read: {error.strerror or error}. Check the path."
        ) from error
    except ReadError as error:
        raise ReadError(f"{name} cannot be read. {error}") from error


def numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines that hold anything, with their numbers from 1."""
    # Not splitlines: a question or a string of JSON may hold U+2028 and its like.
    return ((n, line) for n, line in enumerate(text.split("\n"), start=1) if line.strip())


def replace_text(path: Path, parts: Iterable[str]) -> None:
    r"""Write beside, then put in place: a reader, or a kill, meets the old file or the new one.

    Half a surrogate pair, as of a file's name that is no UTF-8, is written as `\udcff`.

    Raises:
        OSError: it cannot be written; the old file is left, and nothing beside it.
    """
    beside = path.with_name(f".{path.name}.new")
    try:
        with beside.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
