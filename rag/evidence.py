"""What the language model gets to see: the sentences that matter, numbered, within a budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rag import tokens
from rag.config import AnswerSettings
from rag.retrieve import RATING_FLOOR, Retrieval
from rag.types import Paper


@dataclass(frozen=True, slots=True)
class NumberedSentence:
    """A sentence under the number by which the model refers to it, from 1."""

    number: int
    paper: Paper
    text: str


@dataclass(frozen=True, slots=True)
class EvidenceSet:
    """Sentences grouped by paper, best paper first, in reading order within each."""

    sentences: tuple[NumberedSentence, ...]

    def paper(self, number: int) -> Paper | None:
        """The paper that the sentence `number` is from, or None where no sentence has it."""
        return next((s.paper for s in self.sentences if s.number == number), None)

    def for_prompt(self) -> list[dict[str, Any]]:
        """[{"title": ..., "sentences": [{"number", "text"}]}], one entry for each paper."""
        papers: dict[str, dict[str, Any]] = {}
        for sentence in self.sentences:
            entry = papers.setdefault(
                sentence.paper.id, {"title": sentence.paper.title, "sentences": []}
            )
            entry["sentences"].append({"number": sentence.number, "text": sentence.text})
        return list(papers.values())


def select(retrieval: Retrieval, settings: AnswerSettings) -> EvidenceSet:
    """The sentences the model sees: best first until the budget is used, then in reading order."""
    rows = [row for row in retrieval.sentences if row.rating >= RATING_FLOOR]
    kept = rows[: settings.evidence_sentences]
    kept = kept[: max(1, tokens.fit([r.evidence.text for r in kept], settings.evidence_tokens))]
    order = {hit.paper.id: rank for rank, hit in enumerate(retrieval.hits)}
    papers = {hit.paper.id: hit.paper for hit in retrieval.hits}
    kept.sort(key=lambda row: (order[row.evidence.paper_id], row.evidence.start))
    return EvidenceSet(
        tuple(
            NumberedSentence(number, papers[row.evidence.paper_id], row.evidence.text)
            for number, row in enumerate(kept, start=1)
        )
    )
