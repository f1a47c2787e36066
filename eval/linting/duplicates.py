"""Questions that stand in a set twice, in the same words or nearly so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from eval.linting.findings import Entry, Finding
from eval.retrieval.terms import is_content, words
from rag.facts import names, numbers

# Of 100: RapidFuzz's ratio of the words in alphabetical order. At 90 one word of ten differs.
NEAR = 90.0
# Two spellings of one word ("distilation", "distillation") differ less than two words.
_SAME_WORD = 85.0


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question as it is compared; `context` is what it is understood with."""

    entry: Entry
    text: str
    stems: frozenset[str]
    context: tuple[object, ...]


def check_duplicates(entries: Sequence[Entry]) -> Iterator[Finding]:
    """Every question that one before it asks already; another history makes another question.

    Nearly the same are those in which the same numbers and names occur, whose words have a ratio
    of at least `NEAR`, and in which no word stands for another.
    """
    known: dict[tuple[object, ...], Entry] = {}
    groups: dict[tuple[object, ...], list[_Asked]] = {}
    for entry in entries:
        asked = _asked(entry)
        first = known.setdefault((asked.text, asked.context[0]), entry)
        if first is not entry:
            yield entry.error(
                "duplicate", f"it asks the same as {_place(first)}. Remove one of the two."
            )
        else:
            groups.setdefault(asked.context, []).append(asked)
    for group in groups.values():
        yield from _near(group)


def _asked(entry: Entry) -> _Asked:
    question = entry.question
    found = words(question.question)
    history = "\n".join(f"{turn.question}\n{turn.answer}" for turn in question.history)
    return _Asked(
        entry,
        " ".join(question.question[word.start : word.end].casefold() for word in found),
        frozenset(word.stem for word in found if is_content(word.stem)),
        (
            " ".join(history.casefold().split()),
            numbers(question.question),
            names(question.question),
        ),
    )


def _near(group: Iterable[_Asked]) -> Iterator[Finding]:
    from rapidfuzz import fuzz

    for first, second in combinations(group, 2):
        ratio = fuzz.token_sort_ratio(first.text, second.text, score_cutoff=NEAR)
        if ratio >= NEAR and _same_words(first.stems, second.stems):
            yield second.entry.warning(
                "near-duplicate",
                f"it asks nearly the same as {_place(first.entry)} (similarity {ratio:.0f} of "
                "100). Remove one, or make clear in what they differ.",
            )


def _same_words(first: frozenset[str], second: frozenset[str]) -> bool:
    """Whether no word of one stands where the other has another word: "mean", "median"."""
    from rapidfuzz import fuzz

    only_first, only_second = first - second, second - first
    return (
        not only_first
        or not only_second
        or all(
            any(fuzz.ratio(word, other) >= _SAME_WORD for other in only_second)
            for word in only_first
        )
    )


def _place(entry: Entry) -> str:
    return f"line {entry.line} ({entry.question.id})"
