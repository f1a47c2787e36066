"""Citation precision and recall, strict and as the ALCE script computes them, side by side.

Gao et al. 2023 (https://arxiv.org/abs/2305.14627), for the statements s of an answer, their
citations C and a judge phi(premise, claim), here `rag.verify`, whose verdicts an item holds:

recall      r(s) = 1 where C is not empty and phi(all of C, s); the mean over statements.
precision   c in C counts where r(s) = 1 and (C is c alone, or phi(c, s), or not phi(C without c,
            s)); the mean over all citations of the answer.

Both are then averaged over answers. A statement is what the paper calls a sentence, whatever full
stops it holds. Where the two differ:

                       strict                    ALCE (eval.py of princeton-nlp/ALCE)
statements             all                       those in the first line of the answer's text: each
                                                 statement has a line of its own, so the first; one
                                                 that breaks its line leaves its citations behind
citations of one       all                       the first three
unknown IDs            wrong citations; the      r(s) = 0, and no citation of that statement is
                       others stay              in the denominator of precision
answers that cite      precision 0               precision 0
nothing
abstentions            apart: neither            0 and 0
failed items           0 and 0                   0 and 0

The script also reads `[1, 2]` as `[1]`. The answers here print each citation in brackets of its own
(`[a] [b]`), and of those it reads every one; so nothing is lost to that here either.

An item holds phi of all citations, of each alone and of all without each. That tells phi of three
out of four, and of fewer where one of them supports the statement alone; what remains open counts
as not supported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from eval.items import Item
from rag.errors import ReadError

# What the ALCE script scores of a sentence, by default (`--at_most_citations`).
AT_MOST = 3


@dataclass(frozen=True, slots=True)
class CitationScores:
    """Shares, 0..1, of one answer; None where it has no part in the mean."""

    precision: float | None
    recall: float | None


_NOTHING = CitationScores(None, None)
_WRONG = CitationScores(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Judged:
    """A statement's citations, by place: which are of unknown papers, and what phi says."""

    text: str
    known: tuple[bool, ...]
    together: bool
    each: tuple[bool, ...]
    without: tuple[bool, ...]

    def entailed_by(self, places: AbstractSet[int]) -> bool:
        """Phi of the citations at these places, as far as it is known; else False."""
        others = [i for i in range(len(self.each)) if i not in places]
        if not places:
            return False
        if not others:
            return self.together
        if len(others) == 1:
            return self.without[others[0]]
        return any(self.each[i] for i in places)

    def needed(self, place: int, places: AbstractSet[int]) -> bool:
        """Whether it supports by itself, or the others at `places` do not without it."""
        return self.each[place] or not self.entailed_by(places - {place})


def strict(item: Item) -> CitationScores:
    """Every citation of every statement; None of an abstention and of what was not reached.

    Raises:
        ReadError: the item's verdicts do not fit its answer.
    """
    if item.answer is None or not item.answer["answered"]:
        return _WRONG if item.failed else _NOTHING
    statements = list(judged(item))
    entailed = sum(s.together for s in statements)
    citations = sum(len(s.each) for s in statements)
    right = sum(_right(s) for s in statements)
    return CitationScores(_share(right, citations), _share(entailed, len(statements)))


def alce(item: Item) -> CitationScores:
    """What the ALCE script would give the answer's text with the same judge.

    Raises:
        ReadError: the item's verdicts do not fit its answer.
    """
    if item.result is None:
        return _NOTHING
    if item.answer is None or not item.answer["answered"]:
        return _WRONG
    first = next(judged(item), None)
    if first is None or "\n" in first.text.lstrip() or not all(first.known):
        return _WRONG
    places = frozenset(range(min(AT_MOST, len(first.each))))
    entailed = first.entailed_by(places)
    right = sum(first.needed(i, places) for i in places) if entailed else 0
    return CitationScores(_share(right, len(places)), float(entailed))


def judged(item: Item) -> Iterator[Judged]:
    """The statements of an item's answer with their verdicts.

    Raises:
        ReadError: there are not as many verdicts as statements and citations.
    """
    result = item.result or {}
    statements = item.answer["statements"] if item.answer is not None else []
    entries, unknown = result.get("entailment", ()), frozenset(result.get("unknown_ids", ()))
    if len(entries) != len(statements):
        raise _damaged(item)
    for statement, entry in zip(statements, entries, strict=True):
        yield _judged(item, statement, entry, unknown)


def _judged(
    item: Item, statement: Mapping[str, Any], entry: Mapping[str, Any], unknown: AbstractSet[str]
) -> Judged:
    known = tuple(c["paper_id"] not in unknown for c in statement["citations"])
    each, without = tuple(entry["each"]), tuple(entry["without"])
    if not len(known) == len(each) == len(without):
        raise _damaged(item)
    return Judged(statement["text"], known, bool(known) and entry["all"], each, without)


def _right(statement: Judged) -> int:
    if not statement.together:
        return 0
    places = frozenset(range(len(statement.each)))
    return sum(
        known and statement.needed(place, places) for place, known in enumerate(statement.known)
    )


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _damaged(item: Item) -> ReadError:
    return ReadError(
        f"The result of question {item.question.id} is damaged: its verdicts do not fit its "
        "statements. Delete its line in results.jsonl, then run `rag eval answers` again."
    )
