"""The copy of a server's store on this machine: where it is, and who may change it.

DIGEST/owner        what stands for this copy on the server
DIGEST/write.lock   held by the one process that brings the copy up to date, or writes
DIGEST/GENERATION/  an ordinary store directory without Chroma
"""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from rag.config import ServerAddress
from rag.errors import StoreError
from rag.store.catalog import Catalog
from rag.store.directory import CATALOG, LOCK, exists
from rag.store.server.ledger import revision_of

# The first copy of a large store takes minutes; another process waits for it.
WAIT_SECONDS = 600.0
_LOOK_SECONDS = 0.2


class Replica:
    """The copy for one address, tenant and database."""

    def __init__(self, address: ServerAddress) -> None:
        self.address = address
        # Machines may share a cache directory, but not an SQLite file.
        named = "\0".join((address.url, address.tenant, address.database, socket.gethostname()))
        digest = hashlib.blake2b(named.encode("utf-8"), digest_size=12).hexdigest()
        self.root = address.cache / "stores" / digest

    def at(self, generation: str) -> Path:
        """The directory of one generation, whatever the server calls it."""
        plain = generation if generation.isalnum() else hashlib.md5(generation.encode()).hexdigest()
        return self.root / plain[:64]

    def latest(self) -> Path | None:
        """The generation that was last brought up to date, if any was."""
        found = [p.parent for p in self.root.glob(f"*/{CATALOG}")] if exists(self.root) else []
        whole = [path for path in found if _revision(path) >= 0]
        return max(whole, key=lambda path: (path / CATALOG).stat().st_mtime, default=None)

    def is_current(self, generation: str, revision: int) -> bool:
        """Whether the copy has all that the server had at a revision, and no more."""
        return _revision(self.at(generation)) == revision

    @property
    def owner(self) -> str:
        """What stands for this copy; the caller holds the lock."""
        file = self.root / "owner"
        try:
            if not file.exists():
                file.write_text(uuid.uuid4().hex, encoding="ascii")
            return file.read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError) as error:
            raise StoreError(
                f"{file}, a part of this machine's copy of {self.address}, cannot be used "
                f"({error}). Delete {self.root}: it is made again."
            ) from error

    @contextmanager
    def locked(self, done: Callable[[], bool] | None = None) -> Iterator[bool]:
        """Be the only one to change the copy; False once `done` says that another has.

        Without `done` nothing is waited for.

        Raises:
            StoreError: another process has it, or the cache directory cannot be written.
        """
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.root / LOCK)
            if not self._acquired(lock, done):
                yield False
                return
        except OSError as error:
            raise StoreError(copy_not_writable(self.root, error)) from error
        try:
            (self.root / LOCK).write_text(str(os.getpid()), encoding="ascii")
            yield True
        finally:
            lock.release()

    def keep_only(self, path: Path) -> None:
        """Delete the copies of other generations."""
        for other in self.root.iterdir():
            if other.is_dir() and other != path:
                shutil.rmtree(other, ignore_errors=True)

    def _acquired(self, lock: FileLock, done: Callable[[], bool] | None) -> bool:
        end = time.monotonic() + WAIT_SECONDS
        while True:
            with suppress(Timeout):
                lock.acquire(timeout=0)
                return True
            if done is not None and done():
                return False
            if done is None or time.monotonic() > end:
                raise StoreError(
                    f"The index at {self.address} is being written by {self._holder()} on this "
                    "machine. Nothing was changed: wait until it is done, then run the command "
                    "again."
                )
            time.sleep(_LOOK_SECONDS)

    def _holder(self) -> str:
        try:
            pid = (self.root / LOCK).read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            pid = ""
        return f"PID {pid}" if pid.isdecimal() else "another process"


def copy_not_writable(path: Path, error: OSError) -> str:
    """The message for a cache directory that cannot be written."""
    return (
        f"{path}, this machine's copy of the store, cannot be written: {error.strerror or error}. "
        "Check its permissions and the space on its disk, or set another place with RAG_CACHE_DIR."
    )


def _revision(path: Path) -> int:
    """That up to which a copy is complete; -1 where it is not, or damaged."""
    if not exists(path / CATALOG):
        return -1
    try:
        with closing(Catalog.open(path / CATALOG)) as catalog:
            return revision_of(catalog)
    except (StoreError, ValueError):
        return -1
