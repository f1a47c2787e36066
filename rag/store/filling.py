"""Chroma brought up to the catalog, in a process of its own where that takes long.

Chroma holds the interpreter's lock as long as it adds vectors: in one process with it, nothing
else would go on. The process is a help only: what it has not done is done by who closes the store.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from rag.errors import StoreError
from rag.store.catalog import Catalog
from rag.store.database import disk_full
from rag.store.directory import CATALOG, CHROMA, check_space
from rag.store.vectors import ChromaVectors, chroma_exists

LOCK = "chroma.lock"
# One that outlives a killed writer ends with the batch it has begun, 7 s in a large store.
PATIENCE_SECONDS = 60.0

# So many chunks are worth a process: 2 s to start, of which it shows nothing.
ENOUGH = 5_000
# It waits for so many before it adds them, or for the end.
AT_LEAST = 2_000
_LOOK_SECONDS = 0.5

# Told to the process on its standard input; the input's end says that its writer is gone.
_FINISH = b"f"
_PROGRAM = "import sys; sys.path[:] = sys.argv[2:]; from rag.store import filling; filling.main()"


@contextmanager
def chroma_lock(store: Path) -> Iterator[None]:
    """Be the only one that changes a store's Chroma.

    Raises:
        StoreError: another process does, and goes on.
    """
    lock = FileLock(store / LOCK)
    try:
        lock.acquire(timeout=PATIENCE_SECONDS)
    except Timeout as error:
        raise StoreError(
            f"The vector index {store / CHROMA} is being written by another process, begun by a "
            "command that has ended. Wait until it is done, then run the command again."
        ) from error
    try:
        yield
    finally:
        lock.release()


def fill(store: Path, catalog: Catalog, goes_on: Callable[[], bool] = lambda: True) -> None:
    """Make Chroma match the catalog, from nothing where it is lost or has lost vectors.

    Raises:
        StoreError: it is damaged, in use, or cannot be written.
    """
    directory = store / CHROMA
    if chroma_exists(directory) and catalog.chroma_is_complete():
        return
    with chroma_lock(store), _explained(store):
        lost = not chroma_exists(directory)
        with closing(ChromaVectors(directory, catalog, write=True)) as chroma:
            if lost or not chroma.whole():
                chroma.start_again()
            chroma.complete(goes_on)


class Filler:
    """A process that fills the Chroma of a store while its writer goes on; none until `start`."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Begin, if that was not done; it goes on by itself as long as there is enough."""
        if self._process is None:
            # Not for Ctrl-C, which is for the writer; and the writer's paths are its own.
            with suppress(OSError):
                self._process = subprocess.Popen(
                    [sys.executable, "-c", _PROGRAM, str(self._store.absolute()), *sys.path],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )

    def ask_to_finish(self) -> None:
        """Let it add the rest and end."""
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.write(_FINISH)
                self._process.stdin.close()

    def wait(self) -> None:
        """Until it has ended, as it was asked to."""
        if self._process is not None:
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """End it now: what it had added, and what it had not, is known."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            if self._process.stdin is not None:
                with suppress(OSError):
                    self._process.stdin.close()
            self._process = None


def main() -> None:
    """Fill the Chroma of the store that `sys.argv[1]` names, as `Filler` asks."""
    store = Path(sys.argv[1])
    asked, gone = threading.Event(), threading.Event()

    def listen() -> None:
        if os.read(0, 1) != _FINISH:
            gone.set()
        asked.set()

    threading.Thread(target=listen, daemon=True).start()
    with closing(Catalog.open(store / CATALOG, write=True)) as catalog, chroma_lock(store):
        lost = not chroma_exists(store / CHROMA)
        with closing(ChromaVectors(store / CHROMA, catalog, write=True)) as chroma:
            if lost or not chroma.whole():
                chroma.start_again()
            while not asked.wait(_LOOK_SECONDS):
                if catalog.lacks_in_chroma(AT_LEAST):
                    chroma.complete(lambda: not gone.is_set())
            if not gone.is_set():
                chroma.complete()


@contextmanager
def _explained(store: Path) -> Iterator[None]:
    try:
        yield
    except StoreError as error:
        # Chroma does not say so itself.
        try:
            check_space(store)
        except (StoreError, OSError):
            raise StoreError(disk_full(store)) from error
        raise
