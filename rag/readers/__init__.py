"""Files and folders -> records; one module a format, chosen by content and only then by ending."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from rag.errors import ReadError
from rag.readers import json_records, text_list
from rag.readers.encoding import decode
from rag.types import Record, Rejected

__all__ = ["find_files", "read", "resolved"]

_LINE_ENDINGS = frozenset({".jsonl", ".ndjson"})
_JSON_ENDINGS = frozenset({".json"}) | _LINE_ENDINGS
# Formats without a reader yet: as plain text their markup would pass for abstracts.
_UNSUPPORTED = frozenset(".csv .tsv .bib .ris .nbib .enw .xml .gz".split())
# What no list of abstracts ends with; inside a folder such files are passed over.
_OTHER_ENDINGS = frozenset(
    ".png .jpg .jpeg .gif .webp .svg .bmp .ico .tif .tiff .heic .pdf .ps .eps .doc .docx "
    ".xls .xlsx .ppt .pptx .odt .ods .zip .tar .tgz .bz2 .xz .zst .7z .rar .mp3 .mp4 .mov "
    ".avi .mkv .wav .flac .py .pyc .pyi .ipynb .js .ts .css .html .htm .c .h .cc .cpp .hpp "
    ".rs .go .java .sh .bat .toml .yaml .yml .ini .cfg .lock .log .so .dll .dylib .exe .o "
    ".a .whl .egg .npy .npz .pt .pth .bin .gguf .onnx .safetensors .parquet .arrow .feather "
    ".h5 .hdf5 .pkl .pickle .db .sqlite .sqlite3 .ttf .otf .woff .woff2 .tex .sty .cls .bst".split()
)


def read(path: Path, name: str) -> Iterator[Record | Rejected]:
    """Every record of one file, in order, either as a `Record` or as `Rejected` with the reason.

    `name` is what `Source.file` will say.

    Raises:
        ReadError: the file is missing, unreadable, empty, no text or of a format not read yet.
    """
    ending = path.suffix.lower()
    if ending in _UNSUPPORTED:
        raise ReadError(
            f"{_shown(path)}: {ending} files are not read yet. Give it as JSON Lines, one "
            'object with "title" and "abstract" a line, or as a text list.'
        )
    text = _text_of(path)
    if ending in _JSON_ENDINGS or json_records.looks_like_json(text):
        yield from json_records.records(text, name, lines=ending in _LINE_ENDINGS)
    else:
        yield from text_list.records(text, name)


def find_files(paths: Sequence[Path]) -> list[tuple[Path, str]]:
    """Files to read with the names to record: folders are walked, in sorted order, each file once.

    A file is named by its own name, one in a folder by its way from that folder, the folder's name
    included ("papers/2026/list.txt"), so that the name does not depend on where the command runs.
    Names that would meet are made longer. Hidden files, and files whose ending says that they hold
    no abstracts, are taken only where `paths` names them.

    Raises:
        ReadError: a path does not exist, or a folder cannot be opened or holds nothing to read.
    """
    found: dict[Path, str] = {}
    for path in paths:
        try:
            is_folder = path.is_dir()
        except OSError as error:
            raise ReadError(
                f"{_shown(path)} cannot be read: {_why(error)}. Check the path and its permissions."
            ) from error
        if is_folder:
            _add_folder(path, found)
        elif os.path.lexists(path):
            found.setdefault(path, path.name)
        else:
            raise ReadError(f"There is no file or folder {_shown(path)}. Check the path.")
    unique: dict[Path, tuple[Path, str]] = {}
    for file, name in found.items():
        unique.setdefault(resolved(file), (file, name))
    return _distinctly_named(list(unique.values()))


def resolved(path: Path) -> Path:
    """Where `path` is, without symbolic links; a link that leads nowhere is where it stands itself.

    Unlike `Path.resolve`, which raises RuntimeError on a loop of links before Python 3.13.
    """
    try:
        return Path(os.path.realpath(path, strict=True))
    except OSError:
        return path.absolute()


def _add_folder(folder: Path, found: dict[Path, str]) -> None:
    top = resolved(folder).name
    before = len(found)
    for file in _walk(folder, frozenset()):
        relative = file.relative_to(folder).as_posix()
        found.setdefault(file, f"{top}/{relative}" if top else relative)
    if len(found) == before and not any(file.is_relative_to(folder) for file in found):
        raise ReadError(
            f"The folder {_shown(folder)} holds no file that could be a list of abstracts. "
            "Name a file, or a folder with .txt, .json or .jsonl files."
        )


def _walk(folder: Path, above: frozenset[Path]) -> Iterator[Path]:
    """Files below `folder`; `above` are the folders that a symbolic link must not lead back to."""
    here = resolved(folder)
    if here in above:
        return
    try:
        entries = sorted(folder.iterdir(), key=lambda entry: entry.name)
    except OSError as error:
        if not above:
            raise ReadError(
                f"The folder {_shown(folder)} cannot be opened: {_why(error)}. "
                "Check its permissions."
            ) from error
        # Handed on as if it were a file: reading it reports the reason, and the rest goes on.
        yield folder
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        try:
            is_folder, is_file = entry.is_dir(), entry.is_file() or entry.is_symlink()
        except OSError:  # reading it will say why not
            is_folder, is_file = False, True
        if is_folder:
            yield from _walk(entry, above | {here})
        elif is_file and entry.suffix.lower() not in _OTHER_ENDINGS:
            yield entry


def _distinctly_named(files: list[tuple[Path, str]]) -> list[tuple[Path, str]]:
    counts = Counter(name for _, name in files)
    return [
        (file, name if counts[name] == 1 else resolved(file).as_posix().lstrip("/"))
        for file, name in files
    ]


def _text_of(path: Path) -> str:
    try:
        # A pipe or device may never end.
        if not path.is_file():
            what = "is a folder that cannot be opened" if path.is_dir() else "is no file"
            raise ReadError(f"{_shown(path)} {what}. Check the path and its permissions.")
        data = path.read_bytes()
    except OSError as error:
        raise ReadError(
            f"{_shown(path)} cannot be read: {_why(error)}. Check its permissions."
        ) from error
    if not data.strip():
        raise ReadError(f"{_shown(path)} is empty. Give a file with abstracts, or leave it out.")
    try:
        return decode(data)
    except ReadError as error:
        raise ReadError(f"{_shown(path)} cannot be read. {error}") from error


def _why(error: OSError) -> str:
    return (error.strerror or os.strerror(error.errno or 0)).lower()


def _shown(path: Path) -> str:
    return repr(str(path).encode("utf-8", "backslashreplace").decode())
