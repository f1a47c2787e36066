"""Papers whose vectors a reader can compute by hand, and stores on a server that hold them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from doubles.embedder import WORDS, WordCountEmbedder

from rag.config import ServerAddress
from rag.entries import entries
from rag.store import fingerprint_of, open_store
from rag.store.server.records import PaperRecord, unpack
from rag.store.server.remote import Remote
from rag.store.server.rest import Rest
from rag.types import Paper, Source

EMBEDDER = WordCountEmbedder()
FINGERPRINT = fingerprint_of(EMBEDDER)


def paper(paper_id: str, text: str, number: int = 1, **other: Any) -> Paper:
    return Paper(paper_id, f"Title {paper_id}", text, text, (Source("list.txt", number),), **other)


PAPERS = [
    paper("aaa", "A graph of a graph."),
    paper("bbb", "An image with noise. The image is a protein.", 2),
    paper("ccc", "Language and reward.", 3, metadata={"year": 2026, "authors": ["Ä. Ö"]}),
    paper("ddd", "A graph of a graph.", 4),
]


def many() -> list[Paper]:
    """240 papers of two chunks, no two of which count the words alike."""
    found = [c for c in itertools.product(range(3), repeat=6) if 3 <= sum(c) <= 8][:480]
    sentences = [
        " ".join(w for w, n in zip(WORDS, c, strict=True) for _ in range(n)).capitalize() + "."
        for c in found
    ]
    pairs = zip(sentences[::2], sentences[1::2], strict=True)
    texts = [" ".join([a, "Then.", "So.", b]) for a, b in pairs]
    return [Paper(f"p{i:03}", "", t, t, (Source("f", i),)) for i, t in enumerate(texts)]


def fill(where: Path | ServerAddress, papers: Sequence[Paper] = PAPERS) -> None:
    with open_store(where, FINGERPRINT, write=True) as store:
        store.upsert(entries(papers, EMBEDDER))


def tables(where: ServerAddress) -> list[list[Any]]:
    """All that a machine's copy holds, but for the numbers of chunks."""
    with open_store(where, FINGERPRINT) as store:
        return [
            store.catalog.rows("SELECT * FROM papers ORDER BY pk"),
            store.catalog.rows("SELECT * FROM sources ORDER BY pk"),
            store.catalog.rows("SELECT * FROM files ORDER BY name"),
            store.catalog.rows(
                "SELECT paper_pk, number, first, last, vector FROM chunks ORDER BY paper_pk, number"
            ),
            [store.catalog.meta("dimension")],
        ]


def on_server(where: ServerAddress) -> tuple[set[str], dict[str, str]]:
    """Keys of all vectors, and those that papers name with the papers' IDs, straight from there."""
    with closing(Remote(Rest(where))) as remote:
        head = remote.head()
        assert head is not None
        keys: set[str] = set()
        while page := remote.chunks(head).page(len(keys), keys_only=True):
            keys |= set(page)
        records = [unpack(m) for m in remote.papers(head).page(0).values()]
    named = {
        chunk[3]: str(record.row["id"])
        for record in records
        if isinstance(record, PaperRecord)
        for chunk in record.chunks
    }
    return keys, named


def papers_of(where: ServerAddress) -> list[Paper]:
    with open_store(where, None) as store:
        return list(store.papers())
