"""Drafts as JSON lines; a file that a person edits is only ever added to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from rag.errors import RagError, ReadError


def json_line(value: Mapping[str, Any], *, ascii_only: bool = False) -> str:
    """One line of JSON; what cannot be seen in it is written as an escape."""
    text = json.dumps(value, ensure_ascii=ascii_only)
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


def known_ids(path: Path) -> set[str]:
    """The IDs in a file of questions, whatever else its lines hold; none where there is no file.

    Raises:
        ReadError: it is there and cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return set()
    except (OSError, ValueError) as error:
        raise ReadError(
            f"{path} cannot be read as text: {error}. Name another file with --out."
        ) from error
    return {found for line in text.split("\n") if (found := _id(line)) is not None}


def open_to_append(path: Path) -> IO[str]:
    """A file open for more lines; one that was cut off in a line gets its line end first.

    Raises:
        RagError: it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = not path.exists() or path.read_bytes()[-1:] in (b"", b"\n")
        opened = path.open("a", encoding="utf-8")
        opened.write("" if whole else "\n")
    except OSError as error:
        raise RagError(f"{path} cannot be written: {error}. Name another file.") from error
    return opened


def _id(line: str) -> str | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    found = value.get("id") if isinstance(value, dict) else None
    return None if found is None else str(found)
