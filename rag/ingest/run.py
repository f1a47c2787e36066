"""One ingest: file by file, record by record, committed in batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rag.embed import Embedder
from rag.entries import entries
from rag.errors import ReadError
from rag.ingest.files import (
    Given,
    GivenFile,
    find,
    hash_of,
    is_gone,
    name_in,
    reading_with,
    stored_path,
)
from rag.ingest.known import Known, Reading
from rag.ingest.resolve import resolve
from rag.ingest.summary import Conflict, FileReport, IngestSummary, from_text, to_text
from rag.papers import to_paper
from rag.readers import read
from rag.store import Store, fingerprint_of
from rag.store.directory import MANIFEST, exists
from rag.store.schema import Entry, FileRead
from rag.types import Record, Rejected

# Papers a commit: few enough that an interruption costs seconds, enough to hide the commit.
BATCH = 32
# Places of unchanged papers a commit; they need no embedding.
PLACES = 1024

Progress = Callable[[int, int | None], None]


def ingest(  # noqa: PLR0913
    paths: Sequence[Path],
    store_path: Path,
    embedder: Embedder,
    on_progress: Progress | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    sync: bool = False,
) -> IngestSummary:
    """Take every record of `paths` (files, folders, "-") into the store at `store_path`.

    `on_progress(done, total)` counts records; the total is None, since files are read as a stream.
    A path or record that cannot be used is reported in the summary, and the rest goes on. A file
    that is unchanged, and whose papers are all there, is not read again. `columns` says what a
    source calls a field: {"abstract": "Summary"}. With `sync`, papers are removed that only a file
    had which no longer lists them, or which is gone from a given folder; a file that was not read
    without any error removes nothing.

    Raises:
        StoreError: the store cannot be written, is in use, or was built by something else.
        ModelError, EndpointError: a text could not be embedded; what was committed stays.
    """
    given = find(paths)
    missing = len(paths) - len(given.behind)
    if not given.files and not exists(store_path / MANIFEST):
        return IngestSummary(0, 0, 0, 0, tuple(given.rejected), 0, 0, missing)
    with Store.open(store_path, fingerprint_of(embedder), write=True) as store:
        run = _Run(store, embedder, given.rejected, on_progress, columns or {})
        useful = {file.path for file in given.files if run.take_file(file)}
        run.finish(given, sync=sync)
        return run.summary(missing + sum(not useful & found for found in given.behind))


class _Run:
    """What is waiting to be committed, and what became of every record so far."""

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        rejected: Sequence[Rejected],
        on_progress: Progress | None,
        columns: Mapping[str, str],
    ) -> None:
        self._store = store
        self._catalog = store.catalog
        self._embedder = embedder
        self._on_progress = on_progress
        self._columns = columns
        self._reading = reading_with(columns)
        self._known = Known(store.catalog, store.catalog.next_run())
        self._counts: Counter[str] = Counter()
        self._rejected = list(rejected)
        self._conflicts: list[Conflict] = []
        self._notes: list[str] = []
        self._done = 0
        self._waiting: list[FileRead] = []
        # Names of the files that were read to their end, those without an error, and none at all.
        self._read: list[str] = []
        self._sound: list[str] = []

    def take_file(self, file: GivenFile) -> bool:
        """Take every record of one file; whether any is a paper."""
        name = name_in(self._catalog, file)
        content = hash_of(file)
        before = self._catalog.file(name)
        if before is not None and self._is_unchanged(before, content):
            return self._repeat(before)
        rejected, conflicts = len(self._rejected), len(self._conflicts)
        path = stored_path(file)
        taken, exported, error = self._take_records(file.path, name, path, before)
        if error is not None:
            self._rejected.append(Rejected(name, 0, error))
            return False
        if taken or before is not None:
            report = FileReport(taken, self._rejected[rejected:], self._conflicts[conflicts:])
            text = to_text(report)
            digest = content if text and not exported else ""
            self._waiting.append(
                FileRead(name, path, digest, self._reading, self._known.run, report=text)
            )
        self._note_file(name, sound=len(self._rejected) == rejected and path is not None)
        return taken > 0

    def finish(self, given: Given, *, sync: bool) -> None:
        """Commit the rest, and with `sync` remove what has left."""
        self._commit()
        for name in self._read:
            # Again, as what left one file may have been read from another since.
            self._catalog.settle(name)
        if not sync:
            return
        self._counts["removed"] += len(self._catalog.remove_left(self._sound))
        for folder in given.folders:
            for file in self._catalog.files_below(folder):
                if file.path is not None and is_gone(Path(file.path)):
                    self._counts["removed"] += len(self._catalog.remove_source(file.name))
        for name in sorted(set(self._read) - set(self._sound)):
            if left := self._catalog.left(name):
                self._notes.append(
                    f"{name} no longer lists {len(left)} papers, but has records that were "
                    "rejected: none was removed. Mend the file, or use `rag remove ID...`."
                )

    def summary(self, unreadable: int) -> IngestSummary:
        """The outcome, once everything is committed."""
        counts = self._counts
        return IngestSummary(
            counts["added"],
            counts["updated"],
            counts["unchanged"],
            counts["duplicates"],
            tuple(self._rejected),
            *self._store.count(),
            unreadable,
            counts["removed"],
            tuple(self._conflicts),
            tuple(self._notes),
        )

    def _is_unchanged(self, before: FileRead, content: str) -> bool:
        """Whether a file is as it was, is read in the same way, and no paper of it is missing."""
        return (
            content != ""
            and (before.content_hash, before.reading) == (content, self._reading)
            and self._catalog.live_places(before.name, before.run) == before.places
        )

    def _repeat(self, before: FileRead) -> bool:
        """Count an unchanged file as it was read before; whether any of it is a paper."""
        report = from_text(before.report, before.name)
        self._rejected += report.rejected
        self._conflicts += [c for c in report.conflicts if self._still_holds(c)]
        self._counts["unchanged"] += report.records
        self._note_file(before.name, sound=not report.rejected)
        self._advance(report.records + len(report.rejected))
        return report.records > 0

    def _still_holds(self, conflict: Conflict) -> bool:
        ids = (conflict.paper_id, conflict.other_id)
        return all(self._known.by_id(paper_id) is not None for paper_id in ids)

    def _note_file(self, name: str, *, sound: bool) -> None:
        self._read.append(name)
        if sound:
            self._sound.append(name)

    def _take_records(
        self, path: Path, name: str, stored: str | None, before: FileRead | None
    ) -> tuple[int, bool, str | None]:
        """How many records are papers, whether an export gave any, and why reading failed."""
        done, taken, exported = self._done, 0, False
        known = before is not None and before.path == stored
        try:
            for record in read(path, name, self._columns):
                if isinstance(record, Record):
                    exported = exported or bool(record.listings)
                    if not known:
                        # Before any place in it is committed.
                        run = before.run if before else 0
                        self._catalog.write_file(FileRead(name, stored, run=run))
                        known = True
                taken += self._take(record)
        except ReadError as error:
            return taken, exported, str(error)
        if self._done == done:
            self._rejected.append(Rejected(name, 0, "No record was found in it."))
        return taken, exported, None

    def _take(self, record: Record | Rejected) -> bool:
        paper = to_paper(record) if isinstance(record, Record) else record
        if isinstance(paper, Rejected):
            self._rejected.append(paper)
        elif isinstance(record, Record):
            counted, conflict = resolve(Reading(record, paper), self._known)
            self._counts[counted] += 1
            if conflict is not None:
                self._conflicts.append(conflict)
        if len(self._known.staged) >= BATCH or len(self._known.places) >= PLACES:
            self._commit()
        self._advance(1)
        return not isinstance(paper, Rejected)

    def _advance(self, records: int) -> None:
        self._done += records
        if self._on_progress is not None:
            self._on_progress(self._done, None)

    def _commit(self) -> None:
        """Embed and store what is waiting."""
        staged = self._known.staged.values()
        embedded = entries([s.paper for s in staged if s.embed], self._embedder)
        kept = [Entry(s.paper, s.content_hash) for s in staged if not s.embed]
        if embedded or kept or self._known.places:
            self._store.upsert([*embedded, *kept], self._known.places)
        for file in self._waiting:
            self._catalog.finish_file(file)
        self._known.clear()
        self._waiting.clear()
