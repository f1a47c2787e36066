"""The papers that a question set is checked against."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from eval.linting.findings import Entry
from eval.questions.gold import GoldIndex
from eval.retrieval.terms import Spellings, holds, searchable_paper
from rag.types import Paper

# What in a note may name a paper: an ID, or FILE:POSITION.
_REFERENCE = re.compile(r"[^\s,;()\[\]\"']+")


class Corpus:
    """Finds papers by ID and place, and by the terms that they hold."""

    def __init__(
        self, papers: Sequence[Paper], by_record_id: Callable[[str], Paper | None] = lambda _: None
    ) -> None:
        self.papers = {paper.id: paper for paper in papers}
        self.index = GoldIndex(papers, by_record_id)

    def with_papers(self, entry: Entry) -> Entry:
        """The entry with the papers of each of its gold groups."""
        groups = self.index.resolve(entry.question.gold).groups
        found = [tuple(self.papers[i] for i in sorted(group)) for group in groups]
        return replace(entry, papers=tuple(found))

    def named_in(self, note: str) -> set[str]:
        """IDs of the papers that a note speaks of, so that someone has looked at them."""
        parts = [part.rstrip(".:") for part in _REFERENCE.findall(note)]
        groups = self.index.resolve([[part] for part in parts if part]).groups
        return {paper_id for group in groups for paper_id in group}

    def holders(self, term: str) -> set[str]:
        """IDs of the papers that hold a term (see `eval.retrieval.terms.key`) or its acronym."""
        spellings = self._spellings.of(term)
        return {i for i, text in self._searched.items() if any(holds(text, s) for s in spellings)}

    @functools.cached_property
    def _searched(self) -> dict[str, str]:
        return {paper.id: searchable_paper(paper) for paper in self.papers.values()}

    @functools.cached_property
    def _spellings(self) -> Spellings:
        return Spellings(paper.text for paper in self.papers.values())
