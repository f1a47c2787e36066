"""BM25 of postings: pure arithmetic over arrays.

Okapi BM25 in Lucene's variant (Kamphuis et al. 2020, https://doi.org/10.1007/978-3-030-45442-5_4):
idf = ln(1 + (N - df + 0.5) / (df + 0.5)); each occurrence of a word in the query counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Lucene's own defaults.
K1 = 1.2
B = 0.75

# The length of a paper that is no longer there. One without words has 0.
GONE = -1


@dataclass(frozen=True, slots=True)
class Postings:
    """What some words occur in, one row a word and block of documents.

    `terms[r]` is the word of row r, `sizes[r]` how many of the entries are the row's; entry i says
    that document `documents[i]` has the row's word `counts[i]` times.
    """

    terms: Sequence[str]
    sizes: NDArray[np.int64]
    documents: NDArray[np.int64]
    counts: NDArray[np.uint8]


def bm25(
    wanted: Mapping[str, int], postings: Postings, lengths: NDArray[np.int64]
) -> NDArray[np.float64]:
    """A score for each document, higher is better; 0.0 where it shares no word or is gone.

    `wanted` is how often the query has each word, `lengths[d]` the words of document d. Frequencies
    and the average are those of the documents that are there, so that none that ever left has a
    share in a score. Rows of a word that stands first in order must come first: sums of floats
    depend on it.
    """
    alive = lengths >= 0
    present = int(alive.sum())
    if not present or not len(postings.documents):
        return np.zeros(len(lengths))
    average = float(lengths[alive].sum()) / present or 1.0
    norms = np.where(alive, K1 * (1 - B + B * lengths / average), np.inf)
    starts = np.cumsum(postings.sizes) - postings.sizes
    living = np.add.reduceat(alive[postings.documents], starts, dtype=np.int64)
    frequency = dict.fromkeys(postings.terms, 0)
    for term, held in zip(postings.terms, living.tolist(), strict=True):
        frequency[term] += held
    weight = {
        term: wanted[term] * float(np.log1p((present - df + 0.5) / (df + 0.5)))
        for term, df in frequency.items()
    }
    counts = postings.counts.astype(np.float64)
    shares = counts / (counts + norms[postings.documents])
    shares *= np.repeat([weight[term] for term in postings.terms], postings.sizes)
    sums = np.bincount(postings.documents, weights=shares, minlength=len(lengths))
    return sums.astype(np.float64, copy=False)


def best(scores: NDArray[np.float64], ids: Sequence[str], k: int) -> list[tuple[str, float]]:
    """The `k` best of the scores above 0: (ID, score), best first, ties by ID."""
    found = np.flatnonzero(scores > 0)
    if len(found) > k > 0:
        # All that tie with the last of them, so that the ID decides and not the place.
        found = found[scores[found] >= np.partition(scores[found], -k)[-k]]
    ranked = sorted((-float(scores[d]), ids[d]) for d in found.tolist())
    return [(paper_id, -score) for score, paper_id in ranked[:k]]
