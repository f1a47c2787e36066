"""One ingest: file by file, record by record; what is read is embedded and stored in batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rag.config import ServerAddress
from rag.embed import Embedder
from rag.entries import Cut, cut, embedded, filled
from rag.errors import ReadError
from rag.ingest.files import (
    Given,
    GivenFile,
    find,
    hash_of,
    is_gone,
    name_in,
    reading_with,
    size_of,
    stored_path,
)
from rag.ingest.known import Known, Layer, Reading
from rag.ingest.pipeline import Pipeline
from rag.ingest.resolve import resolve
from rag.ingest.summary import Conflict, FileReport, IngestSummary, from_text, to_text
from rag.papers import to_paper
from rag.readers import read
from rag.store import Store, fingerprint_of, open_store, store_exists
from rag.store.schema import Entry, FileRead
from rag.types import Record, Rejected

# Papers a commit: few enough that an interruption costs seconds, enough that texts of one length
# are embedded together and that a commit costs next to nothing.
BATCH = 128
# Places of unchanged papers a commit; they need no embedding.
PLACES = 1024
# Records that the catalog is asked about at once.
PAGE = 256

Progress = Callable[[int, int | None], None]


def ingest(  # noqa: PLR0913
    paths: Sequence[Path],
    where: Path | ServerAddress,
    embedder: Embedder,
    on_progress: Progress | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    sync: bool = False,
) -> IngestSummary:
    """Take every record of `paths` (files, folders, "-") into the store at `where`.

    `on_progress(done, total)` counts records that are stored; the total is estimated from the bytes
    that were read of all, or None where these are not known, as of standard input. A path or record
    that cannot be used is reported in the summary, and the rest goes on. A file that is unchanged,
    and whose papers are all there, is not read again. `columns` says what a source calls a field:
    {"abstract": "Summary"}. With `sync`, papers are removed that only a file had which no longer
    lists them, or which is gone from a given folder; a file with a record that could not be read,
    or with no paper any more, removes nothing.

    Raises:
        StoreError: the store cannot be written, is in use, or was built by something else.
        ModelError, EndpointError: a text could not be embedded; what was committed stays.
    """
    given = find(paths)
    missing = len(paths) - len(given.behind)
    if not given.files and not store_exists(where):
        return IngestSummary(0, 0, 0, 0, tuple(given.rejected), 0, 0, missing)
    with open_store(where, fingerprint_of(embedder), write=True) as store:
        run = _Run(store, embedder, given, on_progress, columns or {})
        try:
            useful = {file.path for file in given.files if run.take_file(file)}
            run.finish(given, sync=sync)
        finally:
            run.close()
        return run.summary(missing + sum(not useful & found for found in given.behind))


@dataclass(frozen=True, slots=True)
class _Batch:
    """What is committed at once; `files` end with it, `done` records and `size` bytes were read."""

    layer: Layer
    cuts: Sequence[Cut]
    files: Sequence[FileRead]
    done: int
    size: int


class _Run:
    """What is waiting to be committed, and what became of every record so far."""

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        given: Given,
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
        self._rejected = list(given.rejected)
        self._conflicts: list[Conflict] = []
        self._notes: list[str] = []
        sizes = [size_of(file) for file in given.files]
        self._all_bytes = None if None in sizes else sum(size or 0 for size in sizes)
        self._bytes = 0
        self._done = 0
        self._pipeline = Pipeline(self._embed, self._keep)
        # Layers that are in the catalog, and still looked at.
        self._stored: list[Layer] = []
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
            self._bytes += size_of(file) or 0
            return self._repeat(before)
        rejected, conflicts = len(self._rejected), len(self._conflicts)
        path = stored_path(file)
        taken, exported, error = self._take_records(file.path, name, path, before)
        if error is not None:
            self._rejected.append(Rejected(name, 0, error))
            return False
        report = FileReport(taken, self._rejected[rejected:], self._conflicts[conflicts:])
        if taken or before is not None:
            text = to_text(report)
            digest = content if text and not exported else ""
            self._waiting.append(
                FileRead(name, path, digest, self._reading, self._known.run, report=text)
            )
        self._note_file(name, sound=report.is_sound and path is not None)
        return taken > 0

    def finish(self, given: Given, *, sync: bool) -> None:
        """Commit the rest, and with `sync` remove what has left."""
        self._hand_over()
        while (batch := self._pipeline.land()) is not None:
            self._advance(batch)
        for name in self._read:
            # Again, as what left one file may have been read from another since.
            self._catalog.settle(name)
        if not sync:
            return
        self._counts["removed"] += len(self._catalog.remove_left(self._sound, self._named()))
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

    def _named(self) -> set[str]:
        """IDs of the papers that a file still lists, though without an abstract."""
        ids = {rejected.id for rejected in self._rejected if rejected.id is not None}
        return {paper.id for own in ids for paper in self._known.claimants("id", own)}

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
        self._note_file(before.name, sound=report.is_sound)
        self._done += report.records + len(report.rejected)
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
            for page in _pages(read(path, name, self._columns, self._count_bytes)):
                records = [record for record in page if isinstance(record, Record)]
                exported = exported or any(record.listings for record in records)
                if records and not known:
                    # Before any place in it is committed.
                    run = before.run if before else 0
                    self._catalog.write_file(FileRead(name, stored, run=run))
                    known = True
                taken += self._take(page)
        except ReadError as error:
            return taken, exported, str(error)
        if self._done == done:
            self._rejected.append(Rejected(name, 0, "No record was found in it."))
        return taken, exported, None

    def _take(self, page: Sequence[Record | Rejected]) -> int:
        """Decide what records are; how many are papers."""
        taken = [_reading(record) if isinstance(record, Record) else record for record in page]
        readings = [reading for reading in taken if isinstance(reading, Reading)]
        self._known.look_ahead(readings, self._stored)
        self._stored.clear()
        for reading in taken:
            self._done += 1
            if isinstance(reading, Rejected):
                self._rejected.append(reading)
                continue
            counted, conflict = resolve(reading, self._known)
            self._counts[counted] += 1
            if conflict is not None:
                self._conflicts.append(conflict)
            layer = self._known.waiting
            if len(layer.staged) >= BATCH or len(layer.places) >= PLACES:
                self._hand_over()
        return len(readings)

    def _hand_over(self) -> None:
        """Have embedded and stored what is waiting."""
        layer = self._known.hand_over()
        cuts = [cut(s.paper, self._embedder) for s in layer.staged.values() if s.embed]
        batch = _Batch(layer, cuts, self._waiting, self._done, self._bytes)
        self._waiting = []
        landed = self._pipeline.put(batch)
        if landed is not None:
            self._advance(landed)

    def _embed(self, batch: _Batch, goes_on: Callable[[], bool]) -> list[Entry] | None:
        """In a thread of its own: entries with vectors."""
        vectors = embedded(batch.cuts, self._embedder, {}, goes_on)
        return filled(batch.cuts, vectors) if goes_on() else None

    def _keep(self, batch: _Batch, made: Sequence[Entry]) -> None:
        """In a thread of its own: commit a batch."""
        staged = batch.layer.staged.values()
        kept = [Entry(s.paper, s.content_hash) for s in staged if not s.embed]
        if made or kept or batch.layer.places:
            self._store.upsert([*made, *kept], batch.layer.places)
        for file in batch.files:
            self._catalog.finish_file(file)

    def _advance(self, batch: _Batch) -> None:
        """Note that a batch is stored."""
        self._stored.append(batch.layer)
        if self._on_progress is None or not batch.done:
            return
        total = None
        if self._all_bytes is not None and batch.size:
            total = max(batch.done, round(batch.done * self._all_bytes / batch.size))
        self._on_progress(batch.done, total)

    def _count_bytes(self, more: int) -> None:
        self._bytes += more

    def close(self) -> None:
        """Stop the threads, whatever is on its way."""
        self._pipeline.close()


def _reading(record: Record) -> Reading | Rejected:
    paper = to_paper(record)
    return paper if isinstance(paper, Rejected) else Reading(record, paper)


def _pages(records: Iterable[Record | Rejected]) -> Iterator[list[Record | Rejected]]:
    """Records by the `PAGE`; what came before an error comes before it."""
    page: list[Record | Rejected] = []
    try:
        for record in records:
            page.append(record)
            if len(page) == PAGE:
                yield page
                page = []
    except ReadError:
        yield page
        raise
    yield page
