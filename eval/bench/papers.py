"""Papers by the hundred thousand, recombined from the sentences of real ones, and their vectors."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rag.papers import to_paper
from rag.readers import read
from rag.sentences import sentence_spans
from rag.types import Paper, Record

# Sentences a paper: 7 to 9 make 3 or 4 chunks.
SENTENCES = (7, 8, 9)
VENUES = ("ACL", "ICLR", "ICML", "NeurIPS")
DIMENSION = 384
# Vectors of real texts lie near a surface of some tens of dimensions; random ones do not, and are
# far harder to index.
_INNER = 40


def papers_of(files: Sequence[Path]) -> Iterator[Paper]:
    """The papers in some files."""
    for file in files:
        for record in read(file, file.name):
            paper = to_paper(record) if isinstance(record, Record) else record
            if isinstance(paper, Paper):
                yield paper


def recombined(files: Sequence[Path], count: int, seed: int) -> Iterator[dict[str, object]]:
    """Records whose titles are real, and whose abstracts are sentences of real ones, all mixed."""
    titles, sentences = [], []
    for paper in papers_of(files):
        titles.append(paper.title)
        sentences += [paper.text[s.start : s.end] for s in sentence_spans(paper.text)]
    chance = random.Random(seed)
    for number in range(count):
        yield {
            "id": f"r{number}",
            "title": chance.choice(titles),
            "abstract": " ".join(chance.choices(sentences, k=chance.choice(SENTENCES))),
            "year": chance.randint(2000, 2026),
            "venue": chance.choice(VENUES),
        }


def write_recombined(out: Path, files: Sequence[Path], count: int, seed: int) -> None:
    """Write `recombined` as JSON lines."""
    with out.open("w", encoding="utf-8") as lines:
        for record in recombined(files, count, seed):
            lines.write(json.dumps(record, ensure_ascii=False) + "\n")


class GivenVectors:
    """An embedder that costs next to nothing: a text's vector is the mean of two of a few thousand.

    Which two, its hash says; so equal texts have equal vectors, and others share a half.
    """

    identity = "given"
    max_tokens = 1024

    def __init__(self, seed: int = 1) -> None:
        chance = np.random.default_rng(seed)
        inner = chance.standard_normal((8192, _INNER)) @ chance.standard_normal((_INNER, DIMENSION))
        self._halves = (inner / np.linalg.norm(inner, axis=1, keepdims=True)).astype(np.float32)

    def count_tokens(self, text: str) -> int:
        """A quarter of the characters."""
        return len(text) // 4 + 2

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, shape (n, 384)."""
        digests = b"".join(hashlib.blake2b(t.encode(), digest_size=4).digest() for t in texts)
        numbers = np.frombuffer(digests, dtype="<u2").reshape(-1, 2) % len(self._halves)
        mean = self._halves[numbers[:, 0]] + 0.9 * self._halves[numbers[:, 1]]
        scaled: NDArray[np.float32] = mean / np.linalg.norm(mean, axis=1, keepdims=True)
        return scaled.astype(np.float32)

    def queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """As `documents`."""
        return self.documents(texts)
