"""What became of an item, in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from eval.items import Item
from eval.metrics.expressions import found
from eval.questions.fields import UNLABELLED


class State(IntEnum):
    """What became of an item, in the order in which a reader looks for them.

    Unscored is an answer without fault to a question of which nothing is expected.
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
    """An item's state with its reasons, and what of the expected is there.

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
    """The verdict on one item; see `eval.items.Item` for what it holds."""
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
    if faults := _faults(item, answer, gold, wanted, forbidden):
        return Verdict(State.WRONG, tuple(faults), gold, wanted, forbidden)
    state, words = _faultless(item, answer, (*wanted, *forbidden))
    return Verdict(state, (words,), gold, wanted, forbidden)


def cited_ids(answer: Mapping[str, Any]) -> frozenset[str]:
    """The paper IDs that an answer cites."""
    return frozenset(c["paper_id"] for s in answer["statements"] for c in s["citations"])


def _faultless(
    item: Item, answer: Mapping[str, Any], patterns: Iterable[tuple[str, bool | None]]
) -> tuple[State, str]:
    """What an answer is that has no fault to be seen."""
    said = "answered" if answer["answered"] else "refused"
    if not _expects(item):
        return State.UNSCORED, said
    if answer["answered"] and any(matches is None for _, matches in patterns):
        return State.UNSCORED, f"{said}; an expression cannot be searched"
    return State.RIGHT, "right" if answer["answered"] else "refused, rightly"


def _faults(
    item: Item,
    answer: Mapping[str, Any],
    gold: Iterable[tuple[frozenset[str], bool]],
    wanted: Iterable[tuple[str, bool | None]],
    forbidden: Iterable[tuple[str, bool | None]],
) -> list[str]:
    """What is wrong with an answer, the gravest first; a refusal has no other fault."""
    if not answer["answered"] and item.question.answerable:
        free = item.question.kind == UNLABELLED and not _expects(item)
        return [] if free else ["refused, though answerable"]
    faults = _Faults()
    if answer["answered"] and not item.question.answerable:
        faults.add(1, "answered, though unanswerable", "")
    faults.add(sum(not hit for _, hit in gold), "a gold paper missed", "{} gold papers missed")
    faults.add(sum(hit is False for _, hit in wanted), "a fact missed", "{} facts missed")
    faults.add(sum(hit is True for _, hit in forbidden), "a false fact", "{} false facts")
    unsupported = sum(not s["supported"] for s in answer["statements"])
    faults.add(unsupported, "an unsupported statement", "{} unsupported statements")
    unknown = len((item.result or {})["unknown_ids"])
    faults.add(unknown, "an invented ID", "{} invented IDs")
    return faults.found


def _expects(item: Item) -> bool:
    """Whether anything is known of a right answer."""
    question = item.question
    expected = item.gold or question.must_include or question.must_not_include
    return bool(expected) or not question.answerable
