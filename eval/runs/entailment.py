"""Entailment of an answer's statements by the papers they cite, as citation metrics ask for it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag.embed import Embedder
from rag.passages import Passages
from rag.types import Paper, Span
from rag.verify import Judge, Verifier

# Texts whose vectors are kept: the statements of one answer and their joined quotes.
KEPT = 64

FindPaper = Callable[[str], Paper | None]


class Entailment:
    """phi(citations, statement) in {0, 1}: whether `rag.verify` calls the statement supported.

    An ID that `find` does not know gives no support. `judge` is asked where a statement is in
    another script than its paper, as when the answer was made.
    """

    def __init__(self, passages: Passages, find: FindPaper, judge: Judge | None = None) -> None:
        self._verifier = Verifier(_Borrowed(passages), judge and functools.lru_cache(KEPT)(judge))
        self._find = find

    def of(self, statements: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """For each statement as in `rag ask --json`: `{"all", "each", "without"}`.

        `all`: all its citations together support it; `each`: each one alone; `without`: all but
        that one, False where nothing is left.
        """
        return [self._entry(statement) for statement in statements]

    def _entry(self, statement: Mapping[str, Any]) -> dict[str, Any]:
        cited = tuple(citation["paper_id"] for citation in statement["citations"])
        papers = {paper_id: self._find(paper_id) for paper_id in cited}
        # The verdict of the answer is that of the same verifier on the same papers.
        whole = all(papers.values()) and bool(cited)
        known = {cited: bool(statement["supported"])} if whole else {}

        def supported(ids: tuple[str, ...]) -> bool:
            if ids not in known:
                found = [paper for i in ids if (paper := papers[i]) is not None]
                known[ids] = self._verifier.check(statement["text"], found).supported
            return known[ids]

        return {
            "all": supported(cited),
            "each": [supported((paper_id,)) for paper_id in cited],
            "without": [supported(cited[:i] + cited[i + 1 :]) for i in range(len(cited))],
        }


class _Borrowed(Passages):
    """The sentences of other passages, and the vectors of recent texts."""

    def __init__(self, passages: Passages) -> None:
        super().__init__(_Recent(passages.embedder))
        self._passages = passages

    def sentences(self, paper: Paper) -> tuple[list[Span], NDArray[np.float32]]:
        return self._passages.sentences(paper)


class _Recent:
    """An embedder that does not soon embed the same text again."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.identity = embedder.identity
        self.max_tokens = embedder.max_tokens
        self.count_tokens = embedder.count_tokens
        self.queries = embedder.queries
        self._vector = functools.lru_cache(KEPT)(self._embed)

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.concatenate([self._vector(text) for text in texts])

    def _embed(self, text: str) -> NDArray[np.float32]:
        return self._embedder.documents([text])
