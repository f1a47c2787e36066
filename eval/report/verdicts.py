"""What became of an item, in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from eval.items import Item
from eval.metrics.expressions import found
from eval.metrics.scores import rightness
from eval.questions.fields import UNLABELLED


class State(IntEnum):
    """What became of an item, in the order in which a reader looks for them.

    Right and wrong are as the metrics `correct` and `refused` have it. Unscored is an answer of
    which they cannot say: nothing is expected, or an expression cannot be searched.
    """

    FAILED = 0
    WRONG = 1
    RIGHT = 2
    UNSCORED = 3
    SKIPPED = 4

    @property
    def title(self) -> str:
        """The word that the page shows and filters by."""
        return self.name.lower()

    @property
    def meaning(self) -> str:
        """What it says beside a count."""
        return _MEANINGS.get(self.name, self.title)


_MEANINGS = {
    "FAILED": "failed with an error",
    "UNSCORED": "unscored, with nothing expected",
    "SKIPPED": "not reached",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """An item's state, what there is to say of it, and what of the expected is there.

    `reasons` make an item wrong, or are remarks that change nothing: unsupported statements, say.
    `gold`: each group's IDs and whether one of them is cited. `wanted`, `forbidden`: each regular
    expression and whether it matches the answer's text.
    """

    state: State
    reasons: tuple[str, ...]
    gold: tuple[tuple[frozenset[str], bool], ...] = ()
    wanted: tuple[tuple[str, bool | None], ...] = ()
    forbidden: tuple[tuple[str, bool | None], ...] = ()

    @property
    def words(self) -> str:
        """The reasons, as a line of a table shows them."""
        return ", ".join(self.reasons)


@dataclass(slots=True)
class _Faults:
    found: list[str] = field(default_factory=list)

    def add(self, count: int, one: str, many: str) -> None:
        if count:
            self.found.append(one if count == 1 else many.format(count))


def judge(item: Item) -> Verdict:
    """The verdict on one item; see `eval.items.Item` for what it holds.

    Raises:
        ReadError: the item's verdicts do not fit its answer.
    """
    if item.result is None:
        return Verdict(State.SKIPPED, ("not reached",))
    answer = item.answer
    if answer is None:
        return Verdict(State.FAILED, ("failed",))
    cited = cited_ids(answer)
    text = answer["text"] if answer["answered"] else ""
    gold = tuple((group, bool(group & cited)) for group in item.gold)
    wanted = tuple((p, found(p, text)) for p in item.question.must_include)
    forbidden = tuple((p, found(p, text)) for p in item.question.must_not_include)
    state = _STATES[rightness(item)]
    faults = _faults(item, answer, gold, wanted, forbidden)
    said = _said(state, answer, (*wanted, *forbidden))
    # What is wrong, or was refused in vain, needs no other word.
    reasons = (
        faults if faults and (state is State.WRONG or not answer["answered"]) else said + faults
    )
    return Verdict(state, tuple(reasons), gold, wanted, forbidden)


_STATES = {1.0: State.RIGHT, 0.0: State.WRONG, None: State.UNSCORED}


def cited_ids(answer: Mapping[str, Any]) -> frozenset[str]:
    """The paper IDs that an answer cites."""
    return frozenset(c["paper_id"] for s in answer["statements"] for c in s["citations"])


def _said(
    state: State, answer: Mapping[str, Any], patterns: Iterable[tuple[str, bool | None]]
) -> list[str]:
    """What an answer is, whatever its faults."""
    if state is State.RIGHT:
        return ["right" if answer["answered"] else "refused, rightly"]
    if not answer["answered"]:
        return ["refused"]
    unclear = any(matches is None for _, matches in patterns)
    return ["answered; an expression cannot be searched" if unclear else "answered"]


def _faults(
    item: Item,
    answer: Mapping[str, Any],
    gold: Iterable[tuple[frozenset[str], bool]],
    wanted: Iterable[tuple[str, bool | None]],
    forbidden: Iterable[tuple[str, bool | None]],
) -> list[str]:
    """What is wrong with an answer, the gravest first; a refusal has no other fault."""
    answerable = item.question.answerable
    if not answer["answered"]:
        free = not answerable or (item.question.kind == UNLABELLED and not _expects(item))
        return [] if free else ["refused, though answerable"]
    faults = _Faults()
    faults.add(not answerable, "answered, though unanswerable", "")
    missed = sum(not hit for _, hit in gold) if answerable else 0
    faults.add(missed, "a gold paper missed", "{} gold papers missed")
    faults.add(sum(hit is False for _, hit in wanted), "a fact missed", "{} facts missed")
    faults.add(sum(hit is True for _, hit in forbidden), "a false fact", "{} false facts")
    unsupported = sum(not s["supported"] for s in answer["statements"])
    faults.add(unsupported, "an unsupported statement", "{} unsupported statements")
    unknown = len((item.result or {})["unknown_ids"])
    faults.add(unknown, "an invented ID", "{} invented IDs")
    return faults.found


def _expects(item: Item) -> bool:
    """Whether anything is known of a right answer to an answerable question."""
    question = item.question
    return bool(item.gold or question.must_include or question.must_not_include)
