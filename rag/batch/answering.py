"""Questions to lines of results, with one answerer and what it answered before."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rag.answer import Turn
from rag.batch.cache import AnswerCache
from rag.batch.engine import now
from rag.batch.failures import explained, stops_all
from rag.batch.identity import identity, made_with
from rag.batch.metered import Metered, Tally
from rag.batch.questions import fingerprint
from rag.chat_model import ChatModel
from rag.config import Settings
from rag.errors import ModelError, RagError, StoreError
from rag.render import answer_json, sources_json
from rag.session import Search, answerer_for
from rag.store import Store
from rag.types import Answer, Hit, Usage


class Answering:
    """Makes result lines; several threads may call `line` at a time.

    `identity` names all that determines an answer, `made_with` is its digest.

    Raises:
        StoreError: the papers cannot be read.
        ModelError: the model's file cannot be read.
    """

    identity: Mapping[str, str]
    made_with: str

    def __init__(
        self, search: Search, model: ChatModel, settings: Settings, cache: AnswerCache | None
    ) -> None:
        self._model = Metered(model)
        self._answerer = answerer_for(search, self._model, settings)
        self._corpus = _Corpus(search.store)
        self._cache = cache
        self._seed = settings.answer.seed
        embedder = search.passages.embedder.identity
        try:
            self.identity = identity(
                settings, model.name, embedder, search.store.fingerprint, self._corpus.digest
            )
        except OSError as error:
            raise ModelError(f"A file that answers depend on cannot be read: {error}.") from error
        self.made_with = made_with(self.identity)

    def line(
        self,
        item_id: str,
        question: str,
        history: Sequence[Turn],
        attempt: int,
        among: Collection[str] | None = None,
    ) -> dict[str, Any]:
        """The result of one question, as `eval.items` documents it, and what it "spent" in tokens.

        Only papers `among` these IDs are found, where they are given. An error that only this
        question meets becomes the line's "error". "spent" counts what failed too, and estimates
        where the endpoint does not count. "asked" stands for the question after its history.

        Raises:
            StoreError, ConfigError, EndpointDownError: further questions would fail alike.
        """
        tally = self._model.begin()
        content: dict[str, Any] = {"answer": None, "notes": [], "retrieved": [], "unknown_ids": []}
        cached, problem = False, None
        try:
            cached, content = self._answered(question, history, among, tally)
        except Exception as error:
            if stops_all(error):
                raise
            problem = explained(error)
        return {
            "id": item_id,
            "question": question,
            "asked": fingerprint(question, history),
            "attempt": attempt,
            "seed": self._seed,
            "made_with": self.made_with,
            "prompt_hash": self.identity["prompts"],
            "at": now(),
            "cached": cached,
            **content,
            "error": problem,
            "spent": _usage_json(tally.usage),
        }

    def _answered(
        self,
        question: str,
        history: Sequence[Turn],
        among: Collection[str] | None,
        tally: Tally,
    ) -> tuple[bool, dict[str, Any]]:
        """Whether it was kept from before, and what a line says of the answer."""
        self._corpus.require_unchanged()
        key = self._key(question, history, among)
        kept = self._kept(key)
        if kept is not None:
            return True, kept
        answer = self._answerer.answer(question, history, among=among)
        # Once more: an answer from papers that came meanwhile must not be kept under the old ones.
        self._corpus.require_unchanged()
        content = content_json(answer)
        if self._cache is not None and not tally.truncated:
            self._cache.put(key, content)
        return False, content

    def _key(self, question: str, history: Sequence[Turn], among: Collection[str] | None) -> str:
        within = None if among is None else sorted(among)
        parts = [dict(self.identity), question, [asdict(turn) for turn in history], within]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def _kept(self, key: str) -> dict[str, Any] | None:
        kept = self._cache.get(key) if self._cache is not None else None
        try:
            return None if kept is None else self._corpus.placed(kept)
        except (KeyError, TypeError, RagError):
            return None


class _Corpus:
    """The papers of one store, which must stay the same for as long as a run lasts."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._state = store.catalog.state
        self.digest = store.corpus_digest()
        self._mutex = threading.Lock()

    def require_unchanged(self) -> None:
        """Make sure that the papers are those of the run's beginning.

        Raises:
            StoreError: they have changed.
        """
        with self._mutex:
            state = self._store.catalog.state
            if state == self._state:
                return
            if self._store.corpus_digest() != self.digest:
                raise StoreError(
                    f"The papers in {self._store.where} changed while this run was at work. What "
                    "is done is kept; start again with another file for the results."
                )
            self._state = state

    def placed(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """A kept answer, its papers' sources as this store has them."""
        answer = content["answer"]
        papers = [self._store.paper(paper["paper_id"]) for paper in answer["papers"]]
        placed = [
            {"paper_id": p.id, "title": p.title, "sources": sources_json(p.sources)} for p in papers
        ]
        return {**content, "answer": {**answer, "papers": placed}}


def content_json(answer: Answer) -> dict[str, Any]:
    """What a line says of an answer: the answer, its notes, the papers found and unknown IDs."""
    cited = {c.paper_id for statement in answer.statements for c in statement.citations}
    known = {hit.paper.id for hit in answer.retrieved}
    return {
        "answer": answer_json(answer),
        "notes": list(answer.notes),
        "retrieved": [_hit_json(rank, hit) for rank, hit in enumerate(answer.retrieved, start=1)],
        "unknown_ids": sorted(cited - known),
    }


def _hit_json(rank: int, hit: Hit) -> dict[str, Any]:
    return {
        "rank": rank,
        "paper_id": hit.paper.id,
        "title": hit.paper.title,
        "score": round(hit.score, 6),
        "dense_rank": hit.dense_rank,
        "lexical_rank": hit.lexical_rank,
    }


def _usage_json(usage: Usage) -> dict[str, int]:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
    }
