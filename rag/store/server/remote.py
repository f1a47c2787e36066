"""The store on the server: its head, its records and its vectors.

citewise-meta               the head (format, generation, what built it, revision), and the leases
citewise-papers-GENERATION  a record a paper, and a file that was read (see `records`)
citewise-chunks-GENERATION  the vectors, under keys that papers name

Vectors are written before the papers that name them, papers before the head: who stops in between
leaves each paper as it was or as it should be, and vectors that no paper names.

These, and those of papers that have changed or gone, stay until a rebuild: what is added to Chroma
after a deletion may never be found (https://github.com/chroma-core/chroma/issues/7758; here 4 of
128 vectors). For the same reason a vector is added once, and never written again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rag.config import ServerAddress
from rag.errors import StoreError
from rag.store.schema import Fingerprint
from rag.store.server.collection import Collection
from rag.store.server.connection import LostError
from rag.store.server.rest import Rest
from rag.store.vectors import EF_SEARCH

FORMAT = 1
_PREFIX = "citewise"
_META = f"{_PREFIX}-meta"
_PAPERS = f"{_PREFIX}-papers-"
_CHUNKS = f"{_PREFIX}-chunks-"
_HEAD = "head"


@dataclass(frozen=True, slots=True)
class Head:
    """What the server holds. Every record up to `revision` is complete.

    `run` counts ingests; `writing` says that somebody has begun to write and not ended.
    """

    generation: str
    fingerprint: Fingerprint
    revision: int = 0
    run: int = 0
    writing: bool = False


class Remote:
    """An open connection. Every method raises StoreError where the server fails."""

    def __init__(self, rest: Rest) -> None:
        self.rest = rest
        self.address: ServerAddress = rest.address
        self._collections: dict[str, Collection] = {}

    def close(self) -> None:
        """Close the connection; safe to call twice."""
        self.rest.close()

    def make(self) -> Collection:
        """The collection for head and leases, made where there is none."""
        self._collections[_META] = self.rest.create(_META)
        return self._collections[_META]

    def head(self) -> Head | None:
        """The head; None where there is no store."""
        return self.state()[0]

    def state(self) -> tuple[Head | None, dict[str, dict[str, Any]]]:
        """The head, and all records beside it, which are the leases."""
        try:
            found = self._collection(_META).page(0)
        except LostError:
            # Another may have made it anew.
            self._collections.pop(_META, None)
            try:
                found = self._collection(_META).page(0)
            except LostError:
                return None, {}
        return (self._read(found[_HEAD]) if _HEAD in found else None), found

    def write_head(self, head: Head) -> None:
        """Say what the server holds from now on."""
        record: dict[str, Any] = asdict(head) | {
            "format": FORMAT,
            "fingerprint": json.dumps(asdict(head.fingerprint)),
        }
        self._collection(_META).upsert([_HEAD], [record])

    def refuse_remains(self) -> None:
        """Make sure that no papers are there; the caller has found no head.

        Raises:
            LostError: there are some.
        """
        for name in self.rest.collections():
            if name.startswith(_PAPERS) and self._collection(name).count():
                raise LostError(
                    f"The server {self.address} has papers in {name}, but has lost {_META}, which "
                    "says what they are. Run `rag index rebuild` on a machine that has used the "
                    "store, or delete the collections that begin with "
                    f"{_PREFIX} and run `rag ingest PATH...` again."
                )

    def begin(self, head: Head) -> None:
        """Make the collections of a new generation."""
        self._collections[_papers(head)] = self.rest.create(_papers(head))
        # For "cosine" the server scales vectors anew, and gives back others than it was given. Of
        # unit vectors the Euclidean distance finds the same.
        self._collections[_chunks(head)] = self.rest.create(
            _chunks(head), {"hnsw": {"space": "l2", "ef_search": EF_SEARCH}}
        )

    def papers(self, head: Head) -> Collection:
        """The records.

        Raises:
            LostError: the collection is gone.
        """
        return self._of(head, _papers(head))

    def chunks(self, head: Head) -> Collection:
        """The vectors.

        Raises:
            LostError: the collection is gone.
        """
        return self._of(head, _chunks(head))

    def drop_others(self, head: Head) -> None:
        """Delete collections of generations that were given up, or not finished."""
        for name in self.rest.collections():
            ours = name.startswith((_PAPERS, _CHUNKS))
            if ours and name not in (_papers(head), _chunks(head)):
                self.rest.drop(name)

    def _of(self, head: Head, name: str) -> Collection:
        try:
            return self._collection(name)
        except LostError as error:
            raise LostError(
                f"The server {self.address} has lost the collection {name} (revision "
                f"{head.revision}). Run `rag index rebuild` on a machine that has used the store: "
                "it puts back what that machine has. Or restore the server from a backup."
            ) from error

    def _collection(self, name: str) -> Collection:
        if name not in self._collections:
            self._collections[name] = self.rest.collection(name)
        return self._collections[name]

    def _read(self, record: Mapping[str, Any]) -> Head:
        if record.get("format") != FORMAT:
            raise StoreError(
                f"The store at {self.address} has format {record.get('format')!r}; this version "
                f"reads {FORMAT}. Use the version of the program that made it."
            )
        try:
            return Head(
                str(record["generation"]),
                Fingerprint(**json.loads(record["fingerprint"])),
                int(record["revision"]),
                int(record["run"]),
                record["writing"] is True,
            )
        except (KeyError, TypeError, ValueError) as error:
            raise LostError(
                f"The store at {self.address} has a damaged head. Run `rag index rebuild` on a "
                "machine that has used it, or restore the server from a backup."
            ) from error


def _papers(head: Head) -> str:
    return f"{_PAPERS}{head.generation}"


def _chunks(head: Head) -> str:
    return f"{_CHUNKS}{head.generation}"
