"""One SQLite file: opened so that a killed process loses nothing, its errors made into advice."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rag.errors import StoreError

# SQLITE_ERROR is a missing table or column: every statement here is right for a whole file.
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)


class Database:
    """A connection to `path`. Every method raises StoreError where the file fails.

    Threads may share it: one statement runs at a time, and a transaction is its thread's own.
    """

    def __init__(self, path: Path, mode: str) -> None:
        """Open with SQLite's own modes: "ro", "rw", or "rwc" to create what is missing."""
        self.path = path
        # From Python 3.12 on, threads that run the same statement at once get one another's rows:
        # https://github.com/python/cpython/issues/118172
        self._turn = threading.RLock()
        with _explained(path):
            self._connection = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode={mode}",
                uri=True,
                isolation_level=None,
                check_same_thread=False,
                timeout=30,
            )
            self._connection.execute("PRAGMA foreign_keys = ON")
            if mode.startswith("rw"):
                # WAL with NORMAL survives a killed process whole; readers go on during a write.
                self._connection.execute("PRAGMA journal_mode = WAL")
                self._connection.execute("PRAGMA synchronous = NORMAL")

    def close(self) -> None:
        """Close the file; safe to call twice."""
        with self._turn:
            self._connection.close()

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """Every row of a query."""
        with self._turn, _explained(self.path):
            return self._connection.execute(sql, parameters).fetchall()

    def stream(self, sql: str, parameters: Sequence[Any] = ()) -> Iterator[Any]:
        """Rows of a query, a few hundred in memory at a time."""
        with self._turn, _explained(self.path):
            cursor = self._connection.execute(sql, parameters)
        while True:
            with self._turn, _explained(self.path):
                batch = cursor.fetchmany(256)
            if not batch:
                return
            yield from batch

    def run(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        """Execute one statement; the row ID of an insertion."""
        with self._turn, _explained(self.path):
            return self._connection.execute(sql, parameters).lastrowid or 0

    def run_many(self, sql: str, parameters: Iterable[Sequence[Any]]) -> None:
        """Execute one statement for each set of parameters."""
        with self._turn, _explained(self.path):
            self._connection.executemany(sql, parameters)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing."""
        with self._turn:
            self.run("BEGIN IMMEDIATE")
            try:
                yield
                self.run("COMMIT")
            finally:
                if self._connection.in_transaction:
                    self._connection.rollback()


def statements(script: str) -> Iterator[str]:
    """The statements of an SQL script, each beginning on a line of its own.

    `executescript` would commit each one apart, and a kill would leave half a schema.
    """
    statement = ""
    for line in script.splitlines():
        statement += line + "\n"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


class DamagedError(StoreError):
    """The file is not the database that was written, or a part of it is not."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} is damaged and cannot be read. Restore {path.name} from a backup, or delete "
            f"{path.parent} and run `rag ingest PATH...` again."
        )
        self.path = path


def disk_full(directory: Path) -> str:
    """The message for a disk without space."""
    return (
        f"There is no space left on the disk of {directory}. What was stored before is whole: free "
        "some space and run the same command again; it continues where it stopped."
    )


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise _explanation(path, error) from error


def _explanation(path: Path, error: sqlite3.Error) -> StoreError:
    # An extended code keeps its primary code in the low byte. Text that is not UTF-8 has no code.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
    if code in _DAMAGE:
        return DamagedError(path)
    if code == sqlite3.SQLITE_FULL:
        return StoreError(disk_full(path.parent))
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return StoreError(
            f"{path} cannot be opened or written ({error}). Check its permissions, or choose "
            "another directory with --store DIR."
        )
    if code in (sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_BUSY):
        return StoreError(f"{path} is in use by another program. Try again when it is done.")
    return StoreError(
        f"{path} could not be read or written ({error}). That is no sign of damage to "
        "what is stored: check the disk, its free space and your quota, then run it again."
    )
