"""Whether two records are one paper, and what the paper is then; pure."""

from __future__ import annotations

import re
from dataclasses import replace

from rag.types import Paper

# Share of common words from which a changed text under the same ID is taken for a new version.
SAME_TEXT = 0.5

_WORD = re.compile(r"\w+")


def is_update_of(stored: Paper, paper: Paper) -> bool:
    """Whether `paper`, which bears the ID of `stored`, is a new version of it, not another paper.

    It is one if it comes from a file that `stored` came from, has the same title, or has at least
    half of all words in common (Jaccard index of the two sets of words).
    """
    files = {source.file for source in stored.sources}
    if any(source.file in files for source in paper.sources):
        return True
    if stored.title.casefold() == paper.title.casefold():
        return True
    return jaccard(stored.text, paper.text) >= SAME_TEXT


def jaccard(one: str, other: str) -> float:
    """Common words by all words, case ignored: ("a b", "B c") -> 1/3; 0 where neither has any."""
    words = set(_WORD.findall(one.casefold()))
    others = set(_WORD.findall(other.casefold()))
    return len(words & others) / len(words | others) if words | others else 0.0


def merged(stored: Paper, paper: Paper, *, leads: bool) -> Paper:
    """`stored` with what another record of it knows: a title for a derived one, more metadata.

    A record that `leads` also replaces the title and the metadata it has itself. ID, text and
    sources stay.
    """
    first, second = (paper, stored) if leads else (stored, paper)
    metadata = {**second.metadata, **first.metadata}
    named = next((p for p in (first, second) if not p.title_derived), first)
    return replace(stored, title=named.title, title_derived=named.title_derived, metadata=metadata)
