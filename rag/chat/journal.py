"""A file of JSON lines that only grows: a line is written whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rag.errors import RagError, ReadError
from rag.state import PRIVATE_FILE


class SessionError(RagError):
    """A session is missing, in use, or cannot be written."""


def open_to_append(path: Path) -> int:
    """A descriptor; the file is made for its owner alone where there is none."""
    return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, PRIVATE_FILE)


def write(descriptor: int, record: Mapping[str, Any]) -> None:
    """Put a line behind the others, on the disk.

    Raises:
        OSError: it cannot be written; nothing of it is left.
    """
    line = json.dumps(record, ensure_ascii=False) + "\n"
    data = line.encode("utf-8", "replace")  # half a surrogate pair can be typed
    size = os.fstat(descriptor).st_size
    try:
        written = 0
        while written < len(data):
            written += os.write(descriptor, data[written:])
        os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, size)
        raise


def repaired(path: Path) -> tuple[list[Mapping[str, Any]], str]:
    """The records of a file, which afterwards ends with a whole line."""
    records, torn, broken = read(path)
    try:
        if torn is not None:
            os.truncate(path, torn)
        elif not path.read_bytes().endswith(b"\n") and path.stat().st_size:
            with path.open("ab") as file:
                file.write(b"\n")
    except OSError as error:
        raise SessionError(f"{path} cannot be written: {error.strerror}.") from error
    said = []
    if torn is not None:
        said.append("its last line was torn, and is dropped")
    if broken:
        said.append(f"{broken} of its lines cannot be read, and are passed over")
    return records, f"{path}: {'; '.join(said)}." if said else ""


def read(path: Path) -> tuple[list[Mapping[str, Any]], int | None, int]:
    """The records, where a torn last line begins (None if it is whole), and how many are broken."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ReadError(f"The session {path} cannot be read: {error.strerror}.") from error
    records: list[Mapping[str, Any]] = []
    torn, broken, place = None, 0, 0
    for line in data.split(b"\n"):
        record = _record(line)
        if record is not None:
            records.append(record)
        elif line.strip() and place + len(line) == len(data):
            torn = place
        elif line.strip():
            broken += 1
        place += len(line) + 1
    return records, torn, broken


def _record(line: bytes) -> Mapping[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
