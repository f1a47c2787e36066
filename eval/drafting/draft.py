"""Drafts of every kind asked for, spread over the papers, the same for the same seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from eval.drafting.comparisons import plan_comparisons
from eval.drafting.corpus import Corpus
from eval.drafting.facts import plan_facts
from eval.drafting.lists import plan_lists
from eval.drafting.near_misses import plan_near_misses
from eval.drafting.plan import Draft, Plan
from eval.drafting.topics import Nearness
from eval.drafting.writer import Writer

KINDS = ("fact", "compare", "list", "unanswerable")
# All of whose wordings are made in code.
WITHOUT_MODEL = ("list",)

# Plans tried for each draft that is wanted, before giving up on a corpus.
PLANS_FOR_ONE = 5

Advance = Callable[[int, int], None]


@dataclass(slots=True)
class Tally:
    """What became of the plans: drafts by kind, dropped by reason, known from before."""

    drafted: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    known: int = 0


def shares(kinds: Sequence[str], n: int) -> dict[str, int]:
    """`n` parted evenly; the first kinds get what is left over: 5 of 2 kinds are 3 and 2."""
    each, more = divmod(n, len(kinds))
    return {kind: each + (i < more) for i, kind in enumerate(kinds)}


@dataclass(frozen=True, slots=True)
class Drafter:
    """What drafts are made from, and who words them."""

    corpus: Corpus
    nearness: Nearness
    writer: Writer


def draft(  # noqa: PLR0913 - what is wanted, and what is told about it
    drafter: Drafter,
    wanted: Mapping[str, int],
    seed: int,
    tally: Tally,
    *,
    known: Collection[str] = (),
    advance: Advance = lambda *_: None,
) -> Iterator[Draft]:
    """So many drafts of each kind; a plan whose ID is `known` is passed over, without wording it.

    Raises:
        EndpointError: the language model did not answer.
    """
    total = sum(wanted.values())
    asked: set[str] = set()
    for kind, n in wanted.items():
        tries = PLANS_FOR_ONE * n
        for plan in plans(kind, drafter.corpus, drafter.nearness, Random(f"{seed} {kind}")):
            if tally.drafted[kind] >= n or tries == 0:
                break
            if plan.id in known:
                tally.known += 1
                continue
            tries -= 1
            written = drafter.writer.write(plan)
            if isinstance(written, Draft) and written.question in asked:
                tally.dropped["the same question came twice"] += 1
            elif isinstance(written, Draft):
                asked.add(written.question)
                tally.drafted[kind] += 1
                advance(tally.drafted.total(), total)
                yield written
            else:
                tally.dropped[written] += 1


def plans(kind: str, corpus: Corpus, nearness: Nearness, random: Random) -> Iterator[Plan]:
    """What questions of a kind could be about, in an order that the seed decides."""
    if kind == "fact":
        return plan_facts(corpus, random)
    if kind == "compare":
        return plan_comparisons(corpus, nearness, random)
    if kind == "list":
        return plan_lists(corpus, nearness, random)
    return plan_near_misses(corpus, nearness, random)
