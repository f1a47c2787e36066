"""Sessions as files: one line of JSON for each thing that happened, written when it happens.

The first line says what the file is. A process that is killed leaves at most its last line torn;
that line is dropped when the session is opened again.

    {"type": "session", "version": 1, "name", "store", "at"}
    {"type": "question", "question", "filter", "at"}
    {"type": "answer", ...}       see `rag.chat.exchanges`
    {"type": "filter", "filter", "at"}    {"type": "clear", "at"}
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from rag.chat.journal import (
    VERSION,
    SessionError,
    begun,
    header_of,
    is_file,
    open_to_append,
    read,
    repaired,
    write,
)
from rag.config import ServerAddress
from rag.errors import RagError, ReadError, UsageError
from rag.state import PRIVATE_DIRECTORY, PRIVATE_FILE, state_directory

SUFFIX = ".jsonl"

# Names become file names: no separators, no leading dot, and within the 255 bytes of a file name.
_NAME = re.compile(r"[^\W_][\w. -]{0,59}\Z")
# What Windows keeps for devices.
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Listed:
    """A session in the list: `started` and `last` are ISO 8601 times."""

    name: str
    path: Path
    started: str
    last: str
    store: str
    questions: int
    first_question: str


@dataclass(slots=True)
class Session:
    """An open session: what it holds already, and the file for what comes.

    `repaired` says what was wrong with the file. Without a `path` nothing is kept.
    """

    name: str
    path: Path | None = None
    store: str = ""
    records: list[Mapping[str, Any]] = field(default_factory=list)
    repaired: str = ""
    _lock: Any = None
    _file: int | None = None

    def append(self, record: Mapping[str, Any]) -> None:
        """Write one line, to the disk, whole or not at all.

        Raises:
            SessionError: it cannot be written.
        """
        if self.path is None:
            return
        try:
            if self._file is None:
                self._file = open_to_append(self.path)
            if not os.fstat(self._file).st_size:  # new, or there was no room for it before
                self._write(self._header())
            self._write({**record, "at": record.get("at") or now()})
        except OSError as error:
            raise SessionError(
                f"This conversation cannot be saved in {self.path}: {error.strerror}. Free some "
                "space or check the permissions; the conversation goes on."
            ) from error

    def close(self) -> None:
        """Release the file and its lock."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
        if self._lock is not None:
            # Before the release: after it, the file may be another's lock already. Who waits with
            # this one open sees in filelock that it has gone. Windows removes it on release.
            with suppress(OSError):
                Path(self._lock.lock_file).unlink()
            self._lock.release()
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _header(self) -> dict[str, Any]:
        return {
            "type": "session",
            "version": VERSION,
            "name": self.name,
            "store": self.store,
            "at": now(),
        }

    def _write(self, record: Mapping[str, Any]) -> None:
        assert self._file is not None
        write(self._file, record)


def now() -> str:
    """The present moment, ISO 8601 with the offset of this place."""
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")


def sessions_directory() -> Path:
    """Where the session files lie."""
    return state_directory() / "sessions"


def open_session(
    store: Path | ServerAddress, name: str | None = None, *, latest: bool = False
) -> Session:
    """A session by name, made where there is none; the latest; or a new one.

    Raises:
        UsageError: the name cannot be a file's, or there is no session yet to continue.
        SessionError: another chat has it open, its directory cannot be written, or its file is
            no session, or one of another version; the file is then left as it is.
    """
    if latest:
        found = listed()
        if not found:
            raise UsageError("There is no conversation to continue yet. Begin one: rag chat")
        name = found[0].name
    path = _new_path() if name is None else _path(name)
    session = Session(path.stem, path, str(store.absolute()))
    session._lock = _locked(path)
    try:
        if begun(path):
            session.records, session.repaired = repaired(path)
    except BaseException:
        session.close()
        raise
    return session


def listed() -> list[Listed]:
    """Every session that holds anything, the one used last first."""
    found = []
    for path in _files():
        with suppress(OSError, ReadError, SessionError):
            if entry := _entry(path):
                found.append((path.stat().st_mtime_ns, entry))
    return [entry for _, entry in sorted(found, key=lambda item: (-item[0], item[1].name))]


