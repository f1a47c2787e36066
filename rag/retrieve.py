"""A question to ranked papers and the sentences of theirs that bear on it.

Two rankings, BM25 over whole papers and the best embedded window of each, are fused by score; ties
go by paper ID. Then the sentences of the best papers are ranked for the language model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import log

import numpy as np
from numpy.typing import NDArray

from rag.config import RetrievalSettings
from rag.embed import Embedder
from rag.errors import UsageError
from rag.lexical import K1, B, tokens
from rag.passages import Passages
from rag.store import Store
from rag.text import visible
from rag.types import Evidence, Hit, Paper

# Longest question, in characters: some 2,000 tokens, beyond any reviewer's paragraph.
MAX_QUESTION = 8_000

# score = BM25 / best BM25 + DENSE_WEIGHT * cosine / best cosine. Chosen with a prototype (a plainer
# tokenizer, k1 = 1.5) among 2, 3, 4, 6: MRR@10 on neurips-2023 .480 .482 .481 .472, nDCG@10 on
# scifact .752 .762 .765 .774. Rank fusion at its best gave .468 and .762: it forgets by how much a
# paper wins. `make bench` measures what stands here.
DENSE_WEIGHT = 4.0

# Papers whose lexical score counts although their words alone would not make them candidates.
LEXICAL_DEPTH = 1_000

# How a sentence is rated: DENSE_WEIGHT parts its own cosine, one its own words, two its paper.
# On the development questions 8 sentences so chosen hold every expected fact of 96 % (by cosine
# alone 88 %), at 370 tokens instead of 1,250 for four whole abstracts.
PAPER_WEIGHT = 2.0

# Sentences rated below this share of the best one only distract.
RATING_FLOOR = 0.75

# Papers of the ranking that are kept on record, as nDCG@10 and the like want them.
RECORDED = 10

# Where the best of some scores is 0, dividing by this leaves them 0.
_LEAST = 1e-9

# (ID, fused score, dense rank, lexical rank)
Ranked = tuple[str, float, int | None, int | None]

# query ID -> paper ID -> score, higher is better.
Run = dict[str, dict[str, float]]


@dataclass(frozen=True, slots=True)
class RatedSentence:
    """A sentence and how well it bears on the question, 1.0 being the best of its question."""

    evidence: Evidence
    rating: float
    cosine: float


@dataclass(frozen=True, slots=True)
class Retrieval:
    """Papers best first, with their sentences best first across papers.

    `ranking` goes on where `hits` ends, without evidence, to `RECORDED` papers.
    """

    query: str
    hits: tuple[Hit, ...]
    sentences: tuple[RatedSentence, ...]
    ranking: tuple[Hit, ...] = ()


class Retriever:
    """Searches one store; papers' sentence vectors are kept for the next question."""

    def __init__(
        self, store: Store, embedder: Embedder, passages: Passages, settings: RetrievalSettings
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._passages = passages
        self._settings = settings

    def retrieve(
        self,
        query: str,
        papers: int | None = None,
        *,
        among: Collection[str] | None = None,
        named: Sequence[str] = (),
    ) -> Retrieval:
        """The `papers` best papers for `query` (default: the setting), and their sentences.

        Only papers `among` these IDs are found, where they are given. Papers `named` by ID come
        first, scored as the best, where the store and `among` have them.

        Raises:
            UsageError: the query is empty or too long.
        """
        query = checked(query)
        vector = self._embedder.queries([query])[0]
        most = papers or self._settings.papers
        fused = self._fuse(query, vector, max(most, RECORDED), among)
        fused = _with_named(fused, [i for i in named if among is None or i in among])
        ranked, further = fused[:most], fused[most:RECORDED]
        found = [self._store.paper(paper_id) for paper_id, *_ in ranked]
        scores = {paper_id: score for paper_id, score, *_ in ranked}
        sentences = self._rate(query, vector, found, scores)
        hits = tuple(
            Hit(paper, score, dense, lexical, _best(sentences, paper))
            for paper, (_, score, dense, lexical) in zip(found, ranked, strict=True)
        )
        rest = tuple(
            Hit(self._store.paper(paper_id), score, dense, lexical)
            for paper_id, score, dense, lexical in further
        )
        return Retrieval(query, hits, sentences, (*hits, *rest))

    def rankings(
        self,
        queries: Mapping[str, str],
        papers: int,
        systems: Collection[str] = ("hybrid", "bm25", "dense"),
    ) -> dict[str, Run]:
        """Runs of the hybrid and of each ranking alone: query -> paper -> score, best first.

        Nothing is computed that `systems` does not name.
        """
        runs: dict[str, Run] = {system: {} for system in systems}
        for query_id, query in queries.items():
            vector = self._embedder.queries([query])[0] if {*systems} - {"bm25"} else None
            for system in systems:
                runs[system][query_id] = dict(self._ranked(system, query, vector, papers))
        return runs

    def _ranked(
        self, system: str, query: str, vector: NDArray[np.float32] | None, papers: int
    ) -> list[tuple[str, float]]:
        if system == "bm25" or vector is None:
            return self._store.lexical().rank(query, papers)
        if system == "hybrid":
            return [(p, score) for p, score, *_ in self._fuse(query, vector, papers)[:papers]]
        return self._store.nearest(vector, papers)

    def paper(self, paper_id: str) -> Paper | None:
        """The paper of exactly this ID, if the store has one."""
        return self._store.catalog.by_id(paper_id)

    def _fuse(
        self,
        query: str,
        vector: NDArray[np.float32],
        papers: int,
        among: Collection[str] | None = None,
    ) -> list[Ranked]:
        """Best first; `papers` of them are wanted."""
        depth = max(self._settings.candidates, papers)
        dense = dict(self._store.nearest(vector, depth, among))
        lexical = dict(self._store.lexical().rank(query, LEXICAL_DEPTH, among))
        further = [p for p in islice(lexical, depth) if p not in dense]
        # Without those that a writer has removed since the words were indexed.
        cosines = {**dense, **dict(self._store.nearest(vector, depth, further))}
        fused = fuse(cosines, lexical)
        dense_rank = {p: rank for rank, p in enumerate(dense, start=1)}
        lexical_rank = {p: rank for rank, p in enumerate(lexical, start=1)}
        return [(p, s, dense_rank.get(p), lexical_rank.get(p)) for p, s in fused]

    def _rate(
        self,
        query: str,
        vector: NDArray[np.float32],
        papers: Sequence[Paper],
        scores: Mapping[str, float],
    ) -> tuple[RatedSentence, ...]:
        """Every sentence of `papers`, best first; ties by paper ID and place."""
        rows = [
            (Evidence(paper.id, paper.text[span.start : span.end], span.start, span.end), cosine)
            for paper in papers
            for span, cosine in zip(*self._passages.cosines(paper, vector), strict=True)
        ]
        if not rows:
            return ()
        words = _sentence_bm25(query, [evidence.text for evidence, _ in rows])
        best_cosine = max(_LEAST, *(cosine for _, cosine in rows))
        best_words, best_paper = max(_LEAST, *words), max(_LEAST, *scores.values())
        rated = [
            RatedSentence(
                evidence,
                DENSE_WEIGHT * max(cosine, 0.0) / best_cosine
                + word / best_words
                + PAPER_WEIGHT * scores[evidence.paper_id] / best_paper,
                cosine,
            )
            for (evidence, cosine), word in zip(rows, words, strict=True)
        ]
        top = max(_LEAST, *(row.rating for row in rated))
        scaled = [RatedSentence(r.evidence, r.rating / top, r.cosine) for r in rated]
        return tuple(
            sorted(scaled, key=lambda r: (-r.rating, r.evidence.paper_id, r.evidence.start))
        )


def checked(question: str) -> str:
    """The question, trimmed.

    Raises:
        UsageError: it is empty or longer than `MAX_QUESTION` characters.
    """
    question = question.strip()
    if not any(c.isalnum() for c in visible(question)):
        raise UsageError('The question is empty. Ask something, as in: rag ask "What is ...?"')
    if len(question) > MAX_QUESTION:
        raise UsageError(
            f"The question has {len(question):,} characters; at most {MAX_QUESTION:,} can be "
            "read at once. Ask its parts one by one."
        )
    return question


def fuse(cosines: Mapping[str, float], lexical: Mapping[str, float]) -> list[tuple[str, float]]:
    """(ID, score) of every paper in `cosines`, best first, ties by ID; `lexical` may lack some.

    Scores are 0..1. A cosine below 0 counts as 0: it tells as little.
    """
    if not cosines:
        return []
    best_cosine = max(_LEAST, *cosines.values())
    best_lexical = max(lexical.values(), default=0.0) or 1.0
    scores = {
        paper_id: (
            lexical.get(paper_id, 0.0) / best_lexical
            + DENSE_WEIGHT * max(cosine, 0.0) / best_cosine
        )
        / (1.0 + DENSE_WEIGHT)
        for paper_id, cosine in cosines.items()
    }
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))


