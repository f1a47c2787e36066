"""One SQLite file: opened so that a killed process loses nothing, its errors made into advice."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rag.errors import StoreError


class Database:
    """A connection to `path`. Every method raises StoreError where the file fails."""

    def __init__(self, path: Path, mode: str) -> None:
        """Open with SQLite's own modes: "ro", "rw", or "rwc" to create what is missing."""
        self.path = path
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
        self._connection.close()

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """Every row of a query."""
        with _explained(self.path):
            return self._connection.execute(sql, parameters).fetchall()

    def stream(self, sql: str, parameters: Sequence[Any] = ()) -> Iterator[Any]:
        """Rows of a query, a few hundred in memory at a time."""
        with _explained(self.path):
            cursor = self._connection.execute(sql, parameters)
        while True:
            with _explained(self.path):
                batch = cursor.fetchmany(256)
            if not batch:
                return
            yield from batch

    def run(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        """Execute one statement; the row ID of an insertion."""
        with _explained(self.path):
            return self._connection.execute(sql, parameters).lastrowid or 0

    def run_many(self, sql: str, parameters: Iterable[Sequence[Any]]) -> None:
        """Execute one statement for each set of parameters."""
        with _explained(self.path):
            self._connection.executemany(sql, parameters)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing."""
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


def damaged(path: Path) -> str:
    """The message for a database that cannot be read."""
    return (
        f"{path} is damaged and cannot be read. Restore {path.name} from a backup, or delete "
        f"{path.parent} and run `rag ingest PATH...` again."
    )


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
        raise StoreError(_advice(path, str(error))) from error


def _advice(path: Path, reason: str) -> str:
    if "full" in reason:
        return disk_full(path.parent)
    if "readonly" in reason or "unable to open" in reason:
        return (
            f"{path} cannot be opened or written ({reason}). Check its permissions, or choose "
            "another directory with --store DIR."
        )
    if "locked" in reason or "busy" in reason:
        return f"{path} is in use by another program. Try again when it is done."
    return damaged(path)
