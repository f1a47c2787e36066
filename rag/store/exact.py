"""Nearest papers by the cosines of all their vectors, none left out."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag.store.catalog import Catalog, as_matrix
from rag.store.mapped import MappedVectors

# Cosines are rounded here: beyond it, float32 sums differ with the order of addition, and equal
# texts must tie.
DECIMALS = 6

# Where one of so many vectors is wanted, multiplying all is faster than gathering those. Gathered
# at once: so few that they stay in the processor's cache, where copying and multiplying are fast.
_MOST = 2
_GATHERED = 1_024

_READ_AT_ONCE = 4_096

_ROWS_AMONG = """
SELECT id, vector FROM papers JOIN chunks ON chunks.paper_pk = papers.pk
WHERE id IN (SELECT value FROM json_each(?))
"""


@dataclass(frozen=True, slots=True)
class _Part:
    """Vectors, shape (n, d), and the place of each one's paper; that after the last: no paper."""

    matrix: NDArray[np.float32]
    owners: NDArray[np.int64]


class ExactVectors:
    """Every vector of a catalog; `papers` ascend, so that ties fall to the lower ID.

    In memory, but for those that a `MappedVectors` has in its file.
    """

    def __init__(self, catalog: Catalog, mapped: MappedVectors | None = None) -> None:
        self.state = catalog.state
        rows = catalog.rows("SELECT id, pk FROM papers ORDER BY id")
        self._papers = [row[0] for row in rows]
        self._number = {paper_id: i for i, paper_id in enumerate(self._papers)}
        self._narrowed: tuple[frozenset[str], NDArray[np.bool_]] | None = None
        owners = {row[1]: i for i, row in enumerate(rows)}
        chunks = np.array(
            # Answered by an index alone: rows with vectors scan slowly.
            [
                (pk, owners.get(paper, len(rows)))
                for pk, paper in catalog.rows("SELECT pk, paper_pk FROM chunks")
            ],
            dtype=np.int64,
        ).reshape(-1, 2)
        chunks = chunks[np.argsort(chunks[:, 0])]
        self._parts = self._mapped(mapped, chunks) if mapped is not None else []
        last = int(mapped.keys[-1]) if mapped is not None and len(mapped.keys) else 0
        self._parts += self._read(catalog, last, dict(chunks[chunks[:, 0] > last].tolist()))

    def _mapped(self, mapped: MappedVectors, chunks: NDArray[np.int64]) -> list[_Part]:
        owners = np.full(len(mapped.keys), len(self._papers))
        if len(mapped.keys):
            there = chunks[chunks[:, 0] <= mapped.keys[-1]]
            owners[mapped.places(there[:, 0])] = there[:, 1]
        return [_Part(mapped.matrix, owners)]

    def _read(self, catalog: Catalog, last: int, owners: Mapping[int, int]) -> Iterator[_Part]:
        """The vectors of chunks after the key `last`, as the catalog has them."""
        while rows := catalog.rows(
            "SELECT pk, vector FROM chunks WHERE pk > ? ORDER BY pk LIMIT ?",
            (last, _READ_AT_ONCE),
        ):
            last = rows[-1][0]
            places = [owners.get(row[0], len(self._papers)) for row in rows]
            yield _Part(as_matrix(row[1] for row in rows), np.array(places, dtype=np.int64))

    def nearest(
        self, vector: NDArray[np.float32], papers: int, among: Collection[str] | None = None
    ) -> list[tuple[str, float]]:
        """The papers whose best chunk is closest to `vector`: (ID, cosine), best first.

        Only papers `among` these IDs count, where they are given.
        """
        closest = np.full(len(self._papers) + 1, -np.inf, dtype=np.float32)
        wanted = None if among is None else self._mask(among)
        for part in self._parts:
            _scan(part, vector, wanted, closest)
        scores = closest[:-1].astype(np.float64).round(DECIMALS)
        if wanted is not None:
            scores[~wanted[:-1]] = -np.inf
        found = np.flatnonzero(np.isfinite(scores))
        if len(found) > papers > 0:
            # All that tie with the last of them, so that the lower ID decides.
            found = found[scores[found] >= np.partition(scores[found], -papers)[-papers]]
        order = found[np.argsort(-scores[found], kind="stable")][:papers]
        return [(self._papers[i], float(scores[i])) for i in order]

    def _mask(self, among: Collection[str]) -> NDArray[np.bool_]:
        """Which papers are among these; a set that is asked for again is remembered."""
        last = self._narrowed
        if last is not None and last[0] is among:
            return last[1]
        mask = np.zeros(len(self._papers) + 1, dtype=np.bool_)
        mask[[self._number[paper_id] for paper_id in among if paper_id in self._number]] = True
        if isinstance(among, frozenset):
            self._narrowed = (among, mask)
        return mask


def _scan(
    part: _Part,
    vector: NDArray[np.float32],
    wanted: NDArray[np.bool_] | None,
    closest: NDArray[np.float32],
) -> None:
    """Raise `closest`, by paper, to the cosines of a part's vectors; at least of those wanted."""
    rows = None if wanted is None else np.flatnonzero(wanted[part.owners])
    if rows is None or _MOST * len(rows) > len(part.owners):
        np.maximum.at(closest, part.owners, part.matrix @ vector)
        return
    for start in range(0, len(rows), _GATHERED):
        some = rows[start : start + _GATHERED]
        np.maximum.at(closest, part.owners[some], part.matrix[some] @ vector)


def nearest_among(
    catalog: Catalog, ids: Iterable[str], vector: NDArray[np.float32], papers: int
) -> list[tuple[str, float]]:
    """As `ExactVectors.nearest`, of the papers `ids` alone, read from the catalog."""
    rows = catalog.stream(_ROWS_AMONG, (json.dumps(sorted(ids)),))
    return best_of(rows, vector, papers)


def best_of(
    rows: Iterable[Any], vector: NDArray[np.float32], papers: int
) -> list[tuple[str, float]]:
    """The best of rows (ID, vector): (ID, cosine of its closest), best first, ties by ID."""
    best: dict[str, float] = {}
    unread = iter(rows)
    while batch := list(islice(unread, _READ_AT_ONCE)):
        cosines = _cosines(as_matrix(row[1] for row in batch), vector)
        for row, cosine in zip(batch, cosines, strict=True):
            best[row[0]] = max(best.get(row[0], -np.inf), float(cosine))
    return sorted(best.items(), key=lambda item: (-item[1], item[0]))[:papers]


def _cosines(matrix: NDArray[np.float32], vector: NDArray[np.float32]) -> NDArray[np.float64]:
    exact: NDArray[np.float64] = (matrix @ vector).astype(np.float64)
    return exact.round(DECIMALS)
