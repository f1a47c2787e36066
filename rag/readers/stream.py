"""A file, pipe or standard input as text, a block at a time; gzip is unpacked on the way."""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from rag.errors import ReadError
from rag.readers.encoding import decode_blocks

# The path that stands for standard input.
STDIN = Path("-")
# Characters that a reader is chosen by.
HEAD = 65_536

_BLOCK = 262_144
# RFC 1952, 2.3.1
_GZIP = b"\x1f\x8b\x08"
# Bytes unpacked at once: what stands before damage in them is unpacked again, byte by byte.
_PACKED, _UNPACKED = 8_192, 1_048_576


class Stream:
    """Text as it comes in. `damage` says, once the text has ended, why it ends too early."""

    def __init__(self, file: BinaryIO, on_bytes: Callable[[int], None] | None = None) -> None:
        self.damage = ""
        raw = _raw(file, on_bytes)
        first = next(raw, b"")
        data: Iterator[bytes] = chain([first], raw)
        self._text = decode_blocks(self._unpacked(data) if first.startswith(_GZIP) else data)
        self._first: list[str] = []
        length = 0
        while length < HEAD and (block := next(self._text, None)) is not None:
            self._first.append(block)
            length += len(block)
        self.head = "".join(self._first)[:HEAD]

    def blocks(self) -> Iterator[str]:
        """The text from its beginning, once."""
        return chain(self._first, self._text)

    def lines(self) -> Iterator[str]:
        """The text's lines, each with the line feed that ends it."""
        return lines_of(self.blocks())

    def _unpacked(self, data: Iterable[bytes]) -> Iterator[bytes]:
        member = zlib.decompressobj(wbits=31)
        done = 0
        for block in data:
            for start in range(0, len(block), _PACKED):
                packed = block[start : start + _PACKED]
                while packed:
                    if member.eof:
                        packed = packed.lstrip(b"\x00")  # padding between or behind members
                        member = zlib.decompressobj(wbits=31) if packed else member
                        continue
                    before = member.copy()
                    try:
                        unpacked = [*_pieces(member, packed)]
                    except zlib.error as error:
                        yield _until_damage(before, packed)
                        why = str(error).rpartition(": ")[2]
                        self.damage = _damage(f"is damaged near byte {done} ({why})")
                        return
                    yield from unpacked
                    done += len(packed) - len(member.unused_data)
                    packed = member.unused_data
        if not member.eof:
            self.damage = _damage("has no end: it is cut off")


@contextmanager
def opened(path: Path, on_bytes: Callable[[int], None] | None = None) -> Iterator[Stream]:
    """The text at `path`; `-` is standard input, which stays open.

    `on_bytes` is told how many bytes were read at each time.

    Raises:
        ReadError: it cannot be opened or read, now or later, is empty, or is no text.
    """
    shown = "Standard input" if path == STDIN else shown_path(path)
    try:
        if path != STDIN and (path.is_dir() or not path.exists()):
            what = "is a folder that cannot be opened" if path.is_dir() else "is no file"
            raise ReadError(f"{shown} {what}. Check the path and its permissions.")
        with nullcontext(_standard_input()) if path == STDIN else path.open("rb") as file:
            with _named(shown):
                stream = Stream(file, on_bytes)
            if not stream.head.strip():
                raise ReadError(f"{shown} is empty. Give a file with abstracts, or leave it out.")
            with _named(shown):
                yield stream
    except OSError as error:
        raise ReadError(f"{shown} cannot be read: {why(error)}. Check its permissions.") from error


@contextmanager
def _named(shown: str) -> Iterator[None]:
    """Puts the name of the file before what is wrong with it."""
    try:
        yield
    except ReadError as error:
        raise ReadError(f"{shown} cannot be read. {error}") from error


def lines_of(blocks: Iterable[str]) -> Iterator[str]:
    """Blocks of text -> its lines, cut after each line feed and nowhere else."""
    parts: list[str] = []
    for block in blocks:
        start = 0
        while (end := block.find("\n", start)) >= 0:
            if parts:
                parts.append(block[start : end + 1])
                yield "".join(parts)
                parts.clear()
            else:
                yield block[start : end + 1]
            start = end + 1
        if start < len(block):
            parts.append(block[start:])
    if parts:
        yield "".join(parts)


def why(error: OSError) -> str:
    """The system's reason, as the end of a sentence."""
    return (error.strerror or os.strerror(error.errno or 0)).lower()


def shown_path(path: Path) -> str:
    """A path for a message, in quotes; it need not be valid Unicode."""
    return repr(str(path).encode("utf-8", "backslashreplace").decode())


def _standard_input() -> BinaryIO:
    if sys.stdin is None or sys.stdin.closed:
        raise ReadError("There is no standard input. Give a file, or pipe one into the command.")
    return sys.stdin.buffer


def _raw(file: BinaryIO, on_bytes: Callable[[int], None] | None) -> Iterator[bytes]:
    while block := file.read(_BLOCK):
        if on_bytes is not None:
            on_bytes(len(block))
        yield block


def _pieces(member: zlib._Decompress, packed: bytes) -> Iterator[bytes]:
    """What is in `packed`, in pieces that fit memory however well it was packed."""
    while True:
        piece = member.decompress(packed, _UNPACKED)
        yield piece
        packed = member.unconsumed_tail
        if not packed and len(piece) < _UNPACKED:
            return


def _until_damage(member: zlib._Decompress, packed: bytes) -> bytes:
    whole = bytearray()
    for byte in packed:
        try:
            whole += member.decompress(bytes([byte]))
        except zlib.error:
            break
    return bytes(whole)


def _damage(what: str) -> str:
    return f"The gzip file {what}; what follows was not read. Pack it again, or give it unpacked."
