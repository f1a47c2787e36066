"""A server's store replaced as a whole, by its papers made anew."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

from rag.config import ServerAddress
from rag.errors import StoreError
from rag.store.catalog import Catalog
from rag.store.directory import CATALOG
from rag.store.schema import Fingerprint
from rag.store.server.connection import LostError
from rag.store.server.copying import alone, connected, copy, index, no_store
from rag.store.server.lease import Lease
from rag.store.server.ledger import Ledger
from rag.store.server.remote import Head, Remote
from rag.store.server.replica import Replica
from rag.store.server.sync import push


class Rewriting:
    """The papers of a store, in the directory `path`, while nobody else may write."""

    def __init__(self, remote: Remote, replica: Replica, lease: Lease, path: Path) -> None:
        self.path = path
        self._remote = remote
        self._replica = replica
        self._lease = lease

    def publish(self, file: Path, fingerprint: Fingerprint) -> None:
        """Make the papers of the catalog at `file` the store in place of the present ones.

        Their vectors go into collections of their own: until all are there, nothing changes for
        anybody. The file becomes this machine's copy.
        """
        head = Head(uuid.uuid4().hex, fingerprint)
        self._remote.begin(head)
        with closing(Catalog.open(file, write=True)) as catalog:
            ledger = Ledger(catalog)
            with closing(Catalog.open(self.path / CATALOG)) as old:
                ledger.begin_from(old)
            while ledger.changed(1):
                self._lease.require(self._remote.state()[1])
                head = push(self._remote, head, ledger, tell=False)
            head = replace(head, writing=False)
            self._remote.write_head(head)
        path = self._replica.at(head.generation)
        path.mkdir(parents=True, exist_ok=True)
        file.replace(path / CATALOG)
        with closing(Catalog.open(path / CATALOG, write=True)) as catalog:
            index(path, catalog, None)
        self._replica.keep_only(path)
        self._remote.drop_others(head)


@contextmanager
def rewriting(address: ServerAddress) -> Iterator[Rewriting]:
    """The store of a server, or what this machine has of it where the server has lost some.

    Raises:
        StoreError: there is none, another process writes, or the server cannot be used.
    """
    with ExitStack() as held:
        remote, replica = connected(address, held)
        lease = alone(remote, replica, held)
        path = _papers(remote, replica)
        if path is None:
            raise StoreError(no_store(address))
        yield Rewriting(remote, replica, lease, path)


def _papers(remote: Remote, replica: Replica) -> Path | None:
    try:
        head = remote.head()
        if head is None:
            return replica.latest()
        copy(remote, replica, head, everything=head.writing)
        return replica.at(head.generation)
    except LostError:
        path = replica.latest()
        if path is None:
            raise
        return path
