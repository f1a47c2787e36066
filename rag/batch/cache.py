"""Answers kept from run to run, in one SQLite file; whatever fails here costs a note, not a run."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from rag.config import Settings
from rag.llm.model_files import cache_directory

T = TypeVar("T")

FILE = "answers.sqlite"

# Some 8 KB each. The oldest go first: a key holds the program's own digest, so that after the next
# change of anything they can never be hit again.
MOST_ANSWERS = 20_000

# Part of the file's format: another version's file is left alone.
VERSION = 1

BUSY_SECONDS = 10.0

_SCHEMA = """
CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, at REAL NOT NULL, content TEXT NOT NULL)
"""
_PRUNE = """
DELETE FROM answers WHERE key IN (SELECT key FROM answers ORDER BY at DESC LIMIT -1 OFFSET ?)
"""


def cache_file(settings: Settings) -> Path:
    """Where answers are kept: beside the language model, in the user's cache directory."""
    return cache_directory(settings) / FILE


def open_cache(settings: Settings, *, wanted: bool) -> AbstractContextManager[AnswerCache | None]:
    """The answers of earlier runs, to be used and added to; None where they are not wanted."""
    return AnswerCache(cache_file(settings)) if wanted else nullcontext()


class AnswerCache:
    """Content by key, for several threads and processes; use it as a context manager.

    No method raises: once the file fails nothing is found nor kept any more, and `note` says why.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.note: str | None = None
        self._turn = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._guarded(self._open)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def get(self, key: str) -> Mapping[str, Any] | None:
        """What was kept under `key`, if anything was."""
        return self._guarded(self._get, key)

    def put(self, key: str, content: Mapping[str, Any]) -> None:
        """Keep `content` under `key`; what is there already stays."""
        self._guarded(self._put, key, json.dumps(content))

    def close(self) -> None:
        """Let go of the file; a second call does nothing."""
        with self._turn, suppress(sqlite3.Error):
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def _guarded(self, action: Callable[..., T], *arguments: object) -> T | None:
        with self._turn:
            try:
                return action(*arguments)
            except (sqlite3.Error, OSError, ValueError) as error:
                self._give_up(error)
                return None

    def _give_up(self, error: Exception) -> None:
        self.note = (
            f"Answers are not kept for later runs: {self.path} cannot be used ({error}). Delete "
            "that file, make room, or set RAG_CACHE_DIR to another directory."
        )
        with suppress(sqlite3.Error):
            if self._connection is not None:
                self._connection.close()
        self._connection = None

    def _open(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # Questions are nobody else's business; SQLite gives its further files the same mode.
        os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        self._connection = sqlite3.connect(
            self.path, isolation_level=None, check_same_thread=False, timeout=BUSY_SECONDS
        )
        version = int(self._connection.execute("PRAGMA user_version").fetchone()[0])
        if version not in (0, VERSION):
            raise ValueError(f"it is of version {version}, this program's is {VERSION}")
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        self._connection.execute(_SCHEMA)
        if version != VERSION:
            self._connection.execute(f"PRAGMA user_version = {VERSION}")
        self._connection.execute(_PRUNE, (MOST_ANSWERS,))

    def _get(self, key: str) -> Mapping[str, Any] | None:
        if self._connection is None:
            return None
        row = self._connection.execute(
            "SELECT content FROM answers WHERE key = ?", (key,)
        ).fetchone()
        content = json.loads(row[0]) if row else None
        return content if isinstance(content, dict) else None

    def _put(self, key: str, content: str) -> None:
        if self._connection is not None:
            self._connection.execute(
                "INSERT OR IGNORE INTO answers VALUES (?, ?, ?)", (key, time.time(), content)
            )
