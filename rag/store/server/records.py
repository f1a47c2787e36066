"""What a paper, or a file that was read, is on the server: one record that is complete in itself.

A record is the rows of a catalog that belong together, as JSON, compressed, in base64, cut into
metadata values `json0`, `json1`... Not as a document: Chroma indexes every three letters of those,
which takes three times as long and five times the disk (600 papers/s against 2,000, 20 KB a paper
against 4), and hosted Chroma allows 16 KB a document and 4 KB a value.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag.errors import StoreError

PART = 4_000
# Parts of a paper that has gone; few have had more than one.
_BLANKED = 8
# Beyond any paper; a record that claims to be larger was not written here.
MOST_BYTES = 64 * 1024 * 1024

# The columns of a catalog that a record has, with their kinds.
PAPER = {
    "pk": int,
    "id": str,
    "title": str,
    "title_derived": int,
    "text": str,
    "original": str,
    "metadata": str,
    "content_hash": str,
}
SOURCE = {
    "pk": int,
    "file": str,
    "position": int,
    "record_id": str | None,
    "doi": str | None,
    "arxiv": str | None,
    "text_key": int | None,
    "run": int,
    "since": int,
}
FILE = {
    "name": str,
    "path": str | None,
    "content_hash": str,
    "reading": str,
    "run": int,
    "places": int,
    "report": str,
}

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PaperRecord:
    """A paper: its row, its sources' rows in order, and (number, first, last, key) of its chunks.

    `key` is that of the chunk's vector on the server.
    """

    row: Row
    sources: Sequence[Row]
    chunks: Sequence[tuple[int, int, int, str]]


@dataclass(frozen=True, slots=True)
class FileRecord:
    """A file that was read: its row."""

    row: Row


@dataclass(frozen=True, slots=True)
class Gone:
    """A paper ("paper") or a file ("file") that is there no longer."""

    kind: str
    name: str


Record = PaperRecord | FileRecord | Gone


def record_key(kind: str, name: str) -> str:
    """The key of a record: short and plain, whatever characters an ID or a file name has."""
    return f"{kind}-{hashlib.blake2b(name.encode('utf-8'), digest_size=16).hexdigest()}"


def chunk_key(paper_id: str, number: int, vector: bytes) -> str:
    """The key of a vector: another vector never takes its place, the same one always does."""
    digest = hashlib.blake2b(vector, digest_size=16)
    digest.update(f"{number} {paper_id}".encode())
    return digest.hexdigest()


def pack(record: Record, revision: int) -> dict[str, str | int | bool]:
    """The metadata of a record.

    >>> pack(Gone("paper", "p-1"), 7)["rev"]
    7
    """
    text = json.dumps(_content(record), ensure_ascii=False, separators=(",", ":"))
    packed = base64.b64encode(zlib.compress(text.encode("utf-8"))).decode("ascii")
    gone = isinstance(record, Gone)
    parts = [packed[start : start + PART] for start in range(0, len(packed), PART)]
    return {
        "rev": revision,
        "gone": gone,
        # Metadata is merged on writing: parts of a longer record that stood here remain.
        "parts": len(parts),
        **{f"json{number}": part for number, part in enumerate(parts)},
        # What is gone shall not be read there any more.
        **({f"json{number}": "" for number in range(len(parts), _BLANKED)} if gone else {}),
    }


def unpack(metadata: Mapping[str, Any]) -> Record:
    """The record of some metadata.

    Raises:
        StoreError: it is none that this version wrote.
    """
    try:
        packed = "".join(metadata[f"json{number}"] for number in range(metadata["parts"]))
        data = zlib.decompressobj().decompress(base64.b64decode(packed), MOST_BYTES)
        return _record(json.loads(data))
    except (KeyError, TypeError, ValueError, RecursionError, zlib.error) as error:
        raise StoreError(
            "The server holds a record that this version did not write "
            f"({type(error).__name__}). Use the version of the program that made the store, or "
            "`rag index rebuild` on a machine that has used it before."
        ) from error


def _content(record: Record) -> dict[str, Any]:
    if isinstance(record, PaperRecord):
        return {"paper": record.row, "sources": record.sources, "chunks": record.chunks}
    if isinstance(record, FileRecord):
        return {"file": record.row}
    return {"gone": [record.kind, record.name]}


def _record(content: Mapping[str, Any]) -> Record:
    if "gone" in content:
        kind, name = content["gone"]
        return Gone(str(kind), str(name))
    if "file" in content:
        return FileRecord(_row(content["file"], FILE))
    chunks = [
        (int(n), int(first), int(last), str(key)) for n, first, last, key in content["chunks"]
    ]
    sources = [_row(source, SOURCE) for source in content["sources"]]
    return PaperRecord(_row(content["paper"], PAPER), sources, chunks)


def _row(found: Mapping[str, Any], kinds: Mapping[str, Any]) -> Row:
    row = {column: found[column] for column in kinds}
    for column, value in row.items():
        if not isinstance(value, kinds[column]):
            raise TypeError(f"{column} is {type(value).__name__}")
    return row
