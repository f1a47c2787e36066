"""A store on a server, opened like any other."""

from __future__ import annotations

import json
import shutil
import threading
import time
import uuid
from collections.abc import Collection as AnyOf
from contextlib import ExitStack, suppress
from dataclasses import replace
from math import ceil
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from rag.config import ServerAddress
from rag.errors import StoreError
from rag.lexical import LexicalIndex
from rag.store.catalog import Catalog
from rag.store.changes import Changes
from rag.store.directory import CATALOG
from rag.store.exact import best_of
from rag.store.schema import Fingerprint
from rag.store.server.collection import Collection
from rag.store.server.connection import LostError
from rag.store.server.copying import DAMAGE, alone, bring_up, connected, copy, index
from rag.store.server.lease import Lease
from rag.store.server.ledger import Ledger
from rag.store.server.remote import Head, Remote
from rag.store.server.replica import Replica
from rag.store.server.sync import PAPERS, push
from rag.store.store import Approximate, Store
from rag.store.vectors import CANDIDATES, EXACT_LIMIT

# An open reader asks the server for news before a search, but not more often.
NEWS_SECONDS = 2.0
# A writer brings what it has to the server at the latest then, or once it has enough papers.
PUSH_SECONDS = 5.0

# The candidates of the server, and the papers that it does not have yet.
_CANDIDATE_ROWS = """
SELECT id, vector FROM chunks JOIN papers ON papers.pk = paper_pk WHERE chunks.pk IN (
    SELECT pk FROM remote_chunks WHERE key IN (SELECT value FROM json_each(?))
    UNION SELECT chunks.pk FROM remote_changes JOIN papers ON papers.id = name
        JOIN chunks ON chunks.paper_pk = papers.pk WHERE kind = 'paper')
"""


class ServerStore(Store):
    """A replica that follows its server, or, with a lease, goes before it."""

    def __init__(  # noqa: PLR0913
        self,
        remote: Remote,
        replica: Replica,
        head: Head,
        catalog: Catalog,
        *,
        lease: Lease | None = None,
        held: ExitStack | None = None,
    ) -> None:
        super().__init__(replica.at(head.generation), catalog, held)
        self.where = remote.address
        self._remote = remote
        self._replica = replica
        self._head = head
        self._lease = lease
        self._ledger = Ledger(catalog) if lease is not None else None
        self._pushed = self._looked = time.monotonic()
        self._following = threading.Lock()
        self._former: list[Catalog] = []

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            super().__exit__(kind, error, traceback)
        except DAMAGE as damage:
            error = damage
        if isinstance(error, DAMAGE):
            with suppress(StoreError), self._replica.locked():
                shutil.rmtree(self.path, ignore_errors=True)
            raise StoreError(
                f"This machine's copy of {self.where} was damaged ({self.path}). Run the command "
                "again: the copy is made anew from the server."
            ) from error

    def close(self) -> None:
        """Release every file, the lease and the connection."""
        for catalog in self._former:
            catalog.close()
        super().close()
        self._remote.close()

    def nearest(
        self, vector: NDArray[np.float32], papers: int, among: AnyOf[str] | None = None
    ) -> list[tuple[str, float]]:
        """As `Store.nearest`, of the papers that the server has now."""
        self._follow()
        try:
            return super().nearest(vector, papers, among)
        except LostError:
            # A rebuild may have put another generation in its place since.
            self._looked = -NEWS_SECONDS
            self._follow()
            return super().nearest(vector, papers, among)

    def lexical(self) -> LexicalIndex:
        """As `Store.lexical`, of the papers that the server has now."""
        self._follow()
        return super().lexical()

    def finish(self) -> None:
        """Bring everything to the server, and make all that is searched match the papers."""
        self._push(everything=True)
        if self._head.writing:
            self._head = replace(self._head, writing=False)
            self._remote.write_head(self._head)
        index(self.path, self.catalog, self._changes)

    def mend(self) -> None:
        """Make good what a writer that was interrupted left on the server."""
        if self._ledger is None:
            return
        self._remote.drop_others(self._head)
        # What it wrote beyond the head counts from now on.
        self._head = replace(self._head, revision=self._head.revision + 1)
        self._remote.write_head(self._head)
        self._ledger.complete(self._head.revision, self._head.run)

    def _keep_up(self) -> None:
        waiting = len(self._ledger.changed(PAPERS)) if self._ledger else 0
        if waiting == PAPERS or time.monotonic() > self._pushed + PUSH_SECONDS:
            self._push()

    def _push(self, *, everything: bool = False) -> None:
        if self._ledger is None or self._lease is None:
            return
        while True:
            self._lease.require(self._remote.state()[1])
            before, self._head = self._head, push(self._remote, self._head, self._ledger)
            if before == self._head or not everything:
                break
        self._pushed = time.monotonic()

    def _follow(self) -> None:
        """Bring a reader up to the server, if there may be news."""
        with self._following:
            if self._lease is not None or time.monotonic() < self._looked + NEWS_SECONDS:
                return
            head = bring_up(self._remote, self._replica)
            if head.generation != self._head.generation:
                self._move_to(head)
            self._head = head
            self._looked = time.monotonic()

    def _move_to(self, head: Head) -> None:
        """Go on with a store that was rebuilt, if its vectors can still be compared."""
        if head.fingerprint != self._head.fingerprint:
            raise StoreError(
                f"The store at {self.where} was rebuilt with {head.fingerprint} meanwhile; now in "
                f"use: {self._head.fingerprint}. Start again with the settings of the former."
            )
        # Another thread may still be reading from the old one.
        self._former.append(self.catalog)
        self.path = self._replica.at(head.generation)
        self.catalog = Catalog.open(self.path / CATALOG)
        with self._loading:
            self._chroma = self._exact = self._lexical = None

    def _few_chunks(self) -> bool:
        return self.count()[1] <= EXACT_LIMIT

    def _open_chroma(self) -> Approximate:
        return _ServerVectors(self._remote.chunks(self._head), self.catalog)


