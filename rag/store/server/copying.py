"""Connected to a server, and this machine's copy brought up to it."""

from __future__ import annotations

import shutil
from contextlib import ExitStack, closing
from pathlib import Path

from rag.config import ServerAddress
from rag.errors import StoreError
from rag.lexical import DamagedIndexError
from rag.store.catalog import Catalog
from rag.store.changes import Changes
from rag.store.database import DamagedError
from rag.store.directory import CATALOG, VECTORS, check_space
from rag.store.mapped import DamagedVectorsError, complete, discard
from rag.store.server.connection import LostError
from rag.store.server.lease import Lease
from rag.store.server.ledger import Ledger
from rag.store.server.remote import Head, Remote
from rag.store.server.replica import Replica, copy_not_writable
from rag.store.server.rest import Rest
from rag.store.server.sync import pull
from rag.store.vectors import EXACT_LIMIT
from rag.store.words import finish_words

DAMAGE = (DamagedError, DamagedIndexError, DamagedVectorsError)


def connected(address: ServerAddress, held: ExitStack) -> tuple[Remote, Replica]:
    """The server, until `held` is closed, and the place of its copy.

    Raises:
        StoreError: it cannot be reached, refuses the key, or is no Chroma server.
    """
    remote = Remote(Rest(address))
    held.callback(remote.close)
    return remote, Replica(address)


def alone(remote: Remote, replica: Replica, held: ExitStack) -> Lease:
    """Be the only writer, of this machine and of all, until `held` is closed.

    Raises:
        StoreError: somebody else writes.
    """
    held.enter_context(replica.locked())
    lease = Lease.take(remote.rest, remote.make(), replica.owner)
    held.callback(lease.release)
    return lease


def bring_up(remote: Remote, replica: Replica) -> Head:
    """Make the copy complete; what it is complete up to. Waits for another that does so.

    Raises:
        StoreError: the server has no store, or the copy cannot be made.
    """
    while True:
        head = required(remote)
        try:
            return _brought_up(remote, replica, head)
        except LostError:
            # A rebuild may have put another generation in its place.
            if required(remote).generation == head.generation:
                raise


def _brought_up(remote: Remote, replica: Replica, head: Head) -> Head:
    if replica.is_current(head.generation, head.revision):
        return head

    def is_done() -> bool:
        nonlocal head
        head = required(remote)
        return replica.is_current(head.generation, head.revision)

    with replica.locked(is_done) as is_mine:
        if is_mine:
            head = required(remote)
            copy(remote, replica, head)
    return head


def copy(remote: Remote, replica: Replica, head: Head, *, everything: bool = False) -> None:
    """Bring the copy up to `head`, from nothing where it is damaged; the caller has its lock."""
    path = replica.at(head.generation)
    try:
        _bring_up(remote, head, path, everything=everything)
    except DAMAGE:
        shutil.rmtree(path)
        _bring_up(remote, head, path, everything=everything)
    replica.keep_only(path)


def index(path: Path, catalog: Catalog, changes: Changes | None) -> None:
    """Make the indexes of a copy match its papers."""
    try:
        finish_words(path, catalog, changes)
        if catalog.count()[1] > EXACT_LIMIT:
            complete(path / VECTORS, catalog)
        else:
            discard(path / VECTORS)
    except OSError as error:
        raise StoreError(copy_not_writable(path, error)) from error


def required(remote: Remote) -> Head:
    """The head of the store.

    Raises:
        StoreError: there is none.
    """
    head = remote.head()
    if head is None:
        raise StoreError(no_store(remote.address))
    return head


def no_store(address: ServerAddress) -> str:
    """The message for a server where nothing was ever stored, or all is gone."""
    return (
        f"There is no store at {address} (tenant {address.tenant}, database {address.database}) "
        "yet. Run `rag ingest PATH...` to make one; if there was one, `rag index rebuild` on a "
        "machine that has used it puts it back."
    )


def _bring_up(remote: Remote, head: Head, path: Path, *, everything: bool) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
        check_space(path)
    except OSError as error:
        raise StoreError(copy_not_writable(path, error)) from error
    with closing(Catalog.open_or_create(path / CATALOG, head.fingerprint)) as catalog:
        ledger, changes = Ledger(catalog), Changes(catalog)
        if ledger.revision > head.revision:
            # The server was set back, as to a backup.
            raise DamagedError(path / CATALOG)
        if pull(remote, head, ledger, everything=everything):
            index(path, catalog, changes)
            ledger.complete(head.revision, head.run)
