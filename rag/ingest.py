"""Files into the store: read, recognise what is known, embed what is new, commit in small batches.

A run that is interrupted continues where it stopped when it is started again: every committed
batch is whole, and nothing that was committed is embedded a second time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from rag.embed import Embedder
from rag.entries import entries
from rag.errors import ReadError
from rag.matching import is_update_of, merged
from rag.papers import content_hash, derive_id, to_paper
from rag.readers import find_files, read, resolved
from rag.store import Store, fingerprint_of
from rag.store.directory import MANIFEST, exists
from rag.store.schema import Entry, Place
from rag.types import Paper, Record, Rejected, Source

# Papers a commit: few enough that an interruption costs seconds, enough to hide the commit.
BATCH = 32
# Places of unchanged papers a commit; they need no embedding.
PLACES = 1024

# Characters of a derived ID where no other paper has the same, as in `derive_id`.
SHORTEST_ID = 7

Progress = Callable[[int, int | None], None]


@dataclass(frozen=True, slots=True)
class IngestSummary:
    """What became of every record; each is counted once.

    `duplicates` are records whose abstract another place already has, the first time they are
    seen. `papers` and `chunks` are what the store holds afterwards. `unreadable` counts the given
    paths that could not be read or held no paper; `rejected` says why.
    """

    added: int
    updated: int
    unchanged: int
    duplicates: int
    rejected: tuple[Rejected, ...]
    papers: int
    chunks: int
    unreadable: int


def ingest(
    paths: Sequence[Path],
    store_path: Path,
    embedder: Embedder,
    on_progress: Progress | None = None,
) -> IngestSummary:
    """Take every record of `paths` (files or folders) into the store at `store_path`.

    `on_progress(done, total)` counts records; the total is None, since files are read as a stream.
    A path or record that cannot be used is reported in the summary, and the rest goes on.

    Raises:
        StoreError: the store cannot be written, is in use, or was built by something else.
        ModelError, EndpointError: a text could not be embedded; what was committed stays.
    """
    rejected: list[Rejected] = []
    given, files = _find(paths, rejected)
    missing = len(paths) - len(given)
    if not files and not exists(store_path / MANIFEST):
        return IngestSummary(0, 0, 0, 0, tuple(rejected), 0, 0, missing)
    with Store.open(store_path, fingerprint_of(embedder), write=True) as store:
        run = _Run(store, embedder, rejected, on_progress)
        useful = {file for file, name in files if run.take_file(file, name)}
        run.commit()
        return run.summary(missing + sum(not useful & found for found in given))


def _find(
    paths: Sequence[Path], rejected: list[Rejected]
) -> tuple[list[set[Path]], list[tuple[Path, str]]]:
    """The files behind each path that has any, and all of them, each once, with their names."""
    given: list[set[Path]] = []
    good: list[Path] = []
    for path in paths:
        try:
            given.append({resolved(file) for file, _ in find_files([path])})
            good.append(path)
        except ReadError as error:
            rejected.append(Rejected(_printable(str(path)), 0, str(error)))
    # Together, since names that would meet are told apart.
    named = find_files(good) if good else []
    return given, [(resolved(file), _printable(name)) for file, name in named]


def _printable(name: str) -> str:
    # A file name need not be valid Unicode; what is stored must be.
    return name.encode("utf-8", "backslashreplace").decode()


@dataclass(slots=True)
class _Staged:
    """A paper waiting for the next commit; `embed` is false where its chunks stay as they are."""

    paper: Paper
    content_hash: str
    embed: bool


class _Run:
    """One ingest: what is waiting to be committed, and what became of every record so far."""

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        rejected: list[Rejected],
        on_progress: Progress | None,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._rejected = rejected
        self._on_progress = on_progress
        self._counts: Counter[str] = Counter()
        self._done = 0
        self._staged: dict[str, _Staged] = {}
        self._places: list[Place] = []
        self._read_to_end: dict[str, dict[str, list[int]]] = {}
        # By ID met in this run: the paper that it stands for, and where it was met first.
        self._first_seen: dict[str, tuple[str, Source]] = {}
        self._here: dict[str, list[int]] = {}
        self._before: Mapping[str, int] = {}

    def take_file(self, path: Path, name: str) -> bool:
        """Take every record of one file; whether any is a paper."""
        self._here = {}
        self._before = self._store.catalog.places_in(name)
        done = self._done
        taken = False
        try:
            for record in read(path, name):
                taken |= self._take(record)
        except ReadError as error:
            self._rejected.append(Rejected(name, 0, str(error)))
            return False
        if self._done == done:
            self._rejected.append(Rejected(name, 0, "No record was found in it."))
        self._read_to_end[name] = self._here
        return taken

    def commit(self) -> None:
        """Embed and store what is waiting."""
        embedded = entries([s.paper for s in self._staged.values() if s.embed], self._embedder)
        kept = [Entry(s.paper, s.content_hash) for s in self._staged.values() if not s.embed]
        if embedded or kept or self._places:
            self._store.upsert([*embedded, *kept], self._places)
        for file, positions in self._read_to_end.items():
            self._store.settle_sources(file, positions)
        self._staged.clear()
        self._places.clear()
        self._read_to_end.clear()

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
        )

    def _take(self, record: Record | Rejected) -> bool:
        outcome = self._resolve(record) if isinstance(record, Record) else record
        if isinstance(outcome, Rejected):
            self._rejected.append(outcome)
        else:
            self._counts[outcome] += 1
        if len(self._staged) >= BATCH or len(self._places) >= PLACES:
            self.commit()
        self._done += 1
        if self._on_progress is not None:
            self._on_progress(self._done, None)
        return isinstance(outcome, str)

    def _resolve(self, record: Record) -> str | Rejected:
        """Decide what a record is, and stage what follows from it."""
        paper = to_paper(record)
        if isinstance(paper, Rejected):
            return paper
        digest = content_hash(paper.text)
        known = self._by_content(digest)
        own = _has_own_id(paper)
        taken = self._place_of_other(paper.id, known) if own else None
        if taken is not None:
            return _conflict(paper, taken)
        if known is not None:
            return self._seen_again(known, paper, record)
        stored = self._by_id(paper.id) if own else None
        if stored is not None:
            return self._new_text(stored, paper, record)
        paper = paper if own else self._with_free_id(paper)
        self._stage(paper, digest, embed=True)
        self._note(paper, paper, record)
        return "added"

    def _place_of_other(self, paper_id: str, known: Paper | None) -> Source | None:
        """Where `paper_id` was met for another paper than `known`, the one with the same text.

        Without a known one that is any place in this run; an older paper may be the one updated.
        """
        if paper_id in self._first_seen:
            bearer, place = self._first_seen[paper_id]
            return None if known is not None and known.id == bearer else place
        if known is None or known.id == paper_id:
            return None
        stored = self._by_id(paper_id)
        return stored.sources[0] if stored is not None else None

    def _new_text(self, stored: Paper, paper: Paper, record: Record) -> str | Rejected:
        if not is_update_of(stored, paper):
            return _conflict(paper, stored.sources[0])
        result = merged(stored, paper, leads=True)
        result = replace(result, text=paper.text, original=paper.original)
        self._stage(result, content_hash(paper.text), embed=True)
        self._note(stored, paper, record)
        return "updated"

    def _seen_again(self, known: Paper, paper: Paper, record: Record) -> str:
        file = record.source.file
        nth = len(self._here.get(known.id, ())) + 1
        # The first place of a paper speaks for it; others add what it leaves open. Otherwise two
        # lists with different metadata would overwrite each other at every run.
        leads = known.sources[0].file == file and nth == 1
        result = merged(known, paper, leads=leads)
        changed = result != known
        if changed:
            waiting = self._staged.get(known.id)
            embed = result.title != known.title or (waiting is not None and waiting.embed)
            self._stage(result, content_hash(known.text), embed)
        self._note(known, paper, record)
        if nth > self._before.get(known.id, 0):
            return "duplicates"
        return "updated" if changed else "unchanged"

    def _stage(self, paper: Paper, digest: str, embed: bool) -> None:
        self._staged[paper.id] = _Staged(paper, digest, embed)

    def _note(self, stored: Paper, paper: Paper, record: Record) -> None:
        """Remember where the stored paper was read, and under which ID."""
        own = paper.id if _has_own_id(paper) and paper.id != stored.id else None
        self._here.setdefault(stored.id, []).append(record.source.position)
        for paper_id in {stored.id, own or stored.id}:
            self._first_seen.setdefault(paper_id, (stored.id, record.source))
        if record.source not in stored.sources or own is not None:
            self._places.append(Place(stored.id, record.source, own))

    def _by_id(self, paper_id: str) -> Paper | None:
        waiting = self._staged.get(paper_id)
        return waiting.paper if waiting else self._store.catalog.by_id(paper_id)

    def _by_content(self, digest: str) -> Paper | None:
        for waiting in self._staged.values():
            if waiting.content_hash == digest:
                return waiting.paper
        stored = self._store.catalog.by_content(digest)
        # One that waits with another text no longer has this one.
        return None if stored is None or stored.id in self._staged else stored

    def _with_free_id(self, paper: Paper) -> Paper:
        for length in count(SHORTEST_ID + 1):
            if self._by_id(paper.id) is None:
                break
            paper = replace(paper, id=derive_id(paper.text, length))
        return paper


def _has_own_id(paper: Paper) -> bool:
    return paper.id != derive_id(paper.text)


def _conflict(paper: Paper, other: Source) -> Rejected:
    source = paper.sources[0]
    return Rejected(
        source.file,
        source.position,
        f"ID {paper.id} is already used by {other.file} position {other.position} for a different "
        "abstract; give one of them another ID",
    )
