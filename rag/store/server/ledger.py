"""What a replica's catalog keeps beside papers: keys of their vectors, and what is not pushed yet.

Triggers note every change in the transaction that makes it, whoever makes it and by whatever way.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag.keys import paper_keys
from rag.store.catalog import Catalog, as_matrix
from rag.store.database import statements
from rag.store.server.records import (
    FILE,
    PAPER,
    SOURCE,
    FileRecord,
    Gone,
    PaperRecord,
    Record,
    chunk_key,
)
from rag.types import Paper

_TABLES = """
CREATE TABLE IF NOT EXISTS remote_chunks (pk INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS remote_changes (kind TEXT NOT NULL, name TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS remote_changes_by_name ON remote_changes (name);
CREATE TRIGGER IF NOT EXISTS remote_paper_came AFTER INSERT ON papers
    BEGIN INSERT INTO remote_changes VALUES ('paper', new.id); END;
CREATE TRIGGER IF NOT EXISTS remote_paper_changed AFTER UPDATE ON papers
    BEGIN INSERT INTO remote_changes VALUES ('paper', old.id), ('paper', new.id); END;
CREATE TRIGGER IF NOT EXISTS remote_paper_gone AFTER DELETE ON papers
    BEGIN INSERT INTO remote_changes VALUES ('paper', old.id); END;
CREATE TRIGGER IF NOT EXISTS remote_source_came AFTER INSERT ON sources
    BEGIN INSERT INTO remote_changes SELECT 'paper', id FROM papers WHERE pk = new.paper_pk; END;
CREATE TRIGGER IF NOT EXISTS remote_source_changed AFTER UPDATE ON sources
    BEGIN INSERT INTO remote_changes SELECT 'paper', id FROM papers WHERE pk = new.paper_pk; END;
CREATE TRIGGER IF NOT EXISTS remote_source_gone AFTER DELETE ON sources
    BEGIN INSERT INTO remote_changes SELECT 'paper', id FROM papers WHERE pk = old.paper_pk; END;
CREATE TRIGGER IF NOT EXISTS remote_chunk_gone AFTER DELETE ON chunks
    BEGIN DELETE FROM remote_chunks WHERE pk = old.pk; END;
CREATE TRIGGER IF NOT EXISTS remote_file_came AFTER INSERT ON files
    BEGIN INSERT INTO remote_changes VALUES ('file', new.name); END;
CREATE TRIGGER IF NOT EXISTS remote_file_changed AFTER UPDATE ON files
    BEGIN INSERT INTO remote_changes VALUES ('file', old.name), ('file', new.name); END;
CREATE TRIGGER IF NOT EXISTS remote_file_gone AFTER DELETE ON files
    BEGIN INSERT INTO remote_changes VALUES ('file', old.name); END;
"""

# A paper with its sources is noted a few times; not all notes of a large store are read at once.
_ROWS_A_CHANGE = 32
_KEYS = ("title_key", "start_key", "end_key")

Vectors = Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class Unpushed:
    """Some records that the server lacks, with the vectors that it lacks of them.

    `vectors` has a row for each of `keys`, and `pks` are their chunks.
    """

    records: Sequence[Record]
    keys: Sequence[str]
    pks: Sequence[int]
    vectors: NDArray[np.float32]


class Ledger:
    """The part of one catalog that is about the server."""

    def __init__(self, catalog: Catalog) -> None:
        """Make what is missing; the caller may write."""
        self.catalog = catalog
        # A row that gives way to another of its key is gone, too.
        catalog.run("PRAGMA recursive_triggers = ON")
        with catalog.transaction():
            for statement in statements(_TABLES):
                catalog.run(statement)

    @property
    def revision(self) -> int:
        """That of the server up to which the catalog is complete; -1 at first."""
        return revision_of(self.catalog)

    @property
    def run(self) -> int:
        """The number of the last ingest."""
        return int(self.catalog.meta("run") or 0)

    def changed(self, limit: int) -> list[tuple[str, str]]:
        """At most so many of what the server lacks, ("paper", ID) or ("file", name).

        The oldest first: what takes a paper's place must not come before that goes.
        """
        found = self.catalog.rows(
            "SELECT kind, name FROM (SELECT kind, name, rowid AS place FROM remote_changes "
            "ORDER BY rowid LIMIT ?) GROUP BY kind, name ORDER BY min(place) LIMIT ?",
            (_ROWS_A_CHANGE * limit, limit),
        )
        return [(str(kind), str(name)) for kind, name in found]

    def changed_all(self) -> list[tuple[str, str]]:
        """All of it, in any order."""
        found = self.catalog.rows("SELECT DISTINCT kind, name FROM remote_changes")
        return [(str(kind), str(name)) for kind, name in found]

    def begin_from(self, old: Catalog) -> None:
        """Note everything as new to the server, with the files and the ingest count of `old`."""
        files = old.rows(f"SELECT {', '.join(FILE)} FROM files")
        with self.catalog.transaction():
            self.catalog.run("DELETE FROM files")
            for row in files:
                self._insert("files", FILE, dict(zip(FILE, row, strict=True)))
            self.catalog.set_meta("run", old.meta("run") or "0")
            for table in ("remote_changes", "remote_chunks"):
                self.catalog.run(f"DELETE FROM {table}")
            self.catalog.run("INSERT INTO remote_changes SELECT 'paper', id FROM papers")
            self.catalog.run("INSERT INTO remote_changes SELECT 'file', name FROM files")

    def unpushed(self, changed: Iterable[tuple[str, str]]) -> Unpushed:
        """These papers and files as they are now."""
        papers = {name: self._paper(name) for kind, name in changed if kind == "paper"}
        fresh: list[tuple[str, int, bytes]] = []
        records: list[Record] = []
        for name, row in papers.items():
            records.append(self._paper_record(row, fresh) if row else Gone("paper", name))
        for kind, name in changed:
            if kind == "file":
                found = self._rows(FILE, "files WHERE name = ?", name)
                records.append(FileRecord(found[0]) if found else Gone("file", name))
        keys, pks = [row[0] for row in fresh], [row[1] for row in fresh]
        return Unpushed(records, keys, pks, as_matrix(row[2] for row in fresh))

    def pushed(self, changed: Sequence[tuple[str, str]], some: Unpushed, revision: int) -> None:
        """Note that the server has these records, at this revision."""
        with self.catalog.transaction():
            self.catalog.run_many(
                "INSERT OR REPLACE INTO remote_chunks VALUES (?, ?)",
                zip(some.pks, some.keys, strict=True),
            )
            self.catalog.run_many("DELETE FROM remote_changes WHERE kind = ? AND name = ?", changed)
            if len(some.vectors):
                self.catalog.set_meta("dimension", str(some.vectors.shape[1]))
            self.catalog.set_meta("remote_revision", str(revision))

    def lacking(self, records: Iterable[Record]) -> list[str]:
        """Keys of the vectors that the catalog needs to take over these records."""
        papers = [r for r in records if isinstance(r, PaperRecord)]
        sql = "SELECT id, pk FROM papers WHERE id IN (SELECT value FROM json_each(?))"
        at = dict(self.catalog.rows(sql, (json.dumps([p.row["id"] for p in papers]),)))
        there = [c[3] for p in papers if at.get(p.row["id"]) == p.row["pk"] for c in p.chunks]
        sql = "SELECT key FROM remote_chunks WHERE key IN (SELECT value FROM json_each(?))"
        known = {row[0] for row in self.catalog.rows(sql, (json.dumps(there),))}
        wanted = dict.fromkeys(chunk[3] for paper in papers for chunk in paper.chunks)
        return [key for key in wanted if key not in known]

    def take_over(self, records: Sequence[Record], vectors: Vectors) -> None:
        """Make these papers and files what the server says they are, all or nothing."""
        with self.catalog.transaction():
            noted = "SELECT coalesce(max(rowid), 0) FROM remote_changes"
            ((last,),) = self.catalog.rows(noted)
            for record in records:
                if isinstance(record, PaperRecord):
                    self._take_paper(record, vectors)
                elif isinstance(record, FileRecord):
                    self._insert("files", FILE, record.row)
                else:
                    table, column = {"paper": ("papers", "id")}.get(record.kind, ("files", "name"))
                    self.catalog.run(f"DELETE FROM {table} WHERE {column} = ?", (record.name,))
            # What the triggers noted meanwhile is not to be brought back to the server.
            self.catalog.run("DELETE FROM remote_changes WHERE rowid > ?", (last,))
            for vector in islice(vectors.values(), 1):
                self.catalog.set_meta("dimension", str(len(vector)))
            if any(not isinstance(record, FileRecord) for record in records):
                self.catalog.touch()

    def forget_changes(self) -> None:
        """Forget what the server lacks."""
        self.catalog.run("DELETE FROM remote_changes")

    def complete(self, revision: int, run: int) -> None:
        """Note that the catalog is complete up to a revision of the server."""
        with self.catalog.transaction():
            own = int(self.catalog.meta("run") or 0)
            self.catalog.set_meta("run", str(max(own, run)))
            self.catalog.set_meta("remote_revision", str(revision))

    def _paper(self, paper_id: str) -> Mapping[str, Any] | None:
        found = self._rows(PAPER, "papers WHERE id = ?", paper_id)
        return found[0] if found else None

    def _paper_record(
        self, row: Mapping[str, Any], fresh: list[tuple[str, int, bytes]]
    ) -> PaperRecord:
        chunks = []
        for pk, number, first, last, known, vector in self.catalog.rows(
            "SELECT chunks.pk, number, first, last, key, iif(key IS NULL, vector, NULL) "
            "FROM chunks LEFT JOIN remote_chunks ON remote_chunks.pk = chunks.pk "
            "WHERE paper_pk = ? ORDER BY number",
            (row["pk"],),
        ):
            key = known or chunk_key(row["id"], number, vector)
            if known is None:
                fresh.append((key, pk, vector))
            chunks.append((number, first, last, key))
        sources = self._rows(SOURCE, "sources WHERE paper_pk = ? ORDER BY pk", row["pk"])
        return PaperRecord(row, sources, chunks)

    def _take_paper(self, record: PaperRecord, vectors: Vectors) -> None:
        run, row = self.catalog.run, record.row
        # The place in the list is the writer's, too: it says which of two papers came first.
        run("DELETE FROM papers WHERE id = ? AND pk <> ?", (row["id"], row["pk"]))
        run("DELETE FROM papers WHERE pk = ? AND id <> ?", (row["pk"], row["id"]))
        paper = Paper(row["id"], row["title"], row["text"], "", (), bool(row["title_derived"]))
        full = dict(row) | dict(zip(_KEYS, paper_keys(paper), strict=True))
        names = (*PAPER, *_KEYS)
        run(
            f"INSERT INTO papers ({', '.join(names)}) VALUES ({', '.join('?' * len(names))}) "
            f"ON CONFLICT (pk) DO UPDATE SET {', '.join(f'{n} = excluded.{n}' for n in names)}",
            [full[name] for name in names],
        )
        run("DELETE FROM sources WHERE paper_pk = ?", (row["pk"],))
        for source in record.sources:
            self._insert("sources", ("paper_pk", *SOURCE), {"paper_pk": row["pk"], **source})
        self._take_chunks(record, vectors)

    def _take_chunks(self, record: PaperRecord, vectors: Vectors) -> None:
        run, paper_pk = self.catalog.run, record.row["pk"]
        stored = self.catalog.rows(
            "SELECT number, first, last, key, vector FROM chunks JOIN remote_chunks USING (pk) "
            "WHERE paper_pk = ? ORDER BY number",
            (paper_pk,),
        )
        if stored and [row[:4] for row in stored] == list(record.chunks):
            return
        held = {row[3]: row[4] for row in stored}
        held |= {
            c[3]: vectors[c[3]].astype("<f4").tobytes() for c in record.chunks if c[3] in vectors
        }
        run("DELETE FROM chunks WHERE paper_pk = ?", (paper_pk,))
        for number, first, last, key in record.chunks:
            pk = run(
                "INSERT INTO chunks (paper_pk, number, first, last, vector) VALUES (?, ?, ?, ?, ?)",
                (paper_pk, number, first, last, held[key]),
            )
            run("INSERT OR REPLACE INTO remote_chunks VALUES (?, ?)", (pk, key))

    def _rows(self, columns: Collection[str], rest: str, value: object) -> list[dict[str, Any]]:
        found = self.catalog.rows(f"SELECT {', '.join(columns)} FROM {rest}", (value,))
        return [dict(zip(columns, row, strict=True)) for row in found]

    def _insert(self, table: str, columns: Collection[str], row: Mapping[str, Any]) -> None:
        self.catalog.run(
            f"INSERT OR REPLACE INTO {table} ({', '.join(columns)}) "
            f"VALUES ({', '.join('?' * len(columns))})",
            [row[column] for column in columns],
        )


def revision_of(catalog: Catalog) -> int:
    """The revision of the server up to which a replica's catalog is complete; -1 at first."""
    return int(catalog.meta("remote_revision") or -1)
