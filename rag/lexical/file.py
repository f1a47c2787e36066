"""The file of a lexical index: documents and postings in SQLite, which makes a change whole.

A document has a number; `BLOCK` of them in a row are a block. What a word occurs in is one row for
each block that has it. So an addition rewrites rows of the last block alone, and a search reads
each of its words in one stretch. A document that leaves keeps its number and its postings until
the index is made anew; only its length says that it is gone.
"""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import threading
import uuid
import weakref
import zlib
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rag.errors import StoreError
from rag.lexical.scoring import GONE, Postings

# Numbers within a block are stored in 16 bits. A smaller one makes additions cheaper, and searches
# dearer: 10 papers rewrite up to 3 MB of the last one.
BLOCK = 1 << 14

# Of this file's form and of what `tokens` and `searchable` make of a text: raised with either.
FORMAT = 1

# Pages are read where the system holds them, without a copy, in files up to this size.
_MAPPED_BYTES = 1 << 34

_SCHEMA = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE blocks (number INTEGER PRIMARY KEY, ids BLOB NOT NULL, lengths BLOB NOT NULL, "
    "marks BLOB NOT NULL, postings INTEGER NOT NULL, checksum INTEGER NOT NULL)",
    "CREATE TABLE postings (term TEXT NOT NULL, block INTEGER NOT NULL, documents BLOB NOT NULL, "
    "counts BLOB NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY (term, block)) WITHOUT ROWID",
)

# SQLITE_ERROR is a missing table: every statement here is right for a whole file.
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)

# Bytes of a text's digest by which a changed text is told.
MARK_BYTES = 8

# Documents within a block, ascending, in 16 bits each, and in 8 how often each has the word.
Entries = tuple["array[int]", bytearray]


class DamagedIndexError(StoreError):
    """The lexical index is not what was written, or was written by another version."""

    def __init__(self, path: object, reason: object) -> None:
        super().__init__(
            f"The word index {path} is damaged or of another version ({reason}). Run "
            "`rag index rebuild`: papers and vectors are kept apart from it, so nothing is "
            "embedded again."
        )


@dataclass(slots=True)
class Block:
    """Up to `BLOCK` documents: IDs, numbers of words (or `GONE`), marks of the texts.

    `lengths` has room for all of them. `postings` sums the checksums of its rows of postings.
    """

    number: int
    ids: list[str] = field(default_factory=list)
    lengths: NDArray[np.int32] = field(default_factory=lambda: np.full(BLOCK, GONE, np.int32))
    marks: bytearray = field(default_factory=bytearray)
    postings: int = 0

    def mark(self, place: int) -> bytes:
        """The mark of one document's text."""
        return bytes(self.marks[place * MARK_BYTES : (place + 1) * MARK_BYTES])


