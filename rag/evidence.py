"""What the language model gets to see: the sentences that matter, numbered, within a budget."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rag import tokens
from rag.config import AnswerSettings
from rag.retrieve import RatedSentence, Retrieval
from rag.types import Paper

# Sentences rated below this share of the best one only distract (see the measurements in README).
RATING_FLOOR = 0.75

# A question for a list wants many papers, each with its best sentences only.
LIST_PAPERS = 10
LIST_SENTENCES = 2
LIST_FLOOR = 0.55

_LIST = re.compile(
    r"\A\W*(?:(?:please|can|could|you|show|give|tell|me|us|find|name|list|enumerate|the|all|every|each|"
    r"what|which|any|other|of|these|are|there)\s+)*"
    r"(?:papers|works|articles|studies|abstracts|publications|submissions|authors)\b"
    r"|\b(?:list|enumerate|name|find)\s+(?:all|every|each|the)\b"
    r"|\b(?:which|what)\s+(?:\w+\s+){0,2}(?:papers|works|articles|studies|abstracts|publications)\b"
    r"|\b(?:papers|works|abstracts)\s*\?*\s*\Z",
    re.IGNORECASE,
)


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


def asks_for_list(question: str) -> bool:
    """Whether the question wants every paper that fits: "which papers ...", "list all ..."."""
    return bool(_LIST.search(question))


def select(
    retrieval: Retrieval, settings: AnswerSettings, *, wants_list: bool = False
) -> EvidenceSet:
    """The sentences the model sees: best first until the budget is used, then in reading order."""
    rows = _per_paper(retrieval.sentences) if wants_list else list(retrieval.sentences)
    floor = LIST_FLOOR if wants_list else RATING_FLOOR
    kept = [row for row in rows if row.rating >= floor][: settings.evidence_sentences]
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


def _per_paper(rows: Sequence[RatedSentence]) -> list[RatedSentence]:
    """At most `LIST_SENTENCES` of each paper, best first."""
    seen: dict[str, int] = {}
    kept = []
    for row in rows:
        paper_id = row.evidence.paper_id
        seen[paper_id] = seen.get(paper_id, 0) + 1
        if seen[paper_id] <= LIST_SENTENCES:
            kept.append(row)
    return kept
