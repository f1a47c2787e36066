"""Nearest chunks through Chroma. The only import of chromadb.

Chroma holds nothing but the vector of each chunk under its key in the catalog: what a key means is
always looked up there, so that a chunk which Chroma has and the catalog has not is never seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rag.errors import StoreError
from rag.store.catalog import Catalog, as_matrix
from rag.store.exact import best_of

if TYPE_CHECKING:
    from chromadb import Collection
    from chromadb.api import ClientAPI

# Up to here a scan of all vectors is faster than opening Chroma (1 s), exact, and reproducible:
# 100,000 x 384 take 17 ms on 2 cores once they are in memory.
EXACT_LIMIT = 50_000

# Chunks of which the best papers are taken. Four windows a paper: the best 100 papers are among the
# best 400 chunks.
CANDIDATES = 400

# The breadth of the graph search, as so many chunks asked for. Of 350,000 chunks it finds 0.999 of
# the ten nearest papers in 9 ms; a breadth of 500 found 0.982 in 5.
EF_SEARCH = 1_000

# Cosine distance of a float32 vector to itself in Chroma is up to 1e-6.
SAME_DISTANCE = 1e-5

_SAMPLES = 8
_TAKEN_AT_ONCE = 10_000


# A union of keys, since SQLite answers an OR of these conditions by reading every vector.
_CANDIDATE_ROWS = """
SELECT id, vector FROM chunks JOIN papers ON papers.pk = paper_pk WHERE chunks.pk IN (
    SELECT value FROM json_each(?)
    UNION SELECT pk FROM chunks WHERE in_chroma = 0
    UNION SELECT pk FROM chunks WHERE pk > ?)
