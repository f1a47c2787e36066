"""What a catalog is made of: its tables, and the values that go into them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rag.types import Chunk, Paper, Source

SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE papers (
    pk INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, title TEXT NOT NULL,
    title_derived INTEGER NOT NULL, text TEXT NOT NULL, original TEXT NOT NULL,
    metadata TEXT NOT NULL, content_hash TEXT NOT NULL);
CREATE INDEX papers_by_content ON papers (content_hash);
CREATE TABLE sources (
    pk INTEGER PRIMARY KEY, paper_pk INTEGER NOT NULL REFERENCES papers ON DELETE CASCADE,
    file TEXT NOT NULL, position INTEGER NOT NULL, record_id TEXT,
    UNIQUE (paper_pk, file, position));
CREATE INDEX sources_by_file ON sources (file);
CREATE INDEX sources_by_record_id ON sources (record_id);
CREATE TABLE chunks (
    pk INTEGER PRIMARY KEY AUTOINCREMENT,
    paper_pk INTEGER NOT NULL REFERENCES papers ON DELETE CASCADE,
    number INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
    vector BLOB NOT NULL, in_chroma INTEGER NOT NULL DEFAULT 0, UNIQUE (paper_pk, number));
CREATE INDEX chunks_not_in_chroma ON chunks (pk) WHERE in_chroma = 0;
CREATE TABLE chroma_deletions (chunk_pk INTEGER PRIMARY KEY);
CREATE TRIGGER chunk_removed AFTER DELETE ON chunks WHEN old.in_chroma = 1
    BEGIN INSERT INTO chroma_deletions VALUES (old.pk); END;
"""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What built a store. Vectors of different fingerprints must never be compared."""

    embedder: str
    chunking: str
    cleaning: str

    def __str__(self) -> str:
        return f"embedding {self.embedder}, chunking {self.chunking}, cleaning {self.cleaning}"


@dataclass(frozen=True, slots=True)
class Entry:
    """A paper to store; `vectors` has one float32 row a chunk. None keeps the stored chunks."""

    paper: Paper
    content_hash: str
    chunks: Sequence[Chunk] | None = None
    vectors: NDArray[np.float32] | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """That `source` holds the paper, under `record_id` where the source has an ID of its own."""

    paper_id: str
    source: Source
    record_id: str | None = None
