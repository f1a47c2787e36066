"""Whether a question needs the conversation to be understood, and what stands in for a rewriting.

Pure; English only: a question in another language is translated first. The papers that a question
counts or names are `rag.references`' matter; pronouns and ellipses are left for the language model
to fill in, and what it fills in is checked here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rag.facts import missing, names
from rag.lexical import tokens
from rag.tokens import count


@dataclass(frozen=True, slots=True)
class Mention:
    """A paper that an answer showed, under the title it had then."""

    paper_id: str
    title: str


@dataclass(frozen=True, slots=True)
class Turn:
    """An earlier question of the conversation, its answer, and the papers shown, in order.

    `asked` is the question as it was understood, where that differs; `answered`, whether the papers
    said anything.
    """

    question: str
    answer: str
    asked: str = ""
    papers: tuple[Mention, ...] = ()
    answered: bool = True

    @property
    def understood(self) -> str:
        """The question on its own feet."""
        return self.asked or self.question


# A question that begins or goes like these lacks what an earlier one said.
_ELLIPSIS = re.compile(
    r"\A\W*(?:and|but|or|so|then|also|what\s+about|how\s+about|why|how\s+so|same|instead)\b"
    r"(?!\s+(?:is|are|does|do|did|can|should|would|has|have|was|were)\s+(?!it\b|they\b|that\b|this\b))",
    re.IGNORECASE,
)
_PRONOUN = r"(?:it|they|them|its|their|theirs|he|she|his|her)"
_BESIDE = r"(?:collection|corpus|list|set|store|index|database|area|field|year)"
_POINTING = re.compile(
    rf"\b(?:this|these|those)\b(?!\s+(?:{_BESIDE}|who|which|that|of|in|with|on|for|from)\b)"
    r"|\bthat\s+(?:paper|one|method|approach|work|model|result|dataset|benchmark|study|system)\b"
    r"|\b(?:do|does|did|is|was|about|of|on|for|with|by|to|than)\s+that\s*(?:[?.!,]|\Z)"
    r"|\bthe\s+(?:same|other|others|former|latter|above|previous)\b",
    re.IGNORECASE,
)
# Points to what was said only in a question that says little itself.
_VAGUE = re.compile(
    r"\bthe\s+(?:authors?|papers?|method|approach|model|work)\b|\b(?:another|else)\b", re.I
)
# "did they run", "is it": the pronoun is the subject.
_SUBJECT = re.compile(
    rf"\b(?:do|does|did|is|are|was|were|can|could|has|have|had|will|would|should)\s+{_PRONOUN}\b",
    re.IGNORECASE,
)
_ANY_PRONOUN = re.compile(rf"\b{_PRONOUN}\b", re.IGNORECASE)
_ASKING = re.compile(
    r"\b(?:is|are|was|were|do|does|did|can|could|has|have|had|will|would|should|who|what|which"
    r"|how|why|when|where|list|find|show|name|give|explain|describe|define|compare)\b",
    re.IGNORECASE,
)
# Content words before a pronoun from which it is taken to refer to one of them; more before one
# that is the subject, and before "this ...". Of the 68 English development questions, 3 of them
# follow-ups, 4 that stand on their own are taken for follow-ups, none the other way round.
_ENOUGH_BEFORE, _ENOUGH_BEFORE_SUBJECT, _ENOUGH_BEFORE_POINTING = 2, 4, 8
# Content words from which a question says enough itself.
_ENOUGH = 5
# Words of a question without a verb ("mIoU on nuScenes?") up to which something is left out.
_FRAGMENT = 4
# Share of a question's own content words that its rewriting must keep.
_KEPT = 0.5
# What stands between a question and the one that it follows on from.
_FOLLOWS_ON = " (This follows on from: "


def depends(question: str) -> bool:
    """Whether the question needs the conversation to be understood.

    >>> depends("and on nuScenes?"), depends("Which datasets did they run it on?")
    (True, True)
    >>> depends("How does TopoPT compress its attention?")
    False
    """
    if _ELLIPSIS.search(question):
        return True
    pointing = _POINTING.search(question)
    if pointing and len(set(tokens(question[: pointing.start()]))) < _ENOUGH_BEFORE_POINTING:
        return True
    for pattern, enough in ((_SUBJECT, _ENOUGH_BEFORE_SUBJECT), (_ANY_PRONOUN, _ENOUGH_BEFORE)):
        pronoun = pattern.search(question)
        before = question[: pronoun.start()] if pronoun else ""
        if pronoun and not names(before) and len(set(tokens(before))) < enough:
            return True
    if _VAGUE.search(question) and len(set(tokens(question))) < _ENOUGH:
        return True
    return not _ASKING.search(question) and len(question.split()) <= _FRAGMENT


def plausible(rewritten: str, question: str, history: Sequence[Turn]) -> bool:
    """Whether a rewriting stands on its own, keeps what the question says, and adds nothing new.

    What it adds must be in the conversation.
    """
    if depends(rewritten):
        return False
    known = " ".join(
        f"{turn.question} {turn.understood} {turn.answer} {' '.join(p.title for p in turn.papers)}"
        for turn in history
    )
    if missing(question, rewritten) or missing(rewritten, f"{question} {known}"):
        return False
    said, kept = set(tokens(question)), set(tokens(rewritten))
    return len(said & kept) >= _KEPT * len(said)


def joined(question: str, history: Sequence[Turn]) -> str:
    """The question with the last one behind it, for when no rewriting is to be had.

    Where that one has another behind it already, that other is what both follow on from.
    """
    before = history[-1].understood.strip()
    if _FOLLOWS_ON in before:
        before = before.rpartition(_FOLLOWS_ON)[2].removesuffix(")")
    return f"{question}{_FOLLOWS_ON}{before})"


def antecedents(history: Sequence[Turn]) -> Sequence[Turn]:
    """The turns that a follow-up is read with: those that came to an answer, where any did."""
    return [turn for turn in history if turn.answered] or history


def recent(history: Sequence[Turn], budget: int) -> list[Turn]:
    """The latest turns that fit `budget` tokens together, in order; the oldest go first.

    The last one is always kept, its answer cut where it alone is too long.
    """
    kept: list[Turn] = []
    for turn in reversed(history):
        budget -= count(turn.understood) + count(turn.answer)
        if budget < 0:
            break
        kept.append(turn)
    if not kept and history:
        last = history[-1]
        # A token has 3 characters or more in all but the rarest text.
        room = 3 * max(0, budget + count(last.answer))
        kept = [Turn(last.understood, last.answer[:room], papers=last.papers)]
    return kept[::-1]
