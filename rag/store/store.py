"""Papers kept, found by meaning and by words: one directory, one writer, any number of readers."""

from __future__ import annotations

import difflib
import shutil
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from rag.chunk import CHUNKING_VERSION
from rag.embed import Embedder
from rag.errors import RagError, StoreError, UsageError
from rag.lexical import LexicalIndex, searchable
from rag.store.catalog import Catalog
from rag.store.directory import (
    BM25,
    CHROMA,
    check_space,
    not_writable,
    open_to_read,
    open_to_write,
    write_manifest,
    writer_lock,
)
from rag.store.schema import Entry, Fingerprint, Place
from rag.store.vectors import (
    EXACT_LIMIT,
    ChromaVectors,
    ExactVectors,
    chroma_exists,
    nearest_among,
)
from rag.text import CLEANING_VERSION
from rag.types import Chunk, Paper

# Chunks that Chroma may lag behind during a long run before it is brought up to date.
CHROMA_BACKLOG = 20_000

# A reader that finds the lexical index out of date (a writer is at work, or was killed) makes one
# in memory up to this many papers, some 5 s; beyond, it searches words in the last finished one.
LEXICAL_IN_MEMORY = 20_000


def fingerprint_of(embedder: Embedder) -> Fingerprint:
    """What a store built by this version with `embedder` carries."""
    return Fingerprint(embedder.identity, str(CHUNKING_VERSION), str(CLEANING_VERSION))


class Store:
    """An open store; use it as a context manager."""

    def __init__(self, path: Path, catalog: Catalog, held: ExitStack | None = None) -> None:
        self.path = path
        self.catalog = catalog
        self._held = held
        self._vectors: ExactVectors | ChromaVectors | None = None
        self._lexical: tuple[str, LexicalIndex] | None = None
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
        if isinstance(self._vectors, ChromaVectors):
            self._vectors.close()
        self._vectors = None
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
        if among is not None:
            return nearest_among(self.catalog, among, vector, papers)
        with self._loading:
            index = self._vector_index()
        return index.nearest(vector, papers)

    def lexical(self) -> LexicalIndex:
        """The BM25 index of the papers as they are now."""
        state = self.catalog.state
        with self._loading:
            if self._lexical is None or self._lexical[0] != state:
                self._lexical = (state, self._load_lexical(state))
            return self._lexical[1]

    def upsert(self, entries: Sequence[Entry], places: Sequence[Place] = ()) -> None:
        """Store papers, and where papers were read, all or nothing."""
        check_space(self.path)
        for entry in entries:
            if entry.vectors is not None and len(entry.vectors):
                self._check_dimension(entry.vectors[0])
        self.catalog.write(entries, places)
        if self.catalog.not_in_chroma() >= CHROMA_BACKLOG:
            self._finish_chroma()

    def settle_sources(self, file: str, positions: Mapping[str, Sequence[int]]) -> None:
        """Make the places in `file`, read to its end, exactly `positions`, by paper ID."""
        self.catalog.settle(file, positions)

    def finish(self) -> None:
        """Make Chroma and BM25 match the papers: all that an interrupted write left undone."""
        self._finish_chroma()
        try:
            self._finish_lexical()
        except OSError as error:
            raise StoreError(not_writable(self.path / BM25, error)) from error

    def _finish_chroma(self) -> None:
        directory = self.path / CHROMA
        lost = not chroma_exists(directory)
        if not lost and self.catalog.chroma_is_complete():
            return
        chroma = ChromaVectors(directory, self.catalog, write=True)
        try:
            if lost or not chroma.whole():
                chroma.start_again()
            chroma.complete()
        finally:
            chroma.close()

    def _finish_lexical(self) -> None:
        root, state = self.path / BM25, self.catalog.state
        if not LexicalIndex.is_whole(root / state):
            check_space(self.path)
            beside = root / "unfinished"
            shutil.rmtree(beside, ignore_errors=True)
            self._index_words(beside)
            shutil.rmtree(root / state, ignore_errors=True)
            beside.rename(root / state)
        for other in root.iterdir():
            if other.name != state:
                shutil.rmtree(other, ignore_errors=True)

    def _index_words(self, directory: Path | None) -> LexicalIndex:
        texts = (searchable(paper.title, paper.text) for paper in self.catalog.papers())
        return LexicalIndex.build(self.catalog.ids(), texts, directory)

    def _load_lexical(self, state: str) -> LexicalIndex:
        root = self.path / BM25
        finished = root / state
        try:
            if not finished.is_dir():
                others = [d for d in root.glob("*-*") if d.is_dir()]
                if not others or self.count()[0] <= LEXICAL_IN_MEMORY:
                    return self._index_words(None)
                finished = others[0]
            return LexicalIndex.load(finished)
        except PermissionError as error:
            raise StoreError(
                f"The word index {finished} cannot be read. Check its permissions, or delete "
                f"{root} and run `rag index rebuild`."
            ) from error
        except (OSError, ValueError, KeyError, TypeError, EOFError) as error:
            if self.catalog.state != state:  # a writer has just put a newer one in its place
                return self._index_words(None)
            raise StoreError(
                f"The word index {finished} is damaged. Run `rag index rebuild`: papers and "
                "vectors are kept apart from it, so nothing is embedded again."
            ) from error

    def _vector_index(self) -> ExactVectors | ChromaVectors:
        if isinstance(self._vectors, ChromaVectors) or (
            self._vectors is not None and self._vectors.state == self.catalog.state
        ):
            return self._vectors
        if self.count()[1] <= EXACT_LIMIT or not self.catalog.chroma_was_filled():
            self._vectors = ExactVectors(self.catalog)
        else:
            self._vectors = self._open_chroma()
        return self._vectors

    def _open_chroma(self) -> ChromaVectors:
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
                f"The store at {self.path} was built with {built}; now in use: {fingerprint}. "
                "Their vectors cannot be compared. Go back to the former settings, or run "
                "`rag index rebuild` to make the store anew with the present ones."
            )

    def _check_dimension(self, vector: NDArray[np.float32]) -> None:
        known = self.catalog.meta("dimension")
        if known is None and self._held is not None:
            self.catalog.set_meta("dimension", str(len(vector)))
        elif known is not None and int(known) != len(vector):
            raise StoreError(
                f"The store at {self.path} holds vectors of {known} dimensions, the embedding "
                f"model gave {len(vector)}: it has changed. Run `rag index rebuild`."
            )


def _unknown(paper_id: str, ids: Sequence[str]) -> str:
    close = difflib.get_close_matches(paper_id[:100], ids, n=3, cutoff=0.3)
    advice = f"Closest: {', '.join(close)}." if close else "Run `rag papers` for the list."
    return f"There is no paper {paper_id[:60]!r} in the store. {advice}"
