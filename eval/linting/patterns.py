"""Checks of must_include and must_not_include, searched as the answers are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from eval.linting.findings import Entry, Finding, listed
from eval.metrics.expressions import MOST_SECONDS, found

# Texts that have nothing in common: what is found in all of them is found in every answer.
_UNRELATED = (
    "Green tea steeps for 3 minutes.",
    "q",
    "Le comité (12 membres) s'est réuni à Lyon; qui l'eût cru?",
)
# As long as the longest answers.
_LENGTH = 2_000
# Runs of one kind of character bring out what takes exponential or cubic time.
_RUNS = ("a", "0", " ", "a ", "1,", "ab-", "(")
_MOST_RUNS = 20
_REPEATS = re.compile(r"[*+}]")


def check_patterns(entry: Entry) -> Iterator[Finding]:
    """Patterns that are slow, match everything or nothing, or give the answer away."""
    given_away: list[str] = []
    for name, pattern in _named(entry.question.must_include, "must_include"):
        where = _where(pattern, entry)
        if where is None:
            yield _slow(entry, name, pattern)
        elif where.everything:
            yield entry.error(
                "matches-everything",
                f"{name} {_shown(pattern)} is found in every text, so every answer passes. "
                "Write what a right answer says.",
            )
        else:
            yield from _check_against_gold(entry, name, pattern, where)
            given_away += [name] if where.in_question else []
    yield from _check_given_away(entry, given_away)
    for name, pattern in _named(entry.question.must_not_include, "must_not_include"):
        yield from _check_forbidden(entry, name, pattern)


def _check_forbidden(entry: Entry, name: str, pattern: str) -> Iterator[Finding]:
    where = _where(pattern, entry)
    if where is None:
        yield _slow(entry, name, pattern)
    elif where.everything:
        yield entry.error(
            "matches-everything",
            f"{name} {_shown(pattern)} is found in every text, so no answer passes. Write "
            "what only a wrong answer says.",
        )
    elif pattern in entry.question.must_include:
        yield entry.error(
            "contradiction",
            f"{_shown(pattern)} must and must not be in the answer. Remove one.",
        )
    elif where.papers:
        yield entry.warning(
            "forbids-gold",
            f"{name} {_shown(pattern)} is found in the gold paper {listed(where.papers)}: an "
            "answer in the paper's own words may fail. Narrow the pattern.",
        )


def _where(pattern: str, entry: Entry) -> _Where | None:
    """Where the pattern is found; None where that takes too long to tell."""
    question, papers = entry.question, entry.gold_papers
    groups = (
        ["", *_UNRELATED],
        [question.question, *(turn.answer for turn in question.history)],
        [f"{paper.title}\n{paper.text}" for paper in papers],
        _trying(pattern) if _REPEATS.search(pattern) else [],
    )
    results: list[list[bool]] = []
    for texts in groups:
        results.append([])
        for text in texts:
            hit = found(pattern, text)
            if hit is None:
                return None
            results[-1].append(hit)
    (empty, *unrelated), asked, gold, _ = results
    return _Where(
        everything=empty or all(unrelated),
        in_question=any(asked),
        papers=[paper.id for paper, hit in zip(papers, gold, strict=True) if hit],
    )


@dataclass(frozen=True, slots=True)
class _Where:
    everything: bool
    in_question: bool
    papers: list[str]


def _check_against_gold(entry: Entry, name: str, pattern: str, where: _Where) -> Iterator[Finding]:
    if entry.gold_papers and not where.papers:
        yield entry.error(
            "not-in-gold",
            f"{name} {_shown(pattern)} is found in no gold paper, so no answer true to them "
            "passes. Correct the pattern or gold, or add the paper's wording as an alternative.",
        )


def _check_given_away(entry: Entry, names: Sequence[str]) -> Iterator[Finding]:
    """An error only where repeating the question is enough to pass."""
    if names and len(names) == len(entry.question.must_include):
        yield entry.error(
            "given-away",
            "the question, or an earlier answer, holds all that must_include looks for: repeating "
            "it passes. Ask without the answer, or look for more.",
        )
    elif names:
        yield entry.warning(
            "given-away",
            f"the question, or an earlier answer, holds what {listed(names)} looks for: an answer "
            "that repeats it has that part. Remove it, or look for more.",
        )


def _slow(entry: Entry, name: str, pattern: str) -> Finding:
    return entry.error(
        "slow-pattern",
        f"{name} {_shown(pattern)} takes more than {MOST_SECONDS:g} s on a text of {_LENGTH:,} "
        "characters, or cannot be searched with a time limit, and then counts as not found. Do "
        "not repeat what repeats itself, as in (a+)+.",
    )


def _named(patterns: Sequence[str], field: str) -> Iterator[tuple[str, str]]:
    """("must_include 1", pattern), ..."""
    return ((f"{field} {n}", pattern) for n, pattern in enumerate(patterns, start=1))


def _shown(pattern: str) -> str:
    return repr(pattern if len(pattern) <= 60 else pattern[:60] + "...")


def _trying(pattern: str) -> list[str]:
    """Runs of characters, the pattern's own too, with an end that fits nothing."""
    own = sorted({character for character in pattern if character.isalnum()})
    runs = dict.fromkeys([*_RUNS, *own])
    return [(run * _LENGTH)[:_LENGTH] + "\x00" for run in list(runs)[:_MOST_RUNS]]
