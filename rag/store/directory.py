"""A store's directory: what marks it as one, who may write, and what is missing from it.

store.json     marks the directory as a store: format version, and what built it
papers.sqlite  papers, sources, chunks and their vectors: the truth (see `rag.store.catalog`)
chroma/        the vectors again, for approximate search in large stores
bm25/          the lexical index
vectors/       the vectors of a large store again, for an exact search of some of them
write.lock     held, with its PID inside, by the one process that writes
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from filelock import FileLock, Timeout

from rag.errors import ConfigError, StoreError
from rag.store.catalog import Catalog
from rag.store.database import disk_full
from rag.store.schema import Fingerprint

FORMAT = 1
MANIFEST = "store.json"
CATALOG = "papers.sqlite"
CHROMA = "chroma"
BM25 = "bm25"
WORDS = "words.sqlite"  # in BM25
VECTORS = "vectors"
LOCK = "write.lock"

# Nothing is begun with less: SQLite, Chroma and BM25 each need room to finish what they began.
LEAST_FREE_BYTES = 64 * 1024 * 1024


@contextmanager
def writer_lock(path: Path) -> Iterator[None]:
    """Be the only writer of the store at `path`, which is created where missing.

    Raises:
        StoreError: another process writes, or the directory cannot be written.
    """
    refuse_unusable(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path / LOCK)
        lock.acquire(timeout=0)
    except Timeout as error:
        raise StoreError(
            f"The index at {path} is being written by {_holder(path / LOCK)}. Nothing was changed: "
            "wait until it is done, then run the command again."
        ) from error
    except OSError as error:
        raise StoreError(not_writable(path, error)) from error
    try:
        (path / LOCK).write_text(str(os.getpid()), encoding="ascii")
        yield
    finally:
        lock.release()


def open_to_read(path: Path) -> Catalog:
    """The catalog of an existing store, never changed by reading.

    Raises:
        StoreError: there is no store, or a part of it is missing or damaged.
    """
    refuse_unusable(path)
    if not exists(path / MANIFEST) and not exists(path / CATALOG):
        raise StoreError(_no_store(path))
    read_manifest(path)
    _require_catalog(path)
    return Catalog.open(path / CATALOG)


def open_to_write(path: Path, fingerprint: Fingerprint) -> Catalog:
    """The catalog of the store at `path`, made where there is none; the caller holds the lock.

    Raises:
        StoreError: a part of the store is missing or damaged.
    """
    check_space(path)
    if exists(path / MANIFEST):
        read_manifest(path)
        _require_catalog(path)
        return Catalog.open(path / CATALOG, write=True)
    return Catalog.open_or_create(path / CATALOG, fingerprint)


def require_rebuildable(path: Path) -> None:
    """Make sure that there are papers to rebuild a store from.

    Raises:
        StoreError: there is no store at `path`, or its papers are missing or of another format.
    """
    refuse_unusable(path)
    if not exists(path / MANIFEST) and not exists(path / CATALOG):
        raise StoreError(_no_store(path))
    _require_catalog(path)
    if _format(path) not in (None, FORMAT):
        read_manifest(path)


def read_manifest(path: Path) -> None:
    """Make sure that `store.json` is whole and of a format that this version reads."""
    version = _format(path)
    if version is None:
        raise StoreError(
            f"{path / MANIFEST} is missing or damaged. Run `rag index rebuild`: it makes it again "
            f"from {CATALOG}."
        )
    if version != FORMAT:
        raise StoreError(
            f"The store at {path} has format {version!r}; this version reads {FORMAT}. "
            "Use the version of the program that made it, or ingest into another directory."
        )


def write_manifest(path: Path, fingerprint: Fingerprint) -> None:
    """Mark the directory as a store. The catalog's own fingerprint is the one that is compared."""
    text = json.dumps({"format": FORMAT, "fingerprint": asdict(fingerprint)}, indent=2) + "\n"
    content = text.encode("utf-8")
    file = path / MANIFEST
    try:
        if file.exists() and file.read_bytes() == content:
            return
        beside = file.with_suffix(".new")
        beside.write_bytes(content)
        beside.replace(file)
    except OSError as error:
        raise StoreError(not_writable(path, error)) from error


def check_space(path: Path) -> None:
    """Refuse to begin what a full disk would interrupt."""
    if shutil.disk_usage(path).free < LEAST_FREE_BYTES:
        raise StoreError(disk_full(path))


def exists(file: Path) -> bool:
    """Whether a store's `file` is there.

    Raises:
        StoreError: its directory cannot be looked into.
    """
    try:
        return file.exists()
    except OSError as error:
        raise StoreError(
            f"{file.parent} cannot be read: {error.strerror or error}. Check the path and its "
            "permissions, or choose another directory with --store DIR."
        ) from error


def refuse_unusable(path: Path) -> None:
    """Refuse the address of a server, which `Path` has already written with one slash.

    And a name that is no text, which Chroma cannot open.
    """
    if str(path).startswith(("http:", "https:")):
        raise ConfigError(
            f"{path} is the address of a server, not a directory. Name it as it is, such as "
            "http://127.0.0.1:8000, with --store or RAG_STORE."
        )
    try:
        str(path).encode("utf-8")
    except UnicodeEncodeError as error:
        shown = os.fsencode(path).decode("utf-8", "backslashreplace")
        raise ConfigError(
            f"The store's path '{shown}' cannot be read as text in this locale. Set a UTF-8 one, "
            "such as LC_ALL=C.UTF-8, or choose another directory with --store DIR."
        ) from error


def not_writable(path: Path, error: OSError) -> str:
    """The message for a directory that cannot be written."""
    return (
        f"{path} cannot be written: {error.strerror or error}. Check its permissions and the space "
        "on its disk, or choose another directory with --store DIR."
    )


def _format(path: Path) -> object:
    try:
        return json.loads((path / MANIFEST).read_text(encoding="utf-8"))["format"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _no_store(path: Path) -> str:
    return (
        f"There is no store at {path} yet. Run `rag ingest PATH...` to make one, or name another "
        "with --store DIR."
    )


def _require_catalog(path: Path) -> None:
    if not exists(path / CATALOG):
        raise StoreError(
            f"{path / CATALOG}, which holds the papers, is missing. Restore it from a backup, or "
            f"delete {path} and run `rag ingest PATH...` again."
        )


def _holder(lock: Path) -> str:
    try:
        pid = lock.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        pid = ""
    return f"PID {pid}" if pid.isdecimal() else "another process"
