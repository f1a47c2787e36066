"""The SQLite half of a store, which is its truth: papers, their sources, chunks and vectors.

Everything else in a store directory can be made again from this file without embedding anything.
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag.keys import paper_keys, text_key
from rag.store.database import DamagedError, statements
from rag.store.migration import migrate
from rag.store.places import Places
from rag.store.schema import KEYED, SCHEMA, Entry, Fingerprint, Place
from rag.types import Chunk, Paper, Source

_PAPER = """
SELECT id, title, text, original, title_derived, metadata, (
    SELECT json_group_array(json_array(file, position)) FROM (
        SELECT file, position FROM sources WHERE paper_pk = papers.pk ORDER BY pk)
) FROM papers
"""


# Papers that one key of a title or an abstract's end may find; more say that it is boilerplate.
_ALIKE = 16


class Catalog(Places):
    """One `papers.sqlite`. Every method raises StoreError where the file fails."""

    @classmethod
    def open_or_create(cls, path: Path, fingerprint: Fingerprint) -> Catalog:
        """The catalog at `path`; empty where nothing was ever committed to the file."""
        catalog = cls(path, "rwc")
        if catalog.rows("SELECT 1 FROM sqlite_master WHERE name = 'meta'"):
            migrate(catalog)
            return catalog
        with catalog.transaction():
            for statement in statements(SCHEMA + KEYED):
                catalog.run(statement)
            catalog.set_meta("generation", uuid.uuid4().hex)
            catalog.set_meta("revision", "0")
            catalog.set_meta("fingerprint", json.dumps(asdict(fingerprint)))
        return catalog

    @classmethod
    def open(cls, path: Path, *, write: bool = False) -> Catalog:
        """An existing catalog; without `write` the file is never changed, whichever version's."""
        catalog = cls(path, "rw" if write else _reading_mode(path))
        _ = catalog.fingerprint
        if write:
            migrate(catalog)
        return catalog

    def meta(self, key: str) -> str | None:
        """A value that belongs to the catalog as a whole."""
        found = self.rows("SELECT value FROM meta WHERE key = ?", (key,))
        return str(found[0][0]) if found else None

    def set_meta(self, key: str, value: str) -> None:
        """Set a value of `meta`."""
        self.run("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    @property
    def fingerprint(self) -> Fingerprint:
        """What built the vectors here."""
        try:
            return Fingerprint(**json.loads(self.meta("fingerprint") or ""))
        except (ValueError, TypeError) as error:
            raise DamagedError(self.path) from error

    @property
    def state(self) -> str:
        """Changes with every change of what is searched; names what is derived from it."""
        return f"{(self.meta('generation') or '')[:8]}-{self.meta('revision')}"

    def content_digest(self) -> str:
        """SHA-256, in hexadecimal, over ID, title, text and metadata of every paper, by ID.

        Where a paper was read, and in which order papers came, makes no difference.
        """
        digest = hashlib.sha256()
        for row in self.stream("SELECT id, title, text, metadata FROM papers ORDER BY id"):
            digest.update(json.dumps(row).encode("ascii") + b"\n")
        return digest.hexdigest()

    def count(self) -> tuple[int, int]:
        """How many papers and how many chunks."""
        row = self.rows("SELECT (SELECT count(*) FROM papers), (SELECT count(*) FROM chunks)")[0]
        return int(row[0]), int(row[1])

    def ids(self) -> list[str]:
        """Every paper's ID, ascending."""
        return [row[0] for row in self.rows("SELECT id FROM papers ORDER BY id")]

    def papers(self) -> Iterator[Paper]:
        """Every paper, by ID."""
        return map(_paper, self.stream(f"{_PAPER} ORDER BY id"))

    def by_id(self, paper_id: str) -> Paper | None:
        """The paper of exactly this ID."""
        return self._one("id = ?", paper_id)

    def by_content(self, content_hash: str) -> Paper | None:
        """The paper with this text."""
        return self._one("content_hash = ?", content_hash)

    def by_record_id(self, record_id: str) -> Paper | None:
        """The paper that some source lists under this ID, which the paper does not bear itself."""
        return self._one("pk = (SELECT min(paper_pk) FROM sources WHERE record_id = ?)", record_id)

    def read_as(self, content_hash: str) -> Paper | None:
        """The paper that some source lists with this text."""
        return self._one(
            "pk = (SELECT min(paper_pk) FROM sources WHERE text_key = ?)",
            text_key(content_hash),
        )

    def listed(self, name: str, value: str) -> list[Paper]:
        """The papers that sources list under a "record_id", "doi" or "arxiv", the oldest first."""
        if name not in ("record_id", "doi", "arxiv"):
            raise ValueError(f"sources have no {name}")
        found = self.rows(
            f"{_PAPER} WHERE pk IN (SELECT paper_pk FROM sources WHERE {name} = ?) "
            "ORDER BY papers.pk",
            (value,),
        )
        return [_paper(row) for row in found]

    def alike(self, title: int | None, start: int, end: int) -> list[Paper]:
        """Papers that have any of these keys (see `rag.keys.paper_keys`), the oldest first."""
        any_of = " UNION ".join(
            f"SELECT pk FROM (SELECT pk FROM papers WHERE {name}_key = ? LIMIT {_ALIKE})"
            for name in ("title", "start", "end")
        )
        found = self.rows(
            f"{_PAPER} WHERE pk IN ({any_of}) ORDER BY papers.pk", (title, start, end)
        )
        return [_paper(row) for row in found]

    def _one(self, condition: str, value: str | int) -> Paper | None:
        found = self.rows(f"{_PAPER} WHERE {condition} LIMIT 1", (value,))
        return _paper(found[0]) if found else None

    def chunks(self, paper_id: str) -> tuple[tuple[Chunk, ...], NDArray[np.float32]]:
        """The chunks of a paper in order, and their vectors, shape (chunks, d)."""
        found = self.rows(
            "SELECT number, first, last, vector FROM chunks "
            "WHERE paper_pk = (SELECT pk FROM papers WHERE id = ?) ORDER BY number",
            (paper_id,),
        )
        return tuple(Chunk(paper_id, *row[:3]) for row in found), as_matrix(row[3] for row in found)

    def write(self, entries: Sequence[Entry], places: Sequence[Place] = ()) -> None:
        """Store papers and where they were read, in one transaction."""
        with self.transaction():
            for entry in entries:
                self._write_paper(entry)
            for place in places:
                self.write_place(place)
            if entries:
                self.touch()

    def touch(self) -> None:
        """Say that what is searched has changed, so that everything derived is made again."""
        self.run("UPDATE meta SET value = value + 1 WHERE key = 'revision'")

    def _write_paper(self, entry: Entry) -> None:
        paper = entry.paper
        # RETURNING, as lastrowid does not tell the row of an upsert that updated.
        found = self.rows(
            "INSERT INTO papers (id, title, title_derived, text, original, metadata, content_hash, "
            "title_key, start_key, end_key) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (id) DO UPDATE SET title = excluded.title, "
            "title_derived = excluded.title_derived, text = excluded.text, "
            "original = excluded.original, metadata = excluded.metadata, "
            "content_hash = excluded.content_hash, title_key = excluded.title_key, "
            "start_key = excluded.start_key, end_key = excluded.end_key RETURNING pk",
            (
                paper.id,
                paper.title,
                paper.title_derived,
                paper.text,
                paper.original,
                json.dumps(dict(paper.metadata), ensure_ascii=False),
                entry.content_hash,
                *paper_keys(paper),
            ),
        )
        # What else is known of a place comes with the `Place` itself.
        self.run_many(
            "INSERT OR IGNORE INTO sources (paper_pk, file, position) VALUES (?, ?, ?)",
            ((found[0][0], source.file, source.position) for source in paper.sources),
        )
        if entry.chunks is not None and entry.vectors is not None:
            self._write_chunks(int(found[0][0]), entry.chunks, entry.vectors)

    def _write_chunks(
        self, paper_pk: int, chunks: Sequence[Chunk], vectors: NDArray[np.float32]
    ) -> None:
        self.run("DELETE FROM chunks WHERE paper_pk = ?", (paper_pk,))
        self.run_many(
            "INSERT INTO chunks (paper_pk, number, first, last, vector) VALUES (?, ?, ?, ?, ?)",
            (
                (paper_pk, chunk.index, chunk.start, chunk.end, vector.astype("<f4").tobytes())
                for chunk, vector in zip(chunks, vectors, strict=True)
            ),
        )

    def remove(self, paper_ids: Sequence[str]) -> None:
        """Forget papers with everything that belongs to them."""
        with self.transaction():
            self._remove(paper_ids)

    def remove_source(self, name: str) -> list[str]:
        """Forget a file and the papers that no other has, all or nothing; the IDs of these."""
        with self.transaction():
            alone = self.only_in(name)
            self._remove(alone)
            self.forget_file(name)
        return alone

    def remove_left(self, names: Iterable[str], but: Collection[str] = ()) -> list[str]:
        """Forget what has left these files, `but` for some; the IDs of the papers removed.

        All or nothing.
        """
        with self.transaction():
            gone = {paper_id for name in names for paper_id in self.left(name)}
            removed = sorted(gone.difference(but))
            if removed:
                self._remove(removed)
        return removed

    def _remove(self, paper_ids: Sequence[str]) -> None:
        self.run_many("DELETE FROM papers WHERE id = ?", ((i,) for i in paper_ids))
        self.touch()

    def replace_with(self, other: Path) -> None:
        """Take over every paper from another catalog, in one transaction; files stay known."""
        self.run("ATTACH ? AS fresh", (str(other),))
        with self.transaction():
            for table in ("chunks", "sources", "papers", "chroma_deletions"):
                self.run(f"DELETE FROM main.{table}")
            # The other one counts no ingests.
            self.run("DELETE FROM main.meta WHERE key <> 'run'")
            for table in ("papers", "sources", "chunks", "meta"):
                self.run(f"INSERT INTO main.{table} SELECT * FROM fresh.{table}")
        self.run("DETACH fresh")

    def not_in_chroma(self) -> int:
        """How many chunks Chroma lacks."""
        return int(self.rows("SELECT count(*) FROM chunks WHERE in_chroma = 0")[0][0])

    def lacks_in_chroma(self, chunks: int) -> bool:
        """Whether Chroma lacks at least so many; quick however many they are."""
        sql = "SELECT 1 FROM chunks WHERE in_chroma = 0 LIMIT 1 OFFSET ?"
        return bool(self.rows(sql, (chunks - 1,)))

    def chroma_is_complete(self) -> bool:
        """Whether Chroma has every chunk and none that was deleted."""
        return not self.not_in_chroma() and not self.rows("SELECT 1 FROM chroma_deletions LIMIT 1")

    def chroma_was_filled(self) -> bool:
        """Whether Chroma has any chunk of this generation."""
        return self.not_in_chroma() < self.count()[1]


def as_matrix(blobs: Iterable[bytes]) -> NDArray[np.float32]:
    """Stored vectors as the rows of one matrix, shape (n, d)."""
    held = list(blobs)
    return np.frombuffer(b"".join(held), dtype="<f4").reshape(len(held), -1 if held else 0)


def _reading_mode(path: Path) -> str:
    # A WAL database needs a file beside it even to be read, which a read-only directory refuses;
    # without a log waiting to be merged, the file alone is the whole truth.
    waiting = path.with_name(f"{path.name}-wal").exists()
    return "ro" if waiting or os.access(path.parent, os.W_OK) else "ro&immutable=1"


def _paper(row: Any) -> Paper:
    sources = tuple(Source(file, position) for file, position in json.loads(row[6]))
    return Paper(row[0], row[1], row[2], row[3], sources, bool(row[4]), json.loads(row[5]))
