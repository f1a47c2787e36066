"""What the tests of ingesting share: a folder with files, its store, and three abstracts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from doubles.embedder import WordCountEmbedder

from rag.ingest import IngestSummary, ingest
from rag.store import Store, fingerprint_of
from rag.types import Paper

GRAPH = "We study graph networks, and every graph has noise in it."
IMAGE = "An image model is shown that needs no language at all."
PROTEIN = "A protein folds because of the reward that physics pays."


class Desk:
    """A folder with files, a store and an embedder that remembers what it embedded."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = folder / "store"
        self.embedder = WordCountEmbedder()

    def write(self, name: str, *records: Mapping[str, object]) -> Path:
        path = self.folder / name
        path.write_text("".join(json.dumps(r) + "\n" for r in records))
        return path

    def ingest(self, *names: str, **options: Any) -> IngestSummary:
        paths = [self.folder / name for name in names]
        return ingest(paths, self.store, self.embedder, **options)

    def take(self, name: str, *records: Mapping[str, object]) -> IngestSummary:
        self.write(name, *records)
        return self.ingest(name)

    def papers(self) -> dict[str, Paper]:
        with Store.open(self.store, fingerprint_of(self.embedder)) as store:
            return {paper.id: paper for paper in store.papers()}


def record(abstract: str, paper_id: str | None = None, **other: object) -> dict[str, object]:
    return {**({"id": paper_id} if paper_id else {}), "abstract": abstract, **other}


def counts(summary: IngestSummary) -> tuple[int, int, int, int, int]:
    """Added, updated, unchanged, duplicates, rejected."""
    return (
        summary.added,
        summary.updated,
        summary.unchanged,
        summary.duplicates,
        len(summary.rejected),
    )
