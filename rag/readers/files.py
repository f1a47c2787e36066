"""Paths as the user gives them -> files to read, with the names to record."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from rag.errors import ReadError
from rag.readers.stream import STDIN, shown_path, why

# The name of what comes by standard input.
STDIN_NAME = "stdin"
# What no list of abstracts ends with; inside a folder such files are passed over.
_OTHER_ENDINGS = frozenset(
    ".png .jpg .jpeg .gif .webp .svg .bmp .ico .tif .tiff .heic .pdf .ps .eps .doc .docx "
    ".xls .xlsx .ppt .pptx .odt .ods .zip .tar .tgz .bz2 .xz .zst .7z .rar .mp3 .mp4 .mov "
    ".avi .mkv .wav .flac .py .pyc .pyi .ipynb .js .ts .css .html .htm .c .h .cc .cpp .hpp "
    ".rs .go .java .sh .bat .toml .yaml .yml .ini .cfg .lock .log .so .dll .dylib .exe .o "
    ".a .whl .egg .npy .npz .pt .pth .bin .gguf .onnx .safetensors .parquet .arrow .feather "
    ".h5 .hdf5 .pkl .pickle .db .sqlite .sqlite3 .ttf .otf .woff .woff2 .tex .sty .cls .bst".split()
)


def find_files(paths: Sequence[Path]) -> list[tuple[Path, str]]:
    """Files to read with the names to record: folders are walked, in sorted order, each file once.

    A file is named by its own name, one in a folder by its way from that folder, the folder's name
    included ("papers/2026/list.txt"), so that the name does not depend on where the command runs.
    Names that would meet are made longer. Hidden files, pipes and devices, and files whose ending
    says that they hold no abstracts, are taken only where `paths` names them. The path `-` is
    standard input.

    Raises:
        ReadError: a path does not exist, or a folder cannot be opened or holds nothing to read.
    """
    found: dict[Path, str] = {}
    for path in paths:
        if path == STDIN:
            found.setdefault(path, STDIN_NAME)
            continue
        try:
            is_folder = path.is_dir()
        except OSError as error:
            raise ReadError(
                f"{shown_path(path)} cannot be read: {why(error)}. "
                "Check the path and its permissions."
            ) from error
        if is_folder:
            # From `.`, a file called `-` would be standard input.
            _add_folder(path.absolute() if path == Path() else path, found)
        elif os.path.lexists(path):
            found.setdefault(path, path.name)
        else:
            raise ReadError(f"There is no file or folder {shown_path(path)}. Check the path.")
    unique: dict[Path, tuple[Path, str]] = {}
    for file, name in found.items():
        unique.setdefault(resolved(file), (file, name))
    return _distinctly_named(list(unique.values()))


def resolved(path: Path) -> Path:
    """Where `path` is, without symbolic links; a link that leads nowhere is where it stands itself.

    Standard input stays `-`. Unlike `Path.resolve`, which raises RuntimeError on a loop of links
    before Python 3.13.
    """
    if path == STDIN:
        return path
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
            f"The folder {shown_path(folder)} holds no file that could be a list of abstracts. "
            "Name a file, or a folder with .txt, .json, .jsonl, .csv, .bib or .ris files."
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
                f"The folder {shown_path(folder)} cannot be opened: {why(error)}. "
                "Check its permissions."
            ) from error
        # Handed on as if it were a file: reading it reports the reason, and the rest goes on.
        yield folder
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        try:
            is_folder = entry.is_dir()
            is_file = entry.is_file() or (entry.is_symlink() and not entry.exists())
        except OSError:  # reading it will say why not
            is_folder, is_file = False, True
        if is_folder:
            yield from _walk(entry, above | {here})
        elif is_file and not _is_other(entry):
            yield entry


def _is_other(file: Path) -> bool:
    """Whether its ending, also that of what is packed in it, says that it holds no abstracts."""
    inner = Path(file.stem) if file.suffix.lower() == ".gz" else file
    return inner.suffix.lower() in _OTHER_ENDINGS


def _distinctly_named(files: list[tuple[Path, str]]) -> list[tuple[Path, str]]:
    counts = Counter(name for _, name in files)
    return [
        (file, name if counts[name] == 1 else resolved(file).as_posix().lstrip("/"))
        for file, name in files
    ]
