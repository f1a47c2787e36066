"""The records of one collection, in batches as large as the server takes them."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag.store.server.connection import ANSWER_SECONDS, Connection, quoted

Metadata = Mapping[str, str | int | float | bool]


class Collection:
    """One collection; batches are cut to what the server takes at once."""

    def __init__(self, connection: Connection, identifier: str) -> None:
        self._connection = connection
        self._path = f"{connection.database}/collections/{quoted(identifier)}"

    def add(self, key: str, metadata: Metadata) -> None:
        """Add one record without a vector of its own; one that is there stays as it is."""
        self._send("add", [key], None, [metadata])

    def add_vectors(self, keys: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Add records, vectors of shape (n, d); those that are there stay as they are."""
        for start in range(0, len(keys), self._connection.at_once):
            some = slice(start, start + self._connection.at_once)
            self._send("add", keys[some], vectors[some], None)

    def upsert(self, keys: Sequence[str], metadatas: Sequence[Metadata]) -> None:
        """Write metadata, whose other keys stay, to records without vectors of their own."""
        for start in range(0, len(keys), self._connection.at_once):
            some = slice(start, start + self._connection.at_once)
            self._send("upsert", keys[some], None, metadatas[some])

    def update(self, key: str, metadata: Metadata, seconds: float = ANSWER_SECONDS) -> None:
        """Change the metadata of a record, if it is there; once, waiting no longer than that."""
        body = {"ids": [key], "metadatas": [dict(metadata)]}
        self._connection.call("POST", f"{self._path}/update", body, attempts=1, seconds=seconds)

    def delete(self, keys: Sequence[str]) -> None:
        """Delete records; those that are not there do not matter."""
        for start in range(0, len(keys), self._connection.at_once):
            self._call("delete", {"ids": list(keys[start : start + self._connection.at_once])})

    def count(self) -> int:
        """How many records."""
        return int(self._connection.call("GET", f"{self._path}/count"))

    def page(
        self, offset: int, where: Mapping[str, Any] | None = None, *, keys_only: bool = False
    ) -> dict[str, dict[str, Any]]:
        """Metadata of some records by key, from `offset` on; none after the last."""
        include = [] if keys_only else ["metadatas"]
        body = {
            "where": where,
            "limit": self._connection.at_once,
            "offset": offset,
            "include": include,
        }
        found = self._call("get", body)
        keys = self._list(found, "ids")
        metadatas = [{}] * len(keys) if keys_only else self._list(found, "metadatas")
        return {str(k): m or {} for k, m in zip(keys, metadatas, strict=False)}

    def records(self, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Metadata of those of the records that are there, by key."""
        return {k: m or {} for k, m in self._get(keys, "metadatas")}

    def vectors(self, keys: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """Vectors of those of the records that are there, by key."""
        read = {k: np.array(v, dtype=np.float32) for k, v in self._get(keys, "embeddings")}
        for vector in read.values():
            whole = vector.ndim == 1 and bool(np.isfinite(vector).all())
            self._connection.checked(vector if whole else None, np.ndarray)
        return read

    def query(self, vector: NDArray[np.float32], keys: int) -> list[str]:
        """Keys of the nearest vectors, approximately, the nearest first."""
        most = min(keys, self._connection.at_once)
        body = {"query_embeddings": [vector.tolist()], "n_results": most, "include": []}
        found = self._list(self._call("query", body), "ids")
        return [str(key) for key in found[0]] if found else []

    def _get(self, keys: Sequence[str], what: str) -> Iterator[tuple[str, Any]]:
        for start in range(0, len(keys), self._connection.at_once):
            some = list(keys[start : start + self._connection.at_once])
            found = self._call("get", {"ids": some, "include": [what]})
            yield from zip(self._list(found, "ids"), self._list(found, what), strict=False)

    def _call(self, what: str, body: object) -> Any:
        return self._connection.call("POST", f"{self._path}/{what}", body)

    def _list(self, found: Any, name: str) -> list[Any]:
        held = found.get(name) if isinstance(found, dict) else None
        return list(self._connection.checked(held, list))

    def _send(
        self,
        how: str,
        keys: Sequence[str],
        vectors: NDArray[np.float32] | None,
        metadatas: Sequence[Metadata] | None,
    ) -> None:
        # Every record must have a vector; those that nobody searches have the same one.
        rows = np.ones((len(keys), 1), dtype=np.float32) if vectors is None else vectors
        body = {
            "ids": list(keys),
            "embeddings": _in_base64(rows) if self._connection.takes_base64 else rows.tolist(),
            "metadatas": [dict(m) for m in metadatas] if metadatas else None,
        }
        self._call(how, body)


def _in_base64(rows: NDArray[np.float32]) -> list[str]:
    return [base64.b64encode(row.astype("<f4").tobytes()).decode() for row in rows]
