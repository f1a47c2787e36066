"""Checks of a wording, in code: each gives what is wrong with it, or None."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from eval.drafting.plan import Check
from eval.retrieval.terms import is_content, key, words
from rag.facts import missing, numbers
from rag.types import Paper

FEWEST_WORDS, MOST_WORDS = 5, 40
# A run of as many words as stand in the sentence in that order is no question of one's own.
LONGEST_COPY = 13

_INTERROGATIVE = re.compile(
    r"\b(?:what|which|who|whom|whose|how|where|when|why|do|does|did|is|are|was|were|can|could|"
    r"has|have|list|name)\b",
    re.IGNORECASE,
)
_SECOND = re.compile(r"(?:,|;|\band\b)\s+(?:what|which|who|how|where|when|why)\b", re.IGNORECASE)
# What only a reader of the sentence knows: "these gains", "the proposed method", "the authors".
_POINTING = re.compile(
    r"\b(?:these|those|our)\s\w+|\bthis\s(?!is\b)\w+"
    r"|\bthe (?:proposed|given|above|described|presented) \w+"
    r"|\bthe (?:authors?|sentences?|text|evidence|abstract|passage|researchers|claim|blank)\b"
    r"|\bthe (?:paper|study|article)\b(?! (?:on|about|that|which|of|by|in which))"
    r"|____",
    re.IGNORECASE,
)
# In words ("two", "half") and names ("3D") they tell nothing.
_SMALL = frozenset("123")
_QUANTITY = re.compile(
    r"\bhow (?:many|much|large|big|often|long|fast|far|high|low|small|accurate)\b"
    r"|\bby (?:what|how|which)\b|\bfrom what\b"
    r"|\b(?:what|which)\b.*\b(?:percent|percentage|factor|fraction|share|ratio|number|rate|score|"
    r"accuracy|value|size|count|amount|level|mean|average|improvement|reduction|increase|decrease|"
    r"gain|drop|change|auroc|miou|error|difference|total|speed-?up|times|range|drift)\b",
    re.IGNORECASE | re.DOTALL,
)


def one_question(question: str) -> str | None:
    """One question mark, at the end; a question word; neither a word or two nor a paragraph."""
    count = len(question.split())
    if not question.endswith("?") or question.count("?") != 1:
        return "it is not one question with one question mark, at its end"
    if _SECOND.search(question):
        return "it asks two things"
    if not FEWEST_WORDS <= count <= MOST_WORDS:
        return f"it has {count} words, not {FEWEST_WORDS} to {MOST_WORDS}"
    if not _INTERROGATIVE.search(question):
        return "it has no question word"
    return None


def stands_alone(question: str) -> str | None:
    """Nothing that only a reader of the sentence understands."""
    pointing = _POINTING.search(question)
    return f'it says "{pointing[0]}", which nobody else understands' if pointing else None


def asks_for_number(question: str) -> str | None:
    """Whether a number can answer it."""
    return None if _QUANTITY.search(question) else "it does not ask for a number"


def no_number(question: str) -> str | None:
    """No number that stands alone."""
    told = sorted(numbers(question) - _SMALL)
    return f'it holds the number "{told[0]}"' if told else None


def does_not_tell(patterns: Sequence[str], values: Sequence[str] = ()) -> Check:
    """None of the patterns is found in the question, nor any of the numbers."""
    compiled = [re.compile(pattern, re.IGNORECASE | re.DOTALL) for pattern in patterns]
    told = frozenset().union(*(numbers(value) for value in values))

    def check(question: str) -> str | None:
        if any(p.search(question) for p in compiled) or told & numbers(question):
            return "it gives the answer away"
        return None

    return check


def says_only(papers: Sequence[Paper], *further: str) -> Check:
    """Every number and name in it is one of the papers'."""
    known = "\n".join([*(f"{paper.title}\n{paper.text}" for paper in papers), *further])

    def check(question: str) -> str | None:
        strange = missing(question, known)
        return f'it says "{strange[0]}", which the papers do not' if strange else None

    return check


def tells_paper(names: Sequence[str], frequency: Callable[[str], int]) -> Check:
    """One of the paper's names stands in it, or two words that hardly another paper holds."""

    def check(question: str) -> str | None:
        asked = f" {key(question)} "
        rare = [
            stem for stem in set(asked.split()) if is_content(stem) and 1 <= frequency(stem) <= 2
        ]
        said = len(rare) >= 2 or any(f" {key(name)} " in asked for name in names)
        return None if said else f'it does not name "{names[0]}"'

    return check


def says_all(names: Sequence[str]) -> Check:
    """Every one of the names stands in it."""

    def check(question: str) -> str | None:
        asked = f" {key(question)} "
        lost = [name for name in names if f" {key(name)} " not in asked]
        return f'it does not say "{lost[0]}"' if lost else None

    return check


def speaks_of(topic: str, names: Sequence[str]) -> Check:
    """A word of the topic stands in it, apart from the names."""
    wanted = {stem for stem in key(topic).split() if is_content(stem)}

    def check(question: str) -> str | None:
        rest = f" {key(question)} "
        for name in sorted(names, key=len, reverse=True):
            rest = rest.replace(f" {key(name)} ", " ")
        spoken = not wanted or wanted & set(rest.split())
        return None if spoken else f'it does not speak of "{topic}"'

    return check


def no_copy_of(sentences: Sequence[str]) -> Check:
    """No long run of a sentence's own words."""
    runs = [[word.stem for word in words(sentence)] for sentence in sentences]

    def check(question: str) -> str | None:
        asked = [word.stem for word in words(question)]
        longest = max((_longest_run(asked, run) for run in runs), default=0)
        return "it copies the sentence; use other words" if longest >= LONGEST_COPY else None

    return check


def _longest_run(first: Sequence[str], second: Sequence[str]) -> int:
    """The length of the longest run that both hold."""
    from difflib import SequenceMatcher

    matcher = SequenceMatcher(None, list(first), list(second), autojunk=False)
    return matcher.find_longest_match().size