def _with_named(fused: Sequence[Ranked], named: Sequence[str]) -> list[Ranked]:
    """The papers `named` first, with the best score, in their order; then the others."""
    top = fused[0][1] if fused else 1.0
    ranks = {row[0]: row for row in fused}
    first = [(i, top, *ranks.get(i, (i, 0.0, None, None))[2:]) for i in dict.fromkeys(named)]
    return [*first, *(row for row in fused if row[0] not in named)]


def _best(sentences: Sequence[RatedSentence], paper: Paper, most: int = 2) -> tuple[Evidence, ...]:
    """The paper's best sentences, in reading order."""
    own = [row.evidence for row in sentences if row.evidence.paper_id == paper.id][:most]
    return tuple(sorted(own, key=lambda evidence: evidence.start))


def _sentence_bm25(query: str, sentences: Sequence[str]) -> list[float]:
    """BM25 of each sentence, document frequencies taken among `sentences` themselves."""
    documents = [Counter(tokens(sentence)) for sentence in sentences]
    lengths = [sum(document.values()) for document in documents]
    mean = sum(lengths) / len(lengths) or 1.0
    wanted = set(tokens(query))
    frequency = {word: sum(word in document for document in documents) for word in wanted}
    weight = {
        word: log(1 + (len(documents) - n + 0.5) / (n + 0.5)) for word, n in frequency.items()
    }
    return [
        sum(
            weight[word] * document[word] / (document[word] + K1 * (1 - B + B * length / mean))
            for word in wanted & document.keys()
        )
        for document, length in zip(documents, lengths, strict=True)
    ]
