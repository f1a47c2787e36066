"""List questions: whether further papers hold the term that they ask about."""

from __future__ import annotations

from collections.abc import Iterator

from eval.linting.corpus import Corpus
from eval.linting.findings import Entry, Finding, listed
from eval.retrieval.terms import is_content, stem, words

_LONGEST_TERM = 4
# A term of this many times as many papers as gold has is not what the question asks about.
_TOO_COMMON = 3

# Words of the request itself, and words that most papers hold.
_GENERAL = frozenset(
    stem(word)
    for word in "paper papers list work study abstract collection corpus article submission find "
    "name all approach method model use propose introduce result task show explicitly new "
    "network learning train training based neural deep data information "
    "system set give recent research about something either consider present".split()
)


def check_list(entry: Entry, corpus: Corpus) -> Iterator[Finding]:
    """A warning where papers beyond gold hold a term of the question that all gold holds.

    Not those that the note names: someone has looked at them.
    """
    if entry.question.kind != "list" or not entry.papers or not all(entry.papers):
        return
    asked, holders = _asked_for(entry, corpus)
    gold = {paper.id for paper in entry.gold_papers}
    further = sorted(holders - gold - corpus.named_in(entry.question.note))
    if further and len(holders) <= _TOO_COMMON * len(entry.papers):
        yield entry.warning(
            "list-incomplete",
            f"{asked!r}, which every gold paper holds, stands in {listed(further)} too. "
            "Add them to gold, ask more narrowly, or name them in the note as not meant.",
        )


def _asked_for(entry: Entry, corpus: Corpus) -> tuple[str, set[str]]:
    """The longest term of the question that all gold holds, and every paper that holds it.

    Single words count together, and only where gold holds them all: other questions are not about
    words.
    """
    words_alone: list[str] = []
    together = set(corpus.papers)
    for n, text, term in _terms(entry.question.question):
        holders = corpus.holders(term)
        held = all(holders & {paper.id for paper in group} for group in entry.papers)
        if n > 1 and held:
            return text, holders
        if n == 1:
            words_alone.append(text)
            together &= holders if held else set()
    return " ".join(words_alone), together


def _terms(question: str) -> Iterator[tuple[int, str, str]]:
    """Terms of the question, longest first: how many words, as written, and their key."""
    found = words(question)
    for n in range(_LONGEST_TERM, 0, -1):
        for i in range(len(found) - n + 1):
            run = found[i : i + n]
            if all(is_content(s) and s not in _GENERAL for s in (run[0].stem, run[-1].stem)):
                yield n, question[run[0].start : run[-1].end], " ".join(word.stem for word in run)
