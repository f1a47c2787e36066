"""The BM25 index of a store: searched by many, brought up to the papers by one.

Its ranking is a function of the papers alone: however they came, changed and went, it is that of an
index made of them at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rag.lexical.file import Block, IndexFile
from rag.lexical.scoring import GONE, best, bm25
from rag.lexical.words import tokens
from rag.lexical.writer import Writer, numbers


@dataclass(slots=True)
class _Documents:
    """The documents of one moment. `narrowed` is the last set of IDs that was asked for."""

    writing: str
    blocks: list[Block]
    ids: list[str]
    lengths: NDArray[np.int64]
    present: int
    numbers: dict[str, int] = field(default_factory=dict)
    narrowed: tuple[frozenset[str], NDArray[np.bool_]] | None = None


class LexicalIndex:
    """A BM25 index on disk or in memory; scores are BM25's, higher is better.

    Every method raises DamagedIndexError where it meets bytes that are not as they were written,
    and StoreError where the file cannot be read or written.
    """

    def __init__(self, file: IndexFile) -> None:
        self._file = file
        self._documents: _Documents | None = None

    @classmethod
    def open(cls, path: Path, *, write: bool = False) -> LexicalIndex:
        """The index at `path`; with `write`, by one process at a time, and made where missing.

        Raises:
            FileNotFoundError: there is none.
        """
        index = cls(IndexFile(path, write=write))
        with index._file.reading():
            index._current()
        return index

    @classmethod
    def build(cls, ids: Sequence[str], texts: Iterable[str]) -> LexicalIndex:
        """An index in memory of `texts[i]` under `ids[i]`."""
        index = cls(IndexFile(None))
        index.change(zip(ids, texts, strict=True), (), "")
        return index

    def copy(self) -> LexicalIndex:
        """The same index in memory, where changes leave the file alone."""
        return LexicalIndex(self._file.copy())

    def close(self) -> None:
        """Close the file; safe to call twice."""
        self._file.close()

    @property
    def state(self) -> str:
        """What the last change called the papers; "" in a new index."""
        return self._file.state[0]

    def __len__(self) -> int:
        with self._file.reading():
            return self._current().present

    @property
    def wasteful(self) -> bool:
        """Whether more documents are gone than there are: searches still read their postings."""
        with self._file.reading():
            documents = self._current()
        return len(documents.ids) > 2 * documents.present

    def rank(
        self, query: str, k: int, among: Collection[str] | None = None
    ) -> list[tuple[str, float]]:
        """The `k` best papers that share a word with `query`, best first, ties by ID.

        Only papers `among` these IDs count, where they are given.
        """
        wanted = Counter(tokens(query))
        if not wanted:
            return []
        with self._file.reading():
            documents = self._current()
            postings = self._file.postings(wanted)
        scores = bm25(wanted, postings, documents.lengths)
        if among is not None:
            scores[~_mask(documents, among)] = 0.0
        return best(scores, documents.ids, k)

    def change(self, papers: Iterable[tuple[str, str]], removed: Iterable[str], state: str) -> None:
        """Index papers, (ID, text), that came or changed, and forget `removed`: all or nothing.

        Takes time with the change, not with the index. `state` names what it is an index of now.
        """
        with self._file.writing():
            writer = Writer(self._file)
            for paper_id, text in papers:
                writer.put(paper_id, text)
            for paper_id in removed:
                writer.remove(paper_id)
            writer.flush()
            self._file.set_state(state)

    def match(self, papers: Iterable[tuple[str, str]], state: str) -> None:
        """Make it an index of exactly `papers`, (ID, text): all or nothing.

        Texts that it has already are compared by their digest, not indexed again.
        """
        afresh = self.wasteful
        with self._file.writing():
            if afresh:
                self._file.clear()
            writer, seen = Writer(self._file), set()
            for paper_id, text in papers:
                writer.put(paper_id, text)
                seen.add(paper_id)
            writer.keep(seen)
            writer.flush()
            self._file.set_state(state)

    def check(self) -> None:
        """Read everything once, some seconds for 100,000 papers, and raise where it is damaged."""
        self._file.check()

    def _current(self) -> _Documents:
        """The documents of the moment that is being read; a writer may have been at work."""
        _, writing = self._file.state
        documents = self._documents
        if documents is None or documents.writing != writing:
            documents = self._documents = _loaded(writing, self._file.blocks())
        return documents


def _loaded(writing: str, blocks: list[Block]) -> _Documents:
    held = [block.lengths[: len(block.ids)] for block in blocks]
    lengths = np.concatenate([*held, np.zeros(0, dtype=np.int32)]).astype(np.int64)
    ids = [paper_id for block in blocks for paper_id in block.ids]
    return _Documents(writing, blocks, ids, lengths, int((lengths != GONE).sum()))


def _mask(documents: _Documents, among: Collection[str]) -> NDArray[np.bool_]:
    """Which documents are among these IDs; a set that is asked for again is remembered."""
    last = documents.narrowed
    if last is not None and last[0] is among:
        return last[1]
    if not documents.numbers:
        documents.numbers = numbers(documents.blocks)
    known = documents.numbers
    mask = np.zeros(len(documents.ids), dtype=np.bool_)
    mask[[known[paper_id] for paper_id in among if paper_id in known]] = True
    if isinstance(among, frozenset):
        documents.narrowed = (among, mask)
    return mask
