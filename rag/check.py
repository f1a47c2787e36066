"""Whether a store is whole: every part counted against the papers, vectors asked for themselves."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rag.config import ServerAddress
from rag.errors import StoreError
from rag.lexical import LexicalIndex
from rag.store import Store, open_store
from rag.store.catalog import Catalog, as_matrix
from rag.store.directory import BM25, CATALOG, CHROMA, VECTORS, WORDS
from rag.store.exact import ExactVectors
from rag.store.mapped import MappedVectors
from rag.store.vectors import EXACT_LIMIT, ChromaVectors, chroma_exists

REBUILD = "rag index rebuild"
# Vectors that are asked for themselves, and for their neighbours, where not all are.
SAMPLED = 200
NEIGHBOURS = 10
_AT_ONCE = 500
# Less is no fault of chance: the graph has holes.
LEAST_RECALL = 0.95
# What rounding leaves of the cosine of a vector and itself.
_SAME = 1 - 2e-6

Progress = Callable[[int, int | None], None]
_Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, and how it is; `mend` is the command that helps where it is not `ok`."""

    part: str
    ok: bool
    detail: str
    mend: str | None = None


@dataclass(frozen=True, slots=True)
class Checkup:
    """Every finding; `recall` is the approximate search's at 10, None where it is not used."""

    papers: int
    chunks: int
    asked: int
    recall: float | None
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is to be mended."""
        return all(finding.ok for finding in self.findings)


def check(
    where: Path | ServerAddress, *, full: bool = False, on_progress: Progress | None = None
) -> Checkup:
    """Look at every part of the store; changes nothing and embeds nothing.

    With `full` every vector is asked for itself, 2 ms each, and every page and row is read.

    Raises:
        StoreError: there is no store, or its papers cannot be read at all.
    """
    with open_store(where, None) as store:
        papers, chunks = store.count()
        findings = [_catalog(store.catalog, full=full), _words(store)]
        asked, recall = 0, None
        if chunks:
            asked = chunks if full else min(chunks, SAMPLED)
            findings += _copies(store, asked, full=full, on_progress=on_progress)
            found, recall = _asked(store)
            findings += found
        return Checkup(papers, chunks, asked, recall, tuple(findings))


def lines(found: Checkup) -> Iterator[tuple[str, bool]]:
    """The checkup for a person: a line, and whether it is good news."""
    for finding in found.findings:
        mark = "ok " if finding.ok else "NO "
        yield f"{mark} {finding.part}: {finding.detail}", finding.ok
        if finding.mend:
            yield f"    Run `{finding.mend}`.", True


def _catalog(catalog: Catalog, *, full: bool) -> Finding:
    """The papers themselves: nothing but a backup brings them back."""
    try:
        problem = _catalog_problem(catalog, full=full)
    except (StoreError, sqlite3.Error) as error:
        problem = str(error)
    if problem:
        return Finding("papers", False, f"{CATALOG}: {problem}", "rag export --out papers.jsonl")
    papers, chunks = catalog.count()
    return Finding("papers", True, f"{papers} in {chunks} passages, each with its vector")


def _catalog_problem(catalog: Catalog, *, full: bool) -> str:
    pragma = "integrity_check" if full else "quick_check"
    (said,) = catalog.rows(f"PRAGMA {pragma}(1)")[0]
    if said != "ok":
        return f"the file is damaged ({said})"
    if catalog.rows("PRAGMA foreign_key_check"):
        return "it has passages or places of papers that are gone"
    lost = "SELECT count(*) FROM papers WHERE pk NOT IN (SELECT paper_pk FROM {})"
    for table, what in (("chunks", "passages"), ("sources", "sources")):
        if count := catalog.rows(lost.format(table))[0][0]:
            return f"{count} papers have no {what}"
    dimension = catalog.meta("dimension")
    if dimension is not None and full:
        sql = "SELECT count(*) FROM chunks WHERE length(vector) <> ?"
        if count := catalog.rows(sql, (4 * int(dimension),))[0][0]:
            return f"{count} vectors have another length than {dimension}"
    return ""


def _words(store: Store) -> Finding:
    part = "words"
    try:
        with closing(LexicalIndex.open(store.path / BM25 / WORDS)) as index:
            index.check()
            papers = store.count()[0]
            if index.state != store.catalog.state:
                return Finding(part, False, f"{len(index)} of {papers} papers, not of now", REBUILD)
            if len(index) != papers:
                return Finding(part, False, f"{len(index)} of {papers} papers are in it", REBUILD)
            return Finding(part, True, f"every word of {papers} papers was read")
    except FileNotFoundError:
        return Finding(part, False, "the word index is missing", REBUILD)
    except StoreError as error:
        return Finding(part, False, str(error), REBUILD)


def _copies(
    store: Store, asked: int, *, full: bool, on_progress: Progress | None
) -> Iterator[Finding]:
    """The vectors outside the catalog."""
    if store.count()[1] > EXACT_LIMIT:
        yield _mapped(store, full=full)
    if not isinstance(store.where, ServerAddress):
        yield _chroma(store, asked, on_progress)


def _mapped(store: Store, *, full: bool) -> Finding:
    part = "mapped vectors"
    try:
        mapped = MappedVectors(store.path / VECTORS, store.catalog)
        if full:
            mapped.check()
        keys = {row[0] for row in store.catalog.rows("SELECT pk FROM chunks")}
    except StoreError as error:
        return Finding(part, False, str(error), REBUILD)
    held = len(keys.intersection(mapped.keys.tolist()))
    detail = f"{held} of {len(keys)} are in the file"
    return Finding(part, held == len(keys), detail, None if held == len(keys) else REBUILD)


def _chroma(store: Store, asked: int, on_progress: Progress | None) -> Finding:
    part = "Chroma"
    chunks, waiting = store.count()[1], store.catalog.not_in_chroma()
    gone = store.catalog.rows("SELECT count(*) FROM chroma_deletions")[0][0]
    if not chroma_exists(store.path / CHROMA):
        return Finding(part, False, "its files are missing", REBUILD)
    try:
        with closing(ChromaVectors(store.path / CHROMA, store.catalog)) as chroma:
            held = chroma.count()
            lost = _lost(store.catalog, chroma, asked, on_progress) if held else []
    except StoreError as error:
        return Finding(part, False, str(error), REBUILD)
    detail = f"{held} vectors for {chunks} passages; {asked} asked for themselves"
    if lost:
        detail += f", {len(lost)} are not found (of {', '.join(sorted(set(lost))[:5])})"
    if waiting or gone:
        detail += f"; {waiting} are still to be added and {gone} to be deleted"
    ok = held == chunks and not lost and not waiting and not gone
    return Finding(part, ok, detail, None if ok else REBUILD)


def _lost(
    catalog: Catalog, chroma: ChromaVectors, asked: int, on_progress: Progress | None
) -> list[str]:
    """IDs of the papers of the vectors that do not find themselves in Chroma."""
    unread, done, lost = _samples(catalog, asked), 0, []
    while some := list(islice(unread, _AT_ONCE)):
        papers = {key: paper_id for key, paper_id, _ in some}
        lost += [papers[key] for key in chroma.lost(list(papers), np.stack([v for *_, v in some]))]
        done += len(some)
        if on_progress is not None:
            on_progress(done, asked)
    return lost


def _asked(store: Store) -> tuple[list[Finding], float | None]:
    """Vectors asked for themselves of the search, and how near the approximate one comes."""
    try:
        exact = ExactVectors(store.catalog)
        search = store.approximate() if store.count()[1] > EXACT_LIMIT else None
        lost, shares = [], []
        for _, paper_id, vector in _samples(store.catalog, SAMPLED):
            wanted = exact.nearest(vector, NEIGHBOURS)
            got = wanted if search is None else search.nearest(vector, NEIGHBOURS)
            if not _is_found(paper_id, vector, got):
                lost.append(paper_id)
            shares.append(_recall(wanted, got))
    except StoreError as error:
        return [Finding("search", False, str(error), REBUILD)], None
    recall = None if search is None else sum(shares) / len(shares)
    return list(_search_findings(len(shares), lost, recall)), recall


def _search_findings(asked: int, lost: Sequence[str], recall: float | None) -> Iterator[Finding]:
    detail = f"{asked - len(lost)} of {asked} vectors find themselves"
    if lost:
        detail += f"; not those of {', '.join(sorted(set(lost))[:5])}"
    yield Finding("search", not lost, detail, REBUILD if lost else None)
    if recall is not None:
        ok = recall >= LEAST_RECALL
        detail = f"recall@{NEIGHBOURS} {recall:.3f} of the approximate search, {asked} vectors"
        yield Finding("neighbours", ok, detail, None if ok else REBUILD)


def _is_found(paper_id: str, vector: _Vector, got: Sequence[tuple[str, float]]) -> bool:
    """Whether the paper comes first, or as many others as were asked for tie with it."""
    first = [i for i, cosine in got if cosine >= _SAME * float(vector @ vector)]
    return paper_id in first or len(first) == NEIGHBOURS


def _recall(wanted: Sequence[tuple[str, float]], got: Sequence[tuple[str, float]]) -> float:
    """The share of the exact neighbours that were found; one as near as the last counts."""
    last = wanted[-1][1]
    return sum(cosine >= last for _, cosine in got[: len(wanted)]) / len(wanted)


def _samples(catalog: Catalog, wanted: int) -> Iterator[tuple[int, str, _Vector]]:
    """Chunks spread over all: key, paper's ID, vector."""
    keys = np.array([row[0] for row in catalog.rows("SELECT pk FROM chunks ORDER BY pk")])
    if not len(keys):
        return
    places = np.unique(np.linspace(0, len(keys) - 1, min(wanted, len(keys))).astype(int))
    for key in keys[places].tolist():
        sql = (
            "SELECT id, vector FROM chunks JOIN papers ON papers.pk = paper_pk WHERE chunks.pk = ?"
        )
        for paper_id, blob in catalog.rows(sql, (key,)):
            yield key, paper_id, as_matrix([blob])[0]