class IndexFile:
    """A connection to one file, or to memory where `path` is None. Threads may share it."""

    def __init__(self, path: Path | None, *, write: bool = False) -> None:
        """Open; with `write` a missing file is made.

        Raises:
            DamagedIndexError: the file is no index, or of another version.
            FileNotFoundError: there is none.
            StoreError: it cannot be read or written.
        """
        self.path = path
        self._turn = threading.RLock()
        if path is not None and not write and not path.exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        with self._explained():
            self._connection = _connect(path, write)
            self._close = weakref.finalize(self, self._connection.close)
            if write or path is None:
                self._create()
            version, filled = self._connection.execute(
                "SELECT user_version, schema_version "
                "FROM pragma_user_version, pragma_schema_version"
            ).fetchone()
            if not filled:
                # Its first writer has begun it this moment, or was killed then.
                self._close()
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
            if version != FORMAT:
                self._close()
                raise DamagedIndexError(path, f"format {version}, this version reads {FORMAT}")

    def close(self) -> None:
        """Close the file; safe to call twice."""
        with self._turn:
            self._close()

    def copy(self) -> IndexFile:
        """The same index in memory."""
        other = IndexFile(None)
        with self._turn, self._explained():
            self._connection.backup(other._connection)
        return other

    @contextmanager
    def reading(self) -> Iterator[None]:
        """All that is read within is of one moment."""
        with self._turn, self._explained():
            nested = self._connection.in_transaction
            if not nested:
                self._connection.execute("BEGIN")
            try:
                yield
            finally:
                if not nested and self._connection.in_transaction:
                    self._connection.execute("COMMIT")

    @contextmanager
    def writing(self) -> Iterator[None]:
        """All that is written within, or nothing."""
        with self._turn, self._explained():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            finally:
                if self._connection.in_transaction:
                    self._connection.rollback()
            if self.path is not None:
                # The log of a long write is as large as the index.
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    @property
    def state(self) -> tuple[str, str]:
        """What `set_state` was last told, and a name that no other writing has; "" at first."""
        with self._turn, self._explained():
            rows = self._connection.execute("SELECT key, value FROM meta").fetchall()
        found = dict(rows)
        return found.get("state", ""), found.get("writing", "")

    def set_state(self, state: str) -> None:
        """Say what the index is an index of."""
        self._connection.executemany(
            "INSERT OR REPLACE INTO meta VALUES (?, ?)",
            (("state", state), ("writing", uuid.uuid4().hex)),
        )

    def blocks(self) -> list[Block]:
        """Every block, in order."""
        with self._turn, self._explained():
            rows = self._connection.execute(
                "SELECT number, ids, lengths, marks, postings, checksum FROM blocks ORDER BY number"
            ).fetchall()
        return [self._block(i, row) for i, row in enumerate(rows)]

    def _block(self, place: int, row: tuple[int, bytes, bytes, bytes, int, int]) -> Block:
        number, ids, lengths, marks, postings, checksum = row
        if number != place or checksum != _checksum(number, ids, lengths, marks, postings):
            raise DamagedIndexError(self.path, f"block {place} is not as it was written")
        block = Block(number, json.loads(ids), marks=bytearray(marks), postings=postings)
        block.lengths[: len(block.ids)] = np.frombuffer(lengths, dtype="<i4")
        return block

    def put_block(self, block: Block) -> None:
        """Write a block's documents."""
        kept = (
            block.number,
            json.dumps(block.ids).encode("ascii"),
            block.lengths[: len(block.ids)].astype("<i4").tobytes(),
            bytes(block.marks),
            block.postings,
        )
        self._connection.execute(
            "INSERT OR REPLACE INTO blocks VALUES (?, ?, ?, ?, ?, ?)", (*kept, _checksum(*kept))
        )

    def postings(self, terms: Collection[str]) -> Postings:
        """What these words occur in, words and blocks in order."""
        with self._turn, self._explained():
            rows = self._connection.execute(
                "SELECT term, block, documents, counts, checksum FROM postings "
                "WHERE term IN (SELECT value FROM json_each(?))",
                (json.dumps(list(terms)),),
            ).fetchall()
        rows.sort(key=lambda row: row[:2])
        for row in rows:
            self._check(row)
        sizes = np.array([len(row[3]) for row in rows], dtype=np.int64)
        documents = np.frombuffer(b"".join(row[2] for row in rows), dtype="<u2").astype(np.int64)
        documents += np.repeat(np.array([row[1] * BLOCK for row in rows], dtype=np.int64), sizes)
        counts = np.frombuffer(b"".join(row[3] for row in rows), dtype=np.uint8)
        return Postings([row[0] for row in rows], sizes, documents, counts)

    def add_postings(self, block: Block, added: Mapping[str, Entries]) -> None:
        """Append to the rows of a block, and to its sum of checksums. Numbers must be new."""
        for term in sorted(added):
            places, times = added[term]
            documents, counts = np.array(places, dtype="<u2").tobytes(), bytes(times)
            row = self._connection.execute(
                "SELECT term, block, documents, counts, checksum FROM postings "
                "WHERE term = ? AND block = ?",
                (term, block.number),
            ).fetchone()
            if row is not None:
                self._check(row)
                documents, counts = row[2] + documents, row[3] + counts
                block.postings -= row[4]
            checksum = _checksum(term, block.number, documents, counts)
            block.postings += checksum
            self._connection.execute(
                "INSERT OR REPLACE INTO postings VALUES (?, ?, ?, ?, ?)",
                (term, block.number, documents, counts, checksum),
            )

    def clear(self) -> None:
        """Forget every document."""
        for table in ("meta", "blocks", "postings"):
            self._connection.execute(f"DELETE FROM {table}")

    def check(self) -> None:
        """Read everything once: some seconds for 100,000 papers.

        Raises:
            DamagedIndexError: anything is not as it was written.
        """
        with self.reading():
            found = self._connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
            if found != "ok":
                raise DamagedIndexError(self.path, found)
            blocks = self.blocks()
            sums = dict.fromkeys(range(len(blocks)), 0)
            for row in self._connection.execute(
                "SELECT term, block, documents, counts, checksum FROM postings"
            ):
                self._check(row)
                sums[row[1]] = sums.get(row[1], 0) + row[4]
            if sums != {block.number: block.postings for block in blocks}:
                raise DamagedIndexError(self.path, "words are missing")

    def _check(self, row: Sequence[object]) -> None:
        *kept, checksum = row
        if checksum != _checksum(*kept):
            raise DamagedIndexError(self.path, "a word is not as it was written")

    def _create(self) -> None:
        if self._connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
            return
        self._connection.execute("BEGIN IMMEDIATE")
        for statement in _SCHEMA:
            self._connection.execute(statement)
        self._connection.execute(f"PRAGMA user_version = {FORMAT}")
        self._connection.execute("COMMIT")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._explanation(error) from error

    def _explanation(self, error: sqlite3.Error) -> StoreError:
        # An extended code keeps its primary code in the low byte.
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
        if code in _DAMAGE:
            return DamagedIndexError(self.path, error)
        if code == sqlite3.SQLITE_FULL:
            return StoreError(
                f"There is no space left on the disk of {self.path}. The papers are whole: free "
                "some space and run the same command again."
            )
        return StoreError(
            f"The word index {self.path} cannot be read or written ({error}). Check its "
            "permissions and the disk, or delete it and run `rag index rebuild`."
        )


def _connect(path: Path | None, write: bool) -> sqlite3.Connection:
    if path is None:
        return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    mode = "rwc" if write else _reading_mode(path)
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        timeout=30,
    )
    connection.execute(f"PRAGMA mmap_size = {_MAPPED_BYTES}").fetchall()
    if write:
        # WAL with NORMAL survives a killed process whole; readers go on during a write.
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
        connection.execute("PRAGMA synchronous = NORMAL")
    return connection


def _reading_mode(path: Path) -> str:
    # A WAL database needs a file beside it even to be read, which a read-only directory refuses.
    waiting = path.with_name(f"{path.name}-wal").exists()
    return "ro" if waiting or os.access(path.parent, os.W_OK) else "ro&immutable=1"


def _checksum(*parts: object) -> int:
    found = 0
    for part in parts:
        found = zlib.crc32(part if isinstance(part, bytes) else repr(part).encode(), found)
    return found
