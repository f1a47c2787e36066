"""A statement as the model wrote it -> one that the papers support, or their own words instead."""

from __future__ import annotations

import re
from dataclasses import replace

from rag.evidence import EvidenceSet
from rag.facts import names, numbers
from rag.lexical import tokens
from rag.repetition import asks, echoes
from rag.statements import Draft
from rag.types import Paper, Statement
from rag.verify import Verifier

# Content words below which a sentence states nothing that could be checked.
FEWEST_WORDS = 3


# "The first statement in the evidence", "The evidence", and "shows that" after it.
_EVIDENCE = re.compile(
    r"\A(?:the|this)\s+(?:(?:first|second|third|last|given|numbered)\s+)*"
    r"(?P<part>(?:statements?|sentences?|passages?)\s+(?:in|of|from)\s+the\s+)?evidence\s+"
    r"(?:\[\d+\]\s+)?",
    re.IGNORECASE,
)
_SAYS = re.compile(
    r"(?:also\s+)?(?:states?|says?|shows?|reports?|finds?|proves?|indicates?|demonstrates?|suggests?)"
    r"\s+that\s+",
    re.IGNORECASE,
)


class DraftChecker:
    """Checks drafts against the evidence that the model was given."""

    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier

    def check(
        self, draft: Draft, evidence: EvidenceSet, question: str, notes: list[str]
    ) -> Statement | None:
        """Verify a draft; one that fails gives way to the quote nearest to it, word for word.

        What happened is added to `notes`. None: the draft says nothing, or what `question` says
        and no paper.
        """
        draft = replace(draft, text=without_evidence(draft.text))
        if draft.unknown:
            cited = ", ".join(draft.unknown)
            notes.append(f'The model cited {cited}, which it was not given: "{draft.text}"')
        if asks(draft.text):
            notes.append(f'Left out, since it asks: "{draft.text}"')
            return None
        statement = self._verifier.check(draft.text, _papers(draft, evidence))
        if statement.supported or not statement.citations:
            return statement
        if len(tokens(draft.text)) < FEWEST_WORDS:
            notes.append(f'Left out, since it says nothing: "{draft.text}"')
            return None
        if echoes(draft.text, question):
            notes.append(f'Left out, since only the question says it: "{draft.text}"')
            return None
        elsewhere = self._found_elsewhere(draft, evidence)
        if elsewhere is not None:
            return elsewhere
        nearest = max(statement.citations, key=lambda citation: citation.support)
        notes.append(
            f"Not supported by {nearest.paper_id}, whose own words are shown instead: "
            f'"{draft.text}"'
        )
        paper = next(p for p in _papers(draft, evidence) if p.id == nearest.paper_id)
        return self._verifier.check(nearest.quote, [paper])

    def _found_elsewhere(self, draft: Draft, evidence: EvidenceSet) -> Statement | None:
        """The draft with the paper of the evidence that supports it, where it named a wrong one.

        Only where a number or a name of it tells that paper from others.
        """
        if not numbers(draft.text) | names(draft.text):
            return None
        tried = {paper.id for paper in _papers(draft, evidence)}
        others = {s.paper.id: s.paper for s in evidence.sentences if s.paper.id not in tried}
        verdicts = [self._verifier.check(draft.text, [paper]) for paper in others.values()]
        found = [statement for statement in verdicts if statement.supported]
        return max(found, key=lambda s: s.citations[0].support, default=None)


def without_evidence(text: str) -> str:
    """A statement that does not speak of the sentences that only the model sees.

    >>> without_evidence("The second sentence in the evidence shows that it is 5%.")
    'It is 5%.'
    """
    subject = _EVIDENCE.match(text)
    if subject is None:
        return text
    rest = text[subject.end() :]
    says = _SAYS.match(rest)
    if says is None and not subject["part"]:
        return text
    rest = rest[says.end() :] if says else f"the paper {rest}"
    return rest[:1].upper() + rest[1:]


def _papers(draft: Draft, evidence: EvidenceSet) -> list[Paper]:
    papers = [evidence.paper(number) for number in draft.evidence]
    return list({paper.id: paper for paper in papers if paper}.values())