"""


class ChromaVectors:
    """The chunks of one generation of a catalog in an embedded Chroma under `directory`."""

    def __init__(self, directory: Path, catalog: Catalog, *, write: bool = False) -> None:
        self._directory = directory
        self._catalog = catalog
        # Chunks stored after this moment may be missing from the graph that this process loads.
        self._newest = _newest(catalog)
        name = f"chunks-{catalog.meta('generation')}"
        with self._explained():
            if not write and not chroma_exists(directory):
                # Chroma would make an empty one, and the loss would no longer show.
                raise FileNotFoundError("its files are missing")
            self._client = _client(directory)
            if write:
                self._drop_others(name)
                self._collection = self._create(name)
            else:
                self._collection = self._client.get_collection(name, embedding_function=None)

    def close(self) -> None:
        """Release the files."""
        self._client.close()  # type: ignore[attr-defined]  # not in its interface, but in every client

    def nearest(self, vector: NDArray[np.float32], papers: int) -> list[tuple[str, float]]:
        """As `ExactVectors.nearest`, from the chunks that Chroma proposes and those it lacks."""
        wanted = max(CANDIDATES, 4 * papers)
        with self._explained():
            found = self._collection.query(
                query_embeddings=[vector.tolist()],
                n_results=max(EF_SEARCH, wanted),
                include=[],
            )
        closest = found["ids"][0][:wanted]
        rows = self._catalog.rows(_CANDIDATE_ROWS, (f"[{','.join(closest)}]", self._newest))
        return best_of(rows, vector, papers)

    def count(self) -> int:
        """How many vectors it holds."""
        with self._explained():
            return self._collection.count()

    def whole(self) -> bool:
        """Whether sampled vectors are found by asking for themselves; a count alone can lie."""
        if self.count() < _held(self._catalog):
            return False
        samples = list(_samples(self._catalog))
        return not samples or not self.lost(
            [key for key, _ in samples], np.stack([vector for _, vector in samples])
        )

    def lost(self, keys: Sequence[int], vectors: NDArray[np.float32]) -> list[int]:
        """Those of the keys whose vectors, shape (n, d), are not found by asking for themselves."""
        with self._explained():
            found = self._collection.query(
                query_embeddings=vectors, n_results=1, include=["distances"]
            )
        distances = found["distances"] or []
        # Another chunk may have the same vector: then the distance shows that the place is right.
        return [
            key
            for key, ids, near in zip(keys, found["ids"], distances, strict=True)
            if str(key) not in ids and not any(d < SAME_DISTANCE for d in near)
        ]

    def start_again(self) -> None:
        """Empty Chroma, so that `complete` fills it anew."""
        self._catalog.run("UPDATE chunks SET in_chroma = 0 WHERE in_chroma = 1")
        self._catalog.run("DELETE FROM chroma_deletions")
        with self._explained():
            self._client.delete_collection(self._collection.name)
            self._collection = self._create(self._collection.name)

    def complete(self, goes_on: Callable[[], bool] = lambda: True) -> None:
        """Bring Chroma up to the catalog: add what it lacks, then forget what was deleted.

        It asks before each batch whether it `goes_on`.
        """
        with self._explained():
            limit = min(self._client.get_max_batch_size(), _TAKEN_AT_ONCE)
        while goes_on() and (
            rows := self._catalog.rows(
                "SELECT pk, vector FROM chunks WHERE in_chroma = 0 ORDER BY pk LIMIT ?", (limit,)
            )
        ):
            keys = [row[0] for row in rows]
            with self._explained():
                self._collection.add(
                    ids=[str(key) for key in keys], embeddings=as_matrix(row[1] for row in rows)
                )
            self._mark(keys)
        deleted = "SELECT chunk_pk FROM chroma_deletions LIMIT ?"
        while goes_on() and (rows := self._catalog.rows(deleted, (limit,))):
            with self._explained():
                self._collection.delete(ids=[str(row[0]) for row in rows])
            with self._catalog.transaction():
                self._catalog.run_many("DELETE FROM chroma_deletions WHERE chunk_pk = ?", rows)

    def _mark(self, keys: Sequence[int]) -> None:
        with self._catalog.transaction():
            self._catalog.run_many(
                "UPDATE chunks SET in_chroma = 1 WHERE pk = ?", ((key,) for key in keys)
            )
            # Those that another thread or process has deleted meanwhile.
            self._catalog.run(
                "INSERT OR IGNORE INTO chroma_deletions SELECT value FROM json_each(?) "
                "WHERE value NOT IN (SELECT pk FROM chunks)",
                (f"[{','.join(map(str, keys))}]",),
            )

    def _create(self, name: str) -> Collection:
        return self._client.get_or_create_collection(
            name,
            embedding_function=None,
            configuration={"hnsw": {"space": "cosine", "ef_search": EF_SEARCH}},
        )

    def _drop_others(self, name: str) -> None:
        for collection in self._client.list_collections():
            if collection.name != name and collection.name.startswith("chunks-"):
                self._client.delete_collection(collection.name)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except StoreError:
            raise
        except Exception as error:  # Chroma raises its own, SQLite's and its Rust core's errors
            raise StoreError(
                f"The vector index {self._directory} is damaged or incomplete "
                f"({' '.join(str(error).split())[:200]}). Run `rag index rebuild`: papers and "
                "vectors are kept apart from it, so nothing is embedded again."
            ) from error


def _client(directory: Path) -> ClientAPI:
    import chromadb
    from chromadb.api.shared_system_client import SharedSystemClient
    from chromadb.config import Settings

    try:
        return chromadb.PersistentClient(
            str(directory), settings=Settings(anonymized_telemetry=False)
        )
    except BaseException:
        # One that could not start stays in a cache by path, and would spoil every later try.
        SharedSystemClient.clear_system_cache()
        raise


def chroma_exists(directory: Path) -> bool:
    """Whether a Chroma was ever made in `directory`; cheaper than opening it."""
    return (directory / "chroma.sqlite3").exists()


def _newest(catalog: Catalog) -> int:
    """The last key that Chroma holds; keys are handed over in ascending order."""
    row = catalog.rows(
        "SELECT coalesce((SELECT min(pk) - 1 FROM chunks WHERE in_chroma = 0), "
        "(SELECT max(pk) FROM chunks), 0)"
    )[0]
    return int(row[0])


def _held(catalog: Catalog) -> int:
    """How many chunks Chroma should hold, from indexes alone: rows with vectors scan slowly."""
    row = catalog.rows(
        "SELECT (SELECT count(*) FROM chunks) - (SELECT count(*) FROM chunks WHERE in_chroma = 0)"
    )[0]
    return int(row[0])


def _samples(catalog: Catalog) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Up to `_SAMPLES` of the chunks that Chroma holds, spread over all."""
    newest = _newest(catalog)
    for i in range(_SAMPLES):
        for key, blob in catalog.rows(
            "SELECT pk, vector FROM chunks WHERE pk BETWEEN ? AND ? AND in_chroma = 1 LIMIT 1",
            (newest * i // _SAMPLES, newest),
        ):
            yield key, as_matrix([blob])[0]
