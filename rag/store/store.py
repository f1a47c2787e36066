"""Papers kept, found by meaning and by words: one directory, one writer, any number of readers."""

from __future__ import annotations

import difflib
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rag.chunk import CHUNKING_VERSION
from rag.config import ServerAddress
from rag.embed import Embedder
from rag.errors import RagError, StoreError, UsageError
from rag.lexical import LexicalIndex
from rag.store.catalog import Catalog
from rag.store.changes import Changes
from rag.store.directory import (
    CHROMA,
    VECTORS,
    check_space,
    exists,
    not_writable,
    open_to_read,
    open_to_write,
    write_manifest,
    writer_lock,
)
from rag.store.exact import ExactVectors, nearest_among
from rag.store.filling import ENOUGH, Filler, fill
from rag.store.mapped import MappedVectors, complete, discard
from rag.store.schema import Entry, Fingerprint, Place
from rag.store.vectors import EXACT_LIMIT, ChromaVectors
from rag.store.words import finish_words, open_words
from rag.text import CLEANING_VERSION
from rag.types import Chunk, Paper

# Papers that BM25 may lag behind during a long run before it is brought up to date.
WORDS_BACKLOG = 8_000

# Up to so many papers are read from the catalog, 5 ms, where otherwise all vectors must be opened.
FEW = 200


def fingerprint_of(embedder: Embedder) -> Fingerprint:
    """What a store built by this version with `embedder` carries."""
    return Fingerprint(embedder.identity, str(CHUNKING_VERSION), str(CLEANING_VERSION))


class Approximate(Protocol):
    """The approximate search of a large store."""

    def nearest(self, vector: NDArray[np.float32], papers: int) -> list[tuple[str, float]]:
        """The papers whose best chunk is closest to a unit vector: (ID, cosine), best first."""
        ...

    def close(self) -> None:
        """Release what it holds."""
        ...


