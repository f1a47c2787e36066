"""A collection of three papers to be searched, and what a command measured of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from doubles.commands import RECORDS, Rag, write

QUERIES = (
    {"id": "q1", "text": "How does AlphaNet lower the graph noise?"},
    {"id": "q2", "text": "Which network folds a protein?"},
    {"id": "q3", "text": "GammaNet draws an image"},
    {"id": "unjudged", "text": "noise"},
)
QRELS = "query-id\tcorpus-id\tscore\nq1\talpha\t2\nq1\tgone\t1\nq2\tbeta\t1\nq3\tbeta\t1\n"


def nets() -> Path:
    """A folder of a collection: three papers, four queries, judgements of three."""
    path = Path("nets")
    path.mkdir()
    write("nets/corpus.jsonl", *RECORDS, {"id": "short", "abstract": "Too short."})
    write("nets/queries.jsonl", *QUERIES)
    (path / "qrels.tsv").write_text(QRELS, encoding="utf-8")
    return path


def measured(rag: Rag, *arguments: str | Path) -> dict[str, Any]:
    ran = rag("eval", "retrieval", *arguments, "--json")
    assert ran.code == 0, ran.err
    return ran.json


def values(system: dict[str, Any]) -> dict[str, float]:
    return {name: found["value"] for name, found in system["measures"].items()}


def write_qrels_file(text: str) -> Path:
    path = Path("qrels.txt")
    path.write_text(text, encoding="utf-8")
    return path
