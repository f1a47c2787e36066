"""Questions that ask for every paper that fits: each candidate is judged apart, and quoted.

One answer over all candidates names too few of them, so a small model is asked about one paper at
a time, and its verdict is weighed with the retrieval's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rag import prompts
from rag.chat_model import ChatModel, Message
from rag.retrieve import RATING_FLOOR, RatedSentence, Retrieval
from rag.types import Paper, Usage

# Papers retrieved; those without a sentence above RATING_FLOOR are not worth a question.
CANDIDATES = 8

# Sentences of a candidate that the model sees.
SENTENCES = 2

# Words below which a sentence is a heading, and says nothing.
FEWEST_WORDS = 6

# A paper fits when P(Yes) + the rating of its best sentence (1.0 = best of all) reaches this. On
# seven development questions (19 papers that fit, 37 that do not) P(Yes) alone has AUROC .95, the
# rating .95, their sum .99; at 1.5 all 19 are found.
FITS = 1.5
LIKELY = 0.5
# Stands for P(Yes) where the model says neither Yes nor No: not likely.
UNKNOWN = 0.0

_LIST = re.compile(
    # "which papers ...", "what recent works on graphs ...", "papers about ...", "... papers?"
    r"\b(?:which|what)\s+(?:[\w-]+\s+){0,2}(?:papers|works|articles|studies|abstracts|submissions)\b"
    r"|\A\W*(?:(?:please|can|could|you|show|give|tell|me|us|the|all|every|each|any|are|there)\s+)*"
    r"(?:papers|works|articles|studies|abstracts|submissions)\b"
    r"|\A\W*(?:(?:please|can|could|you|i\s+want\s+to|let\s+us)\s+)*"
    r"(?:list|name|find|show|give|enumerate)\s+(?:me\s+)?(?:all|every|each|the|any)\b.*"
    r"\b(?:papers?|works?|articles?|stud(?:y|ies)|abstracts?|submissions?)\b"
    r"|\b(?:papers|abstracts)\s*[?.!]*\s*\Z",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A paper, its best sentence, and how likely it is (0..1) to be asked for."""

    paper: Paper
    sentence: str
    likely: float
    fits: bool

    @property
    def statement(self) -> str:
        """The sentence that makes the paper fit, under its title where it does not name itself.

        A label that was only cut from the text (it ends with …) names nothing.
        """
        title = self.paper.title
        named = title.split(":")[0].casefold() in self.sentence.casefold()
        return self.sentence if named or title.endswith("…") else f"{title} – {self.sentence}"


def asks_for_list(question: str) -> bool:
    """Whether the question wants every paper that fits: "which papers ...", "list all ..."."""
    return bool(_LIST.search(question))


def candidates(
    question: str, retrieval: Retrieval, model: ChatModel
) -> Iterator[tuple[Candidate, Usage]]:
    """Judge the retrieved papers one by one, best first."""
    for hit in retrieval.hits:
        rows = [row for row in retrieval.sentences if row.evidence.paper_id == hit.paper.id]
        if not rows or rows[0].rating < RATING_FLOOR:
            continue
        likely, usage = model.yes_probability(_messages(question, hit.paper, rows[:SENTENCES]))
        likely = UNKNOWN if likely is None else likely
        fits = likely >= LIKELY and likely + rows[0].rating >= FITS
        yield Candidate(hit.paper, _telling(rows), likely, fits), usage


def _telling(rows: Sequence[RatedSentence]) -> str:
    """The best sentence that is more than a heading."""
    texts = [row.evidence.text for row in rows]
    return next((text for text in texts if len(text.split()) >= FEWEST_WORDS), texts[0])


def _messages(question: str, paper: Paper, rows: list[RatedSentence]) -> list[Message]:
    shown = sorted((row.evidence for row in rows), key=lambda evidence: evidence.start)
    content = prompts.render(
        "fits", question=question, paper=paper, sentences=[evidence.text for evidence in shown]
    )
    return [{"role": "user", "content": content}]