def read_session(name: str) -> tuple[list[Mapping[str, Any]], int]:
    """What a session holds, and how many of its lines cannot be read; the file is not changed.

    Raises:
        UsageError: there is none of this name.
        ReadError, SessionError: its file cannot be read, or is no session.
    """
    path = _path(name)
    if not begun(path):
        raise UsageError(_unknown(name))
    records, torn, broken = read(path)
    return records, broken + (torn is not None)


def delete_session(name: str) -> None:
    """Remove a session for good.

    Raises:
        UsageError: there is none of this name.
        SessionError: a chat has it open, it is no file, or it cannot be removed.
    """
    path = _path(name)
    if not is_file(path):
        raise UsageError(_unknown(name))
    held = Session(name, path, _lock=_locked(path))
    try:
        path.unlink()
    except OSError as error:
        raise SessionError(f"{path} cannot be removed: {error.strerror}.") from error
    finally:
        held.close()


def delete_sessions(names: Iterable[str]) -> None:
    """Remove sessions for good, all that can be.

    Raises:
        UsageError: there are none of some names; the message holds all that went wrong.
        SessionError: others cannot be removed.
    """
    failures: list[RagError] = []
    for name in dict.fromkeys(names):
        try:
            delete_session(name)
        except RagError as error:
            failures.append(error)
    if failures:
        said = " ".join(map(str, failures))
        usage = any(isinstance(failure, UsageError) for failure in failures)
        raise UsageError(said) if usage else SessionError(said)


def private_directory(path: Path) -> None:
    """Make a directory that only its owner can look into."""
    path.mkdir(parents=True, exist_ok=True, mode=PRIVATE_DIRECTORY)


def _path(name: str) -> Path:
    if not _NAME.match(name) or _DEVICE.match(name) or name != name.strip(" ."):
        raise UsageError(
            f"{name[:80]!r} cannot name a session. Use up to 60 letters, digits, blanks, dots, "
            "hyphens and underscores, the first a letter or digit."
        )
    return sessions_directory() / f"{name}{SUFFIX}"


def _new_path() -> Path:
    """A name from the time, with a number where that moment has a session already."""
    moment = time.strftime("%Y-%m-%d-%H%M%S")
    names = [moment, *(f"{moment}-{number}" for number in range(2, 1000))]
    paths = [sessions_directory() / f"{name}{SUFFIX}" for name in names]
    return next(p for p in paths if not p.exists() and not _lock_path(p).exists())


def _lock_path(path: Path) -> Path:
    return path.with_name(f".{path.stem}.lock")


def _locked(path: Path) -> Any:
    from filelock import FileLock, Timeout

    try:
        private_directory(path.parent)
        lock = FileLock(_lock_path(path), mode=PRIVATE_FILE)
        lock.acquire(timeout=0)
    except Timeout as error:
        raise SessionError(
            f"The session {path.stem!r} is open in another chat. Leave it there, or choose "
            "another: rag chat --session NAME"
        ) from error
    except OSError as error:
        raise SessionError(
            f"Sessions cannot be kept in {path.parent}: {error.strerror}. Make it writable, or "
            "leave no trace: rag chat --no-save"
        ) from error
    return lock


def _entry(path: Path) -> Listed | None:
    """What the list says of a session; None of one that is empty."""
    if not begun(path):
        return None
    records = read(path)[0]
    if all(record.get("type") == "session" for record in records):
        return None
    questions = [_text(r.get("question")) for r in records if r.get("type") == "question"]
    header = header_of(records)
    return Listed(
        name=path.stem,
        path=path,
        started=_text(header.get("at")),
        last=_text(records[-1].get("at")),
        store=_text(header.get("store")),
        questions=len(questions),
        first_question=questions[0] if questions else "",
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _unknown(name: str) -> str:
    import difflib

    close = difflib.get_close_matches(name, list(_names()), n=3)
    advice = f"Closest: {', '.join(close)}." if close else "Run `rag sessions` for the list."
    return f"There is no session {name!r}. {advice}"


def _names() -> Iterator[str]:
    return (path.stem for path in _files())


def _files() -> Iterator[Path]:
    return (path for path in sessions_directory().glob(f"*{SUFFIX}") if path.is_file())