class Store:
    """An open store; use it as a context manager. `where` is what its user calls it."""

    def __init__(self, path: Path, catalog: Catalog, held: ExitStack | None = None) -> None:
        self.path = path
        self.where: Path | ServerAddress = path
        self.catalog = catalog
        self._held = held
        self._chroma: Approximate | None = None
        self._exact: ExactVectors | None = None
        self._small: tuple[str, bool] | None = None
        self._lexical: tuple[str, LexicalIndex] | None = None
        self._changes: Changes | None = None
        self._filler = Filler(path)
        self._unindexed = 0
        # Of several threads that ask first, one loads an index and the others wait for it.
        self._loading = threading.Lock()

    @classmethod
    def open(cls, path: Path, fingerprint: Fingerprint | None, *, write: bool = False) -> Store:
        """Open the store at `path`; with `write`, alone, and made where there is none.

        Without a fingerprint nothing is compared: enough to list papers, not to search by vectors.

        Raises:
            StoreError: no store, built by something else, in use, damaged, or not writable.
            ConfigError: `path` is the address of a server.
        """
        if not write:
            store = cls(path, open_to_read(path))
            store.require(fingerprint)
            return store
        if fingerprint is None:
            raise ValueError("writing needs the fingerprint of what embeds")
        with ExitStack() as held:
            held.enter_context(writer_lock(path))
            store = cls(path, open_to_write(path, fingerprint), held)
            held.callback(store.catalog.close)
            store.require(fingerprint)
            write_manifest(path, fingerprint)
            store._changes = Changes(store.catalog)
            store._held = held.pop_all()
            return store

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # After Ctrl-C or a failing disk, leave at once: the next writer finishes what is missing.
        sound = isinstance(error, RagError) and not isinstance(error, StoreError)
        try:
            if self._held is not None and (error is None or sound):
                self.finish()
        finally:
            self.close()

    def close(self) -> None:
        """Release every file and the lock."""
        self._filler.stop()
        if self._chroma is not None:
            self._chroma.close()
        if self._lexical is not None:
            self._lexical[1].close()
        self._chroma = self._exact = self._lexical = None
        self.catalog.close()
        if self._held is not None:
            self._held.close()

    @property
    def fingerprint(self) -> Fingerprint:
        """What built this store."""
        return self.catalog.fingerprint

    def corpus_digest(self) -> str:
        """What the papers say, as a digest: the same papers in another directory have the same."""
        return self.catalog.content_digest()

    def count(self) -> tuple[int, int]:
        """How many papers and how many chunks."""
        return self.catalog.count()

    def papers(self) -> Iterator[Paper]:
        """Every paper, by ID."""
        return self.catalog.papers()

    def paper(self, paper_id: str) -> Paper:
        """The paper of this ID, of this ID in another case, or listed by a source under this ID.

        Raises:
            UsageError: there is none; the message names the closest.
        """
        found = self.catalog.by_id(paper_id) or self.catalog.by_record_id(paper_id)
        if found is not None:
            return found
        ids = self.catalog.ids()
        same = [known for known in ids if known.casefold() == paper_id.casefold()]
        found = self.catalog.by_id(same[0]) if len(same) == 1 else None
        if found is None:
            raise UsageError(_unknown(paper_id, ids))
        return found

    def chunks(self, paper_id: str) -> tuple[tuple[Chunk, ...], NDArray[np.float32]]:
        """A paper's chunks and their unit vectors, shape (chunks, d)."""
        return self.catalog.chunks(paper_id)

    def nearest(
        self, vector: NDArray[np.float32], papers: int, among: Collection[str] | None = None
    ) -> list[tuple[str, float]]:
        """The `papers` whose best chunk is closest to a unit vector: (ID, cosine), best first.

        Ties go by ID. Exact up to `EXACT_LIMIT` chunks and `among` given IDs, else through Chroma.
        """
        if not np.isfinite(vector).all():
            raise UsageError("The question's vector is not a number. Ask in other words.")
        self._check_dimension(vector)
        if among is None and not self._few_chunks():
            return self.approximate().nearest(vector, papers)
        with self._loading:
            exact = self._exact_now()
            if exact is None and (among is None or len(among) > FEW):
                exact = self._exact = self._open_exact()
        if exact is None:
            return nearest_among(self.catalog, among or (), vector, papers)
        return exact.nearest(vector, papers, among)

    def approximate(self) -> Approximate:
        """The search that a large store uses.

        Raises:
            StoreError: it has lost vectors.
        """
        with self._loading:
            self._chroma = self._chroma or self._open_chroma()
            return self._chroma

    def lexical(self) -> LexicalIndex:
        """The BM25 index of the papers as they are now."""
        state = self.catalog.state
        with self._loading:
            if self._lexical is None or self._lexical[0] != state:
                self._lexical = (state, self._load_lexical())
            return self._lexical[1]

    def upsert(self, entries: Sequence[Entry], places: Sequence[Place] = ()) -> None:
        """Store papers, and where papers were read, all or nothing."""
        check_space(self.path)
        for entry in entries:
            if entry.vectors is not None and len(entry.vectors):
                self._check_dimension(entry.vectors[0])
        self.catalog.write(entries, places)
        self._unindexed += len(entries)
        self._keep_up()

    def finish(self) -> None:
        """Make all that is searched match the papers: what an interrupted write left undone."""
        self._filler.ask_to_finish()
        self._finish_words()
        self._finish_vectors()
        self._filler.wait()
        self._finish_chroma()

    def _keep_up(self) -> None:
        if self.catalog.lacks_in_chroma(ENOUGH):
            self._filler.start()
        if self._unindexed >= WORDS_BACKLOG:
            self._finish_words()

    def _finish_chroma(self) -> None:
        fill(self.path, self.catalog)

    def _finish_words(self) -> None:
        try:
            finish_words(self.path, self.catalog, self._changes)
        except OSError as error:
            raise StoreError(not_writable(self.path, error)) from error
        self._unindexed = 0

    def _finish_vectors(self) -> None:
        try:
            if self.count()[1] > EXACT_LIMIT:
                complete(self.path / VECTORS, self.catalog)
            else:
                discard(self.path / VECTORS)
        except OSError as error:
            raise StoreError(not_writable(self.path, error)) from error

    def _load_lexical(self) -> LexicalIndex:
        return open_words(self.path, self.catalog)

    def _few_chunks(self) -> bool:
        # Counting 350,000 takes 10 ms; a store that has Chroma open stays with it.
        state = self.catalog.state
        if self._small is None or self._small[0] != state:
            few = self.count()[1] <= EXACT_LIMIT or not self.catalog.chroma_was_filled()
            self._small = (state, few and self._chroma is None)
        return self._small[1]

    def _exact_now(self) -> ExactVectors | None:
        fresh = self._exact is not None and self._exact.state == self.catalog.state
        return self._exact if fresh else None

    def _open_exact(self) -> ExactVectors:
        directory = self.path / VECTORS
        mapped = MappedVectors(directory, self.catalog) if exists(directory) else None
        return ExactVectors(self.catalog, mapped)

    def _open_chroma(self) -> Approximate:
        chroma = ChromaVectors(self.path / CHROMA, self.catalog)
        if not chroma.whole():
            chroma.close()
            raise StoreError(
                f"The vector index {self.path / CHROMA} has lost vectors. Run `rag index rebuild`: "
                "they are kept apart from it, so nothing is embedded again."
            )
        return chroma

    def require(self, fingerprint: Fingerprint | None) -> None:
        """Make sure that `fingerprint` built this store; else close it and raise StoreError."""
        built = self.catalog.fingerprint
        if fingerprint is not None and fingerprint != built:
            self.close()
            raise StoreError(
                f"The store at {self.where} was built with {built}; now in use: {fingerprint}. "
                "Their vectors cannot be compared. Go back to the former settings, or run "
                "`rag index rebuild` to make the store anew with the present ones."
            )

    def _check_dimension(self, vector: NDArray[np.float32]) -> None:
        known = self.catalog.meta("dimension")
        if known is None and self._held is not None:
            self.catalog.set_meta("dimension", str(len(vector)))
        elif known is not None and int(known) != len(vector):
            raise StoreError(
                f"The store at {self.where} holds vectors of {known} dimensions, the embedding "
                f"model gave {len(vector)}: it has changed. Run `rag index rebuild`."
            )


def _unknown(paper_id: str, ids: Sequence[str]) -> str:
    close = difflib.get_close_matches(paper_id[:100], ids, n=3, cutoff=0.3)
    advice = f"Closest: {', '.join(close)}." if close else "Run `rag papers` for the list."
    return f"There is no paper {paper_id[:60]!r} in the store. {advice}"
