"""Files of lines: read once, every bad line named with its file and number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from rag.errors import RagError, ReadError
from rag.readers.encoding import decode

T = TypeVar("T")

# Bad lines that a message names; it counts the others.
NAMED = 5


def read_lines(path: Path) -> list[tuple[int, str]]:
    """The lines of a text file that hold anything, with their numbers from 1.

    Raises:
        ReadError: the file cannot be read, or is no text.
    """
    try:
        text = decode(path.read_bytes())
    except OSError as error:
        raise ReadError(
            f"{path} cannot be read: {error.strerror or error}. Check the path."
        ) from error
    except ReadError as error:
        raise ReadError(f"{path} cannot be read. {error}") from error
    # Not splitlines: JSON may hold U+2028 and its like inside a string.
    lines = enumerate(text.split("\n"), start=1)
    return [(number, line.rstrip("\r")) for number, line in lines if line.strip()]


def parse_lines(
    lines: Sequence[tuple[int, str]], parse: Callable[[str], T]
) -> tuple[list[T], list[tuple[int, str]]]:
    """What `parse` makes of each line, and the lines for which it raised ValueError, with why."""
    good: list[T] = []
    bad: list[tuple[int, str]] = []
    for number, line in lines:
        try:
            good.append(parse(line))
        except ValueError as error:
            bad.append((number, str(error)))
    return good, bad


def refuse(path: Path, bad: Sequence[tuple[int, str]]) -> None:
    """Stop where any line is bad.

    Raises:
        ReadError: the first `NAMED` of them, with numbers and reasons.
    """
    if not bad:
        return
    named = "; ".join(f"line {number}: {why}" for number, why in bad[:NAMED])
    more = f"; and {len(bad) - NAMED} more" if len(bad) > NAMED else ""
    raise ReadError(f"{path}, {named}{more}. Correct or remove what is wrong.")


def write_text(path: Path, text: str) -> None:
    """Write a file.

    Raises:
        RagError: it cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise RagError(
            f"{path} cannot be written: {error.strerror or error}. Name another file, in a folder "
            "that exists."
        ) from error