class _ServerVectors:
    """Nearest chunks through the server."""

    def __init__(self, chunks: Collection, catalog: Catalog) -> None:
        self._chunks = chunks
        self._catalog = catalog
        self._all = chunks.count()

    def nearest(self, vector: NDArray[np.float32], papers: int) -> list[tuple[str, float]]:
        """As `ChromaVectors.nearest`; more are asked for, as some that are found are dead."""
        share = self._all / max(1, self._catalog.count()[1])
        keys = self._chunks.query(vector, ceil(max(CANDIDATES, 4 * papers) * max(1.0, share)))
        return best_of(self._catalog.rows(_CANDIDATE_ROWS, (json.dumps(keys),)), vector, papers)

    def close(self) -> None:
        """Nothing to release: the connection is the store's."""


def open_server(
    address: ServerAddress, fingerprint: Fingerprint | None, *, write: bool = False
) -> ServerStore:
    """As `Store.open`; with `write`, alone among all machines.

    Raises:
        StoreError: the server cannot be used, has no such store, or another process writes.
        ConfigError: the key cannot be sent.
    """
    with ExitStack() as held:
        remote, replica = connected(address, held)
        if write:
            return _open_to_write(remote, replica, fingerprint, held)
        head = bring_up(remote, replica)
        catalog = Catalog.open(replica.at(head.generation) / CATALOG)
        store = ServerStore(remote, replica, head, catalog)
        held.pop_all()
        store.require(fingerprint)
        return store


def server_has_store(address: ServerAddress) -> bool:
    """Whether anything was stored there.

    Raises:
        StoreError: the server cannot be used.
    """
    with ExitStack() as held:
        return connected(address, held)[0].head() is not None


def _open_to_write(
    remote: Remote, replica: Replica, fingerprint: Fingerprint | None, held: ExitStack
) -> ServerStore:
    if fingerprint is None:
        raise ValueError("writing needs the fingerprint of what embeds")
    lease = alone(remote, replica, held)
    head = remote.head() or _begun(remote, fingerprint)
    copy(remote, replica, head, everything=head.writing)
    catalog = Catalog.open(replica.at(head.generation) / CATALOG, write=True)
    held.callback(catalog.close)
    store = ServerStore(remote, replica, head, catalog, lease=lease, held=held)
    store.require(fingerprint)
    if head.writing:
        store.mend()
    store._changes = Changes(catalog)
    store._held = held.pop_all()
    return store


def _begun(remote: Remote, fingerprint: Fingerprint) -> Head:
    remote.refuse_remains()
    head = Head(uuid.uuid4().hex, fingerprint)
    remote.begin(head)
    remote.write_head(head)
    remote.drop_others(head)
    return head
