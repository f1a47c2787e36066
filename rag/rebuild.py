"""A store made anew from the papers it holds: after damage, or for another model or version."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rag.chunk import embedding_text
from rag.config import ServerAddress
from rag.embed import Embedder
from rag.entries import entries
from rag.ingest import BATCH, Progress
from rag.papers import to_paper
from rag.store import Store, fingerprint_of, open_store
from rag.store.catalog import Catalog
from rag.store.database import DamagedError
from rag.store.directory import (
    BM25,
    CATALOG,
    CHROMA,
    VECTORS,
    check_space,
    require_rebuildable,
    write_manifest,
    writer_lock,
)
from rag.store.filling import chroma_lock
from rag.store.schema import Entry, Fingerprint
from rag.store.server.rewriting import rewriting
from rag.types import Paper, Record, Rejected

# Where the new catalog grows; a rebuild that was interrupted goes on from it.
BESIDE = "rebuild.sqlite"


@dataclass(frozen=True, slots=True)
class RebuildSummary:
    """What the store holds now, and how many of its papers had to be embedded again."""

    papers: int
    chunks: int
    embedded: int


def rebuild(
    where: Path | ServerAddress, embedder: Embedder, on_progress: Progress | None = None
) -> RebuildSummary:
    """Clean, cut and embed every paper again as this version and `embedder` do it.

    IDs, titles given by a source and places stay. Vectors of texts that come out the same, by the
    same model, are kept. The new papers replace the old ones at the end in one transaction, so
    that a failure or a kill leaves the old store whole.

    Raises:
        StoreError: no store, its papers are damaged, another process writes, or the disk is full.
        ModelError, EndpointError: a text could not be embedded.
    """
    if isinstance(where, ServerAddress):
        return _rebuild_on_server(where, embedder, on_progress)
    return _rebuild_directory(where, embedder, on_progress)


def _rebuild_directory(
    path: Path, embedder: Embedder, on_progress: Progress | None
) -> RebuildSummary:
    require_rebuildable(path)
    fingerprint = fingerprint_of(embedder)
    with writer_lock(path):
        check_space(path)
        with closing(Catalog.open(path / CATALOG, write=True)) as old:
            embedded = _grow(path / BESIDE, fingerprint, old, embedder, on_progress)
            old.replace_with(path / BESIDE)
        _discard(path / BESIDE)
        write_manifest(path, fingerprint)
        with chroma_lock(path):
            for derived in (CHROMA, BM25, VECTORS):
                _remove(path / derived)
        with closing(Store(path, Catalog.open(path / CATALOG, write=True))) as store:
            store.finish()
            papers, chunks = store.count()
    return RebuildSummary(papers, chunks, embedded)


def _rebuild_on_server(
    address: ServerAddress, embedder: Embedder, on_progress: Progress | None
) -> RebuildSummary:
    """As in a directory, from this machine's copy; then everything goes to the server again."""
    fingerprint = fingerprint_of(embedder)
    with rewriting(address) as present:
        beside = present.path / BESIDE
        with closing(Catalog.open(present.path / CATALOG, write=True)) as old:
            embedded = _grow(beside, fingerprint, old, embedder, on_progress)
        present.publish(beside, fingerprint)
    with open_store(address, fingerprint) as store:
        return RebuildSummary(*store.count(), embedded)


def _grow(
    beside: Path,
    fingerprint: Fingerprint,
    old: Catalog,
    embedder: Embedder,
    on_progress: Progress | None,
) -> int:
    """Fill the catalog at `beside`, from the start where an interrupted one is damaged."""
    try:
        with closing(_begin(beside, fingerprint)) as new:
            return _fill(new, old, embedder, on_progress)
    except DamagedError as error:
        if error.path != beside:
            raise
    _discard(beside)
    with closing(_begin(beside, fingerprint)) as new:
        return _fill(new, old, embedder, on_progress)


def _remove(derived: Path) -> None:
    if derived.is_dir() and not derived.is_symlink():
        shutil.rmtree(derived, ignore_errors=True)
    else:
        derived.unlink(missing_ok=True)


def _begin(beside: Path, fingerprint: Fingerprint) -> Catalog:
    new = Catalog.open_or_create(beside, fingerprint)
    if new.fingerprint == fingerprint:
        return new
    new.close()
    _discard(beside)
    return Catalog.open_or_create(beside, fingerprint)


def _discard(catalog: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        catalog.with_name(catalog.name + suffix).unlink(missing_ok=True)


def _fill(new: Catalog, old: Catalog, embedder: Embedder, on_progress: Progress | None) -> int:
    """Write every paper of `old` to `new` as it is made now; how many had to be embedded."""
    total, _ = old.count()
    done = embedded = 0
    for batch in _batches(old.papers(), BATCH):
        made = [(paper, _made_again(paper)) for paper in batch]
        missing = [(paper, fresh) for paper, fresh in made if new.by_id(paper.id) != fresh]
        known = _known_vectors([paper for paper, _ in missing], old, new, embedder)
        found = entries([fresh for _, fresh in missing], embedder, known)
        new.remove([paper.id for paper, _ in missing])
        new.write(found, [place for paper, _ in missing for place in old.places(paper.id)])
        if found and found[0].vectors is not None:
            new.set_meta("dimension", str(found[0].vectors.shape[1]))
        embedded += sum(_is_new(entry, known, embedder) for entry in found)
        done += len(batch)
        if on_progress is not None:
            on_progress(done, total)
    return embedded


def _made_again(paper: Paper) -> Paper:
    """The paper as this version cleans it; as it was, should this version refuse it."""
    title = None if paper.title_derived else paper.title
    record = Record(paper.sources[0], paper.original, paper.id, title, paper.metadata)
    fresh = to_paper(record)
    if isinstance(fresh, Rejected):
        return paper
    # A title was stored as cleaned: to clean it twice could change it.
    return replace(paper, text=fresh.text, title=title or fresh.title)


def _known_vectors(
    papers: Sequence[Paper], old: Catalog, new: Catalog, embedder: Embedder
) -> dict[str, NDArray[np.float32]]:
    """Vectors by embedded text, where the same model embedded texts composed in the same way."""
    before, now = old.fingerprint, new.fingerprint
    if (before.embedder, before.chunking) != (now.embedder, now.chunking):
        return {}
    known: dict[str, NDArray[np.float32]] = {}
    for paper in papers:
        for chunk, vector in zip(*old.chunks(paper.id), strict=True):
            text = embedding_text(paper, chunk, embedder.count_tokens, embedder.max_tokens)
            known[text] = vector
    return known


def _is_new(entry: Entry, known: Mapping[str, NDArray[np.float32]], embedder: Embedder) -> bool:
    return any(
        embedding_text(entry.paper, chunk, embedder.count_tokens, embedder.max_tokens) not in known
        for chunk in entry.chunks or ()
    )


def _batches(papers: Iterator[Paper], size: int) -> Iterator[list[Paper]]:
    while batch := list(islice(papers, size)):
        yield batch
