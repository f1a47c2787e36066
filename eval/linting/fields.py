"""Checks of one question by itself: whether its fields fit together."""

from __future__ import annotations

import re
from collections.abc import Iterator

from eval.linting.findings import Entry, Finding, listed
from eval.questions.fields import UNLABELLED
from rag.scripts import CJK

# Fewer words name no paper and no fact: the shortest of the development set have three.
FEWEST_WORDS = 3
# The longest of the development set has 41; a reviewer's paragraph holds several questions.
MOST_WORDS = 120

# Kinds whose answers hold something that can be looked for.
_WITH_FACTS = frozenset({"fact", "method", "compare", "followup"})
_CJK = re.compile(f"[{CJK}]")


def check_fields(entry: Entry) -> Iterator[Finding]:
    """Gold against kind, what cannot be scored, and questions too short or too long."""
    yield from _check_length(entry)
    if entry.question.kind == UNLABELLED:
        return
    yield from (_check_answerable if entry.question.answerable else _check_unanswerable)(entry)
    if entry.question.kind == "followup" and not entry.question.history:
        yield entry.error(
            "no-history",
            "a follow-up without history cannot be understood. Add the earlier turns as "
            '"history", or make it a question of its own kind.',
        )


def _check_answerable(entry: Entry) -> Iterator[Finding]:
    question = entry.question
    if not question.gold:
        yield entry.error(
            "no-gold",
            f"a question of the kind {question.kind} has no gold, so no citation can be right. "
            'Name its papers, or make it "unanswerable".',
        )
    elif not question.must_include and question.kind in _WITH_FACTS:
        yield entry.warning(
            "no-must-include",
            "without must_include any text that cites the right paper passes. Add what a right "
            "answer says.",
        )
    twice = _in_two_groups(entry)
    if twice:
        yield entry.warning(
            "gold-twice",
            f"{listed(twice)} stands in two groups of gold, so citing it once fills both. Remove "
            "one.",
        )


def _check_unanswerable(entry: Entry) -> Iterator[Finding]:
    question = entry.question
    for name, value in (("gold", question.gold), ("must_include", question.must_include)):
        if value:
            yield entry.error(
                f"unanswerable-with-{name.replace('_', '-')}",
                f"an unanswerable question has {name}. Empty it, or change the kind.",
            )


def _in_two_groups(entry: Entry) -> list[str]:
    """Papers of two groups, by ID where the corpus is known, else as they are written."""
    if any(entry.papers):
        groups = [{paper.id for paper in group} for group in entry.papers]
    else:
        groups = [set(group) for group in entry.question.gold]
    everywhere = [name for group in groups for name in group]
    return sorted({name for name in everywhere if everywhere.count(name) > 1})


def _check_length(entry: Entry) -> Iterator[Finding]:
    text = entry.question.question
    words = len(_CJK.sub(" ", text).split()) + len(_CJK.findall(text))
    if words < FEWEST_WORDS and not entry.question.history:
        yield entry.warning(
            "short",
            f"with {words} word{'s' if words != 1 else ''} it hardly says what is asked. Name the "
            "paper and the fact.",
        )
    elif words > MOST_WORDS:
        yield entry.warning(
            "long", f"it has {words} words; more than {MOST_WORDS} are several questions. Part it."
        )
