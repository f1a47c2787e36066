"""Files of lines: read once, every bad line named with its file and number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from rag.errors import RagError, ReadError
from rag.files import numbered_lines, read_text

T = TypeVar("T")

# Bad lines that a message names; it counts the others.
NAMED = 5


def read_lines(path: Path) -> list[tuple[int, str]]:
    """The lines of a text file that hold anything, with their numbers from 1.

    Raises:
        ReadError: the file cannot be read, or is no text.
    """
    return list(numbered_lines(read_text(str(path), path.read_bytes)))


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
