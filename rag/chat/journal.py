"""A file of JSON lines that only grows: a line is written whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rag.errors import RagError, ReadError
from rag.state import PRIVATE_FILE

VERSION = 1
# How the first line begins; of a process that was killed there may be no more of it.
_FIRST = b'{"type": "session"'


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


def is_file(path: Path) -> bool:
    """Whether there is a file; a pipe, which would be waited for, or a directory is refused."""
    try:
        if path.is_file():
            return True
        there = path.is_symlink() or path.exists()
    except OSError as error:
        raise SessionError(f"{path} cannot be read: {error.strerror}.") from error
    if there:
        raise SessionError(f"{path} is no file. Move it away, or choose another name.")
    return False


def begun(path: Path) -> bool:
    """Whether there is a session of ours, perhaps an empty one.

    Raises:
        SessionError: what is there is no session, or of another version.
        ReadError: it cannot be read.
    """
    if not is_file(path):
        return False
    if not _is_session(path):
        raise SessionError(
            f"{path} is no session of `rag chat`, and is left as it is. Move it away, or choose "
            "another name."
        )
    version = header_of(read(path)[0]).get("version", VERSION)
    if version != VERSION:
        raise SessionError(
            f"{path} is a session of version {str(version)[:20]}; this program reads version "
            f"{VERSION}. Update it, or choose another name."
        )
    return True


def header_of(records: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The record that says what the file is; empty without one."""
    return next((r for r in records if r.get("type") == "session"), {})


def _is_session(path: Path) -> bool:
    """Whether a file begins, or began to be written, as ours do."""
    try:
        with path.open("rb") as file:
            first = file.readline(10_000)
    except OSError as error:
        raise ReadError(f"The session {path} cannot be read: {error.strerror}.") from error
    return (_record(first) or {}).get("type") == "session" or _FIRST.startswith(
        first[: len(_FIRST)]
    )


def _record(line: bytes) -> Mapping[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
