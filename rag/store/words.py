"""The lexical index of a store: brought up to the papers by its writer, opened by its readers."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from rag.lexical import DamagedIndexError, LexicalIndex, searchable
from rag.store.catalog import Catalog
from rag.store.changes import Changes
from rag.store.directory import BM25, WORDS, check_space

# A reader that finds the lexical index out of date (a writer is at work, or was killed) makes one
# in memory up to this many papers, some 5 s; beyond, it searches words in the last finished one.
IN_MEMORY = 20_000


def open_words(store: Path, catalog: Catalog) -> LexicalIndex:
    """The index of the papers as they are now, or of the last finished one of a large store.

    Raises:
        DamagedIndexError: the file is damaged, or of another version.
        StoreError: it cannot be read.
    """
    state = catalog.state
    try:
        index = LexicalIndex.open(store / BM25 / WORDS)
        if index.state == state or catalog.count()[0] > IN_MEMORY:
            return index
        with closing(index):
            copy = index.copy()
    except FileNotFoundError:
        copy = LexicalIndex.build([], [])
    copy.match(_texts(catalog), state)
    return copy


def finish_words(store: Path, catalog: Catalog, changes: Changes | None) -> None:
    """Make the index match the papers, and anew where it is damaged.

    It takes time with what `changes` tell, where the index knows all that was before them.

    Raises:
        StoreError, OSError: it cannot be written.
    """
    root = store / BM25
    root.mkdir(parents=True, exist_ok=True)
    try:
        _bring_up(root / WORDS, catalog, changes)
    except DamagedIndexError:
        shutil.rmtree(root)
        root.mkdir()
        _bring_up(root / WORDS, catalog, changes)
    for other in root.iterdir():
        if not other.name.startswith(WORDS):  # an earlier version's
            shutil.rmtree(other, ignore_errors=True)


def _bring_up(file: Path, catalog: Catalog, changes: Changes | None) -> None:
    state = catalog.state
    with closing(LexicalIndex.open(file, write=True)) as index:
        if index.state != state:
            check_space(file.parent)
            if changes is None or index.state != changes.since or index.wasteful:
                index.match(_texts(catalog), state)
            else:
                found = ((i, searchable(title, text)) for i, title, text in changes.there())
                index.change(found, changes.gone(), state)
    if changes is not None:
        changes.forget(state)


def _texts(catalog: Catalog) -> Iterator[tuple[str, str]]:
    for paper_id, title, text in catalog.stream("SELECT id, title, text FROM papers"):
        yield paper_id, searchable(title, text)
