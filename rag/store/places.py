"""The part of a catalog about sources: which files were read, and where each paper stands in them.

A place is live as long as its `run` is that of its file, so that what has left a file shows once
the file was read to its end.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from rag.store.database import Database
from rag.store.migration import is_current
from rag.store.schema import FileRead, Place
from rag.types import Source

_FILE = "SELECT name, path, content_hash, reading, run, places, report FROM files"
# Where the catalog keeps what papers are looked up by.
_KEPT = {
    "id": ("papers.id",),
    "content_hash": ("papers.content_hash",),
    "alike": ("papers.title_key", "papers.start_key", "papers.end_key"),
    "record_id": ("sources.record_id",),
    "doi": ("sources.doi",),
    "arxiv": ("sources.arxiv",),
    "text_key": ("sources.text_key",),
}
_STALE = "file = ?1 AND run <> (SELECT run FROM files WHERE name = ?1)"


class Places(Database):
    """Files and places; every method raises StoreError where the catalog fails."""

    def places(self, paper_id: str) -> list[Place]:
        """Where a paper was read, the first place first."""
        more = "doi, arxiv, text_key, run" if is_current(self) else "NULL, NULL, NULL, 0"
        found = self.rows(
            f"SELECT file, position, record_id, {more} FROM sources "
            "WHERE paper_pk = (SELECT pk FROM papers WHERE id = ?) ORDER BY pk",
            (paper_id,),
        )
        return [Place(paper_id, Source(row[0], row[1]), *row[2:]) for row in found]

    def history(self, paper_id: str) -> list[tuple[Place, int]]:
        """The places of a paper, each with the run in which it was first read there."""
        found = self.rows(
            "SELECT file, position, record_id, doi, arxiv, text_key, run, since FROM sources "
            "WHERE paper_pk = (SELECT pk FROM papers WHERE id = ?) ORDER BY pk",
            (paper_id,),
        )
        return [(Place(paper_id, Source(row[0], row[1]), *row[2:7]), row[7]) for row in found]

    def values_there(self, name: str, values: Collection[object]) -> frozenset[object]:
        """Which of these values of a key that papers are looked up by any paper or place has."""
        wanted = json.dumps([value for value in values if value is not None])
        found: set[object] = set()
        for place in _KEPT[name] if len(wanted) > 2 else ():
            table, _, column = place.partition(".")
            sql = f"SELECT {column} FROM {table} WHERE {column} IN (SELECT value FROM json_each(?))"
            found.update(row[0] for row in self.rows(sql, (wanted,)))
        return frozenset(found)

    def in_order(self, paper_ids: Sequence[str]) -> list[str]:
        """Those of the papers that are stored, in the order in which they came."""
        found = self.rows(
            "SELECT id FROM papers WHERE id IN (SELECT value FROM json_each(?)) ORDER BY pk",
            (json.dumps(paper_ids),),
        )
        return [row[0] for row in found]

    def write_place(self, place: Place) -> None:
        """Store one place, or what is new about it; within the caller's transaction."""
        self.run(
            "INSERT INTO sources "
            "(paper_pk, file, position, record_id, doi, arxiv, text_key, run, since) "
            "SELECT pk, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8 FROM papers WHERE id = ?1 "
            "ON CONFLICT (paper_pk, file, position) DO UPDATE SET record_id = excluded.record_id, "
            "doi = excluded.doi, arxiv = excluded.arxiv, text_key = excluded.text_key, "
            "run = excluded.run",
            (
                place.paper_id,
                place.source.file,
                place.source.position,
                place.record_id,
                place.doi,
                place.arxiv,
                place.text_key,
                place.run,
            ),
        )

    def next_run(self) -> int:
        """The number of a new ingest, counted from 1."""
        return int(
            self.rows(
                "INSERT INTO meta VALUES ('run', 1) "
                "ON CONFLICT (key) DO UPDATE SET value = value + 1 RETURNING value"
            )[0][0]
        )

    def file(self, name: str) -> FileRead | None:
        """The file that is shown under this name."""
        return self._file("name = ?", name)

    def file_at(self, path: Path) -> FileRead | None:
        """The file that was read from this resolved path."""
        return self._file("path = ?", _as_text(path))

    def name_at(self, path: Path) -> str:
        """What the file at a resolved path is called; nothing where none was read there."""
        found = self.file_at(path) if is_current(self) else None
        return found.name if found else ""

    def file_names(self) -> list[str]:
        """Every name under which some paper was read, ascending."""
        return [row[0] for row in self.rows("SELECT DISTINCT file FROM sources ORDER BY file")]

    def files_below(self, folder: Path) -> list[FileRead]:
        """The files that were read from somewhere below a resolved folder."""
        beginning = f"{_as_text(folder).rstrip('/')}/"
        found = self.rows(f"{_FILE} WHERE substr(path, 1, ?) = ?", (len(beginning), beginning))
        return [FileRead(*row) for row in found]

    def write_file(self, file: FileRead) -> None:
        """Remember a file; within the caller's transaction, or as one of its own."""
        self.run(
            "INSERT OR REPLACE INTO files "
            "(name, path, content_hash, reading, run, places, report) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                file.name,
                _as_text(file.path) if file.path else file.path,
                file.content_hash,
                file.reading,
                file.run,
                file.places,
                file.report,
            ),
        )

    def live_places(self, name: str, run: int) -> int:
        """How many places of a file were read in this run."""
        return int(
            self.rows("SELECT count(*) FROM sources WHERE file = ? AND run = ?", (name, run))[0][0]
        )

    def finish_file(self, file: FileRead) -> None:
        """Remember a file that was read to its end, and forget what is no longer in it.

        A paper that has left the file keeps its last place there if it has no other, so that every
        paper can say where it came from.
        """
        with self.transaction():
            places = self.live_places(file.name, file.run)
            self.write_file(replace(file, places=places))
            self._settle(file.name)

    def settle(self, name: str) -> None:
        """Forget the places that have left a file, where their paper has another."""
        if self.rows(f"SELECT 1 FROM sources WHERE {_STALE} LIMIT 1", (name,)):
            with self.transaction():
                self._settle(name)

    def left(self, name: str) -> list[str]:
        """IDs of the papers whose every place is one that has left the file of this name."""
        found = self.rows(
            f"SELECT DISTINCT papers.id FROM sources JOIN papers ON papers.pk = paper_pk "
            f"WHERE {_STALE} AND NOT EXISTS (SELECT 1 FROM sources AS other "
            "WHERE other.paper_pk = sources.paper_pk AND (other.file <> sources.file "
            "OR other.run = (SELECT run FROM files WHERE name = ?1))) ORDER BY papers.id",
            (name,),
        )
        return [row[0] for row in found]

    def only_in(self, name: str) -> list[str]:
        """IDs of the papers that no other file has."""
        found = self.rows(
            "SELECT DISTINCT papers.id FROM sources JOIN papers ON papers.pk = paper_pk "
            "WHERE file = ?1 AND NOT EXISTS (SELECT 1 FROM sources AS other "
            "WHERE other.paper_pk = sources.paper_pk AND other.file <> ?1) ORDER BY papers.id",
            (name,),
        )
        return [row[0] for row in found]

    def count_in(self, name: str) -> int:
        """How many papers a file has."""
        sql = "SELECT count(DISTINCT paper_pk) FROM sources WHERE file = ?"
        return int(self.rows(sql, (name,))[0][0])

    def forget_file(self, name: str) -> None:
        """Drop a file and its places; within the caller's transaction."""
        self.run("DELETE FROM sources WHERE file = ?", (name,))
        self.run("DELETE FROM files WHERE name = ?", (name,))

    def _file(self, condition: str, value: str) -> FileRead | None:
        found = self.rows(f"{_FILE} WHERE {condition}", (value,))
        return FileRead(*found[0]) if found else None

    def _settle(self, name: str) -> None:
        stale: dict[int, list[int]] = {}
        sql = f"SELECT paper_pk, pk FROM sources WHERE {_STALE} ORDER BY pk"
        for paper_pk, pk in self.rows(sql, (name,)):
            stale.setdefault(paper_pk, []).append(pk)
        for paper_pk, pks in stale.items():
            self._settle_paper(name, paper_pk, pks)

    def _settle_paper(self, name: str, paper_pk: int, stale: Sequence[int]) -> None:
        fresh = [
            row[0]
            for row in self.rows(
                "SELECT pk FROM sources WHERE paper_pk = ?2 AND file = ?1 "
                "AND run = (SELECT run FROM files WHERE name = ?1) ORDER BY pk",
                (name, paper_pk),
            )
        ]
        if not fresh:
            self.run_many(
                "DELETE FROM sources WHERE pk = ?1 AND EXISTS (SELECT 1 FROM sources AS other "
                "WHERE other.paper_pk = sources.paper_pk AND other.file <> sources.file)",
                ((pk,) for pk in stale),
            )
            return
        self.run_many("DELETE FROM sources WHERE pk = ?", ((pk,) for pk in stale))
        # A moved record's new row takes over the old one's rank among the paper's places.
        ranks = sorted([*stale, *fresh])
        self.run_many(
            "UPDATE sources SET pk = ? WHERE pk = ?",
            zip(ranks, fresh, strict=False),
        )


def _as_text(path: Path | str) -> str:
    """A path as SQLite keeps it: a name need not be valid Unicode."""
    return str(path).encode("utf-8", "backslashreplace").decode()
