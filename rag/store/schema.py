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
    metadata TEXT NOT NULL, content_hash TEXT NOT NULL,
    title_key INTEGER, start_key INTEGER, end_key INTEGER);
CREATE INDEX papers_by_content ON papers (content_hash);
CREATE TABLE sources (
    pk INTEGER PRIMARY KEY, paper_pk INTEGER NOT NULL REFERENCES papers ON DELETE CASCADE,
    file TEXT NOT NULL, position INTEGER NOT NULL, record_id TEXT,
    doi TEXT, arxiv TEXT, text_key INTEGER,
    run INTEGER NOT NULL DEFAULT 0, since INTEGER NOT NULL DEFAULT 0,
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

# What papers and places are looked up by, and which files were read. A store made before these has
# the tables above without the columns that follow here; columns are in the same order in both.
KEYED = """
CREATE TABLE files (
    name TEXT PRIMARY KEY, path TEXT, content_hash TEXT NOT NULL, reading TEXT NOT NULL,
    run INTEGER NOT NULL, places INTEGER NOT NULL, report TEXT NOT NULL);
CREATE UNIQUE INDEX files_by_path ON files (path);
CREATE INDEX papers_by_title ON papers (title_key);
CREATE INDEX papers_by_start ON papers (start_key);
CREATE INDEX papers_by_end ON papers (end_key);
CREATE INDEX papers_without_keys ON papers (pk) WHERE start_key IS NULL;
CREATE INDEX sources_by_doi ON sources (doi) WHERE doi IS NOT NULL;
CREATE INDEX sources_by_arxiv ON sources (arxiv) WHERE arxiv IS NOT NULL;
CREATE INDEX sources_by_text ON sources (text_key);
"""
ADDED_COLUMNS = """
ALTER TABLE papers ADD COLUMN title_key INTEGER;
ALTER TABLE papers ADD COLUMN start_key INTEGER;
ALTER TABLE papers ADD COLUMN end_key INTEGER;
ALTER TABLE sources ADD COLUMN doi TEXT;
ALTER TABLE sources ADD COLUMN arxiv TEXT;
ALTER TABLE sources ADD COLUMN text_key INTEGER;
ALTER TABLE sources ADD COLUMN run INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sources ADD COLUMN since INTEGER NOT NULL DEFAULT 0;
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
    """That `source` holds the paper, under `record_id` where the source has an ID of its own.

    `doi` and `arxiv` are the source's, `text_key` stands for the abstract as it has it (see
    `rag.keys`), and `run` is the number of the ingest that last read it there.
    """

    paper_id: str
    source: Source
    record_id: str | None = None
    doi: str | None = None
    arxiv: str | None = None
    text_key: int | None = None
    run: int = 0


@dataclass(frozen=True, slots=True)
class FileRead:
    """A file that was read to its end: what it is called, where it is, and what came of it.

    `content_hash` is that of its bytes, empty where it must be read again every time; `reading`
    names the version and the settings of the reader; `report` is what a later run repeats.
    """

    name: str
    path: str | None
    content_hash: str = ""
    reading: str = ""
    run: int = 0
    places: int = 0
    report: str = ""
