"""Whether two records are one paper, and what the paper is then; pure."""

from __future__ import annotations

import difflib
import re
from dataclasses import replace

from rag.keys import words
from rag.types import Paper

# Share of common words from which a changed text under the same ID is taken for a new version.
SAME_TEXT = 0.5
# Share of common words from which two abstracts are near-identical. Of the 219 pairs that share a
# key among scifact, cranfield, neurips-2023 and colm-2025 (10,394 papers), the two that are one
# paper in two versions have 0.71 and 0.91, all others 0.46 at most.
NEAR_TEXT = 0.7
# The same where a title is unknown and the abstracts alone must tell.
NEAR_TEXT_ALONE = 0.85
# Likeness of titles (2 x common characters / all) from which they are near-identical.
NEAR_TITLE = 0.9

# What tells the parts of a series apart: "TREC 2020", "Part II", "Type B".
_TELLING = re.compile(r"\d+|[ivx]+|[b-z]")


def is_update_of(stored: Paper, paper: Paper, *, same_source: bool) -> bool:
    """Whether `paper`, which bears the ID of `stored`, is a new version of it, not another paper.

    It is one if it comes from a source that lists `stored`, has the same title, or has at least
    half of all words in common (Jaccard index of the two sets of words).
    """
    return (
        same_source
        or stored.title.casefold() == paper.title.casefold()
        or jaccard(stored.text, paper.text) >= SAME_TEXT
    )


def may_share_identifier(stored: Paper, paper: Paper) -> bool:
    """Whether two records with one DOI or arXiv ID are one paper.

    They are, unless both title and abstract differ clearly: then one of them has a wrong identifier
    or that of a whole volume.
    """
    return bool(titles_agree(stored, paper)) or jaccard(stored.text, paper.text) >= SAME_TEXT


def is_near_identical(one: Paper, other: Paper) -> bool:
    """Whether title and abstract are so close that they are one paper without an identifier.

    Where a source gave no title, figures must agree and the abstracts be closer still.
    """
    agree = titles_agree(one, other)
    if agree is None:
        return _telling(one.text) == _telling(other.text) and (
            jaccard(one.text, other.text) >= NEAR_TEXT_ALONE
        )
    return agree and jaccard(one.text, other.text) >= NEAR_TEXT


def titles_agree(one: Paper, other: Paper) -> bool | None:
    """Whether two titles are near-identical; None where one is derived and says nothing.

    "A Net for X." and "A net for x" do; "Report 2024" and "Report 2025" do not.
    """
    if one.title_derived or other.title_derived:
        return None
    first, second = " ".join(words(one.title)), " ".join(words(other.title))
    if first.replace(" ", "") == second.replace(" ", ""):
        return True
    if _telling(one.title) != _telling(other.title):
        return False
    return difflib.SequenceMatcher(None, first, second, False).ratio() >= NEAR_TITLE


def jaccard(one: str, other: str) -> float:
    """Common words by all words, case ignored: ("a b", "B c") -> 1/3; 0 where neither has any."""
    first, second = set(words(one)), set(words(other))
    return len(first & second) / len(first | second) if first or second else 0.0


def merged(stored: Paper, paper: Paper, *, leads: bool) -> Paper:
    """`stored` with what another record of it knows: a title for a derived one, more metadata.

    A record that `leads` also replaces the title and the metadata it has itself. ID, text and
    sources stay.
    """
    first, second = (paper, stored) if leads else (stored, paper)
    metadata = {**second.metadata, **first.metadata}
    named = next((p for p in (first, second) if not p.title_derived), first)
    return replace(stored, title=named.title, title_derived=named.title_derived, metadata=metadata)


def _telling(text: str) -> list[str]:
    return [word for word in words(text) if _TELLING.fullmatch(word)]
