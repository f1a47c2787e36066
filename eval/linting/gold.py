"""Checks of gold against the papers of a store."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from eval.linting.corpus import Corpus
from eval.linting.findings import Entry, Finding


def check_gold(entry: Entry, corpus: Corpus) -> Iterator[Finding]:
    """What of gold is in no paper or means several; an alternative may miss, with a warning."""
    for number, group in enumerate(entry.question.gold):
        complain = entry.warning if entry.papers[number] else entry.error
        for wanted in group:
            found = corpus.index.resolve([[wanted]])
            if not found.groups[0]:
                yield complain("gold-not-in-corpus", _unknown(wanted, corpus))
            elif len(found.groups[0]) > 1:
                yield entry.error("gold-ambiguous", f"{found.problems[0]}.")


def _unknown(wanted: str, corpus: Corpus) -> str:
    close = difflib.get_close_matches(wanted[:200], corpus.papers, n=1)
    meant = f" (is {close[0]!r} meant?)" if close else ""
    return (
        f"gold {wanted!r} is no paper of the store{meant}. Correct it, ingest its file, or "
        "name the right store with --store."
    )
