"""One way to open a store, wherever it is."""

from __future__ import annotations

from pathlib import Path

from rag.config import ServerAddress
from rag.store.directory import MANIFEST, exists
from rag.store.schema import Fingerprint
from rag.store.server.store import open_server, server_has_store
from rag.store.store import Store


def open_store(
    where: Path | ServerAddress, fingerprint: Fingerprint | None, *, write: bool = False
) -> Store:
    """Open the store in a directory or on a server; with `write`, alone, and made where missing.

    Without a fingerprint nothing is compared: enough to list papers, not to search by vectors.

    Raises:
        StoreError: no store, built by something else, in use, damaged, or not to be reached.
        ConfigError: the path, or the server's key, cannot be used.
    """
    if isinstance(where, ServerAddress):
        return open_server(where, fingerprint, write=write)
    return Store.open(where, fingerprint, write=write)


def store_exists(where: Path | ServerAddress) -> bool:
    """Whether there is a store.

    Raises:
        StoreError: the directory or the server cannot be asked.
    """
    if isinstance(where, ServerAddress):
        return server_has_store(where)
    return exists(where / MANIFEST)
