"""What is to be read: the files behind the given paths, their names and the hashes of their bytes.

A file is known by where it is, links resolved, and keeps the name under which it was first read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rag import __version__
from rag.errors import ReadError
from rag.readers import STDIN, find_files, resolved
from rag.store.catalog import Catalog
from rag.text import CLEANING_VERSION
from rag.types import Rejected

# Raise it with every change of what a reader makes of a file: then unchanged files are read again.
READING_VERSION = 1

STDIN_NAME = "stdin"


@dataclass(frozen=True, slots=True)
class GivenFile:
    """A file to read; `name` is what sources will say, `path` where its bytes are.

    `place` is what the file is known by from run to run: None for standard input, which is another
    each time.
    """

    path: Path
    name: str
    place: Path | None


@dataclass(slots=True)
class Given:
    """What the paths came to.

    `files` are in order, each once; `behind` has the paths of the files behind each given path that
    has any; `folders` are those that could be read.
    """

    files: list[GivenFile] = field(default_factory=list)
    behind: list[set[Path]] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)


def find(paths: Sequence[Path]) -> Given:
    """The files behind `paths`, "-" being standard input."""
    given = Given()
    good = [path for path in paths if path != STDIN and _look(path, given)]
    # Together, since names that would meet are told apart.
    for file, name in find_files(good) if good else []:
        where = resolved(file)
        given.files.append(GivenFile(where, _printable(name), where))
    if STDIN in paths:
        given.files.append(GivenFile(STDIN, STDIN_NAME, None))
        given.behind += [{STDIN} for path in paths if path == STDIN]
    return given


def name_in(catalog: Catalog, file: GivenFile) -> str:
    """The name of a file in a store: its own from before, or one that no other file has.

    A name whose file is no longer where it was, or was read by a version that did not remember
    where, passes on to the file that is now called so: it was moved.
    """
    if file.place is None:
        return file.name
    before = catalog.file_at(file.place)
    if before is not None:
        return before.name
    bearer = catalog.file(file.name)
    if bearer is None or bearer.path is None or is_gone(Path(bearer.path)):
        return file.name
    return _printable(file.place.as_posix().lstrip("/"))


def is_gone(path: Path) -> bool:
    """Whether a file is certainly not there; one that cannot be looked at may be."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def hash_of(file: GivenFile) -> str:
    """SHA-256 of a file's bytes; empty for a pipe, and where reading it will say what is wrong."""
    try:
        if file.place is None or not file.path.is_file():
            return ""
        with file.path.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    except OSError:
        return ""


def size_of(file: GivenFile) -> int | None:
    """How many bytes a file has; None for a pipe."""
    try:
        return file.path.stat().st_size if file.place is not None and file.path.is_file() else None
    except OSError:
        return None


def reading_with(columns: Mapping[str, str]) -> str:
    """What decides, beside a file's bytes, what comes of it."""
    versions = [__version__, READING_VERSION, CLEANING_VERSION]
    return json.dumps([*versions, dict(sorted(columns.items()))])


def stored_path(file: GivenFile) -> str | None:
    """Where a file is, as it is stored: a path need not be valid Unicode."""
    return None if file.place is None else _printable(str(file.place))


def _look(path: Path, given: Given) -> bool:
    try:
        found = {resolved(file) for file, _ in find_files([path])}
    except ReadError as error:
        given.rejected.append(Rejected(_printable(str(path)), 0, str(error)))
        return False
    given.behind.append(found)
    if path.is_dir():
        given.folders.append(resolved(path))
    return True


def _printable(name: str) -> str:
    # A file name need not be valid Unicode; what is stored must be.
    return name.encode("utf-8", "backslashreplace").decode()
