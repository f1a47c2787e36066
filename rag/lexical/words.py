"""Text as the words that are indexed and searched."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterator
from typing import Any

from rag.scripts import CJK

# How often a title's words count; 2 to 4 did slightly better than 1 on scifact and neurips-2023.
TITLE_WEIGHT = 2

# Different words a process keeps the stems of: a corpus says most of its words again and again.
_KEPT = 1 << 16
_LONGEST_KEPT = 64

STOP_WORDS = frozenset(
    """
    a about all also although am an and any are as at be because been being both but by can
    could did do does doing done each either for from had has have having he her here hers him
    his how i if in into is it its itself just let ll may me might more most must my no nor not
    of on only or other our ours own re s same shall she should so some such t than that the
    their theirs them then there these they this those though to too us ve very was we were
    what when where whether which while who whom whose why will with would yes yet you your
    yours
    """.split()
)

# A word, or words joined by hyphens, slashes, underscores or dots: "h-lru", "gpt-4.1", "a/b".
_TERM = re.compile(rf"[{CJK}]+|[^\W_{CJK}]+(?:[-_/.+'][^\W_{CJK}]+)*")
_CJK = re.compile(f"[{CJK}]")
_PART = re.compile(r"[^\W_]+")
# The letters of a name that also holds digits, so that "mAP" finds "mAP50". Digits alone are left
# out: they cost 0.010 MRR@10 on neurips-2023, the letters gain 0.007 nDCG@10 on scifact.
_LETTERS = re.compile(r"[^\W\d_]{2,}")
_APOSTROPHE = re.compile("[\u2018\u2019\u02bc]")
_HYPHEN = re.compile("[\u2010-\u2015\u2212]")


def tokens(text: str) -> list[str]:
    """Words as they are indexed and searched: accents folded, lower case, stemmed, stop words out.

    "H-LRU" -> ["h", "lru", "hlru"]: a name can be found whole, joined or in parts.
    "mAP50" -> ["map50", "map"], "GA²M" -> ["ga2m", "ga"]. Chinese, Japanese and Korean give
    characters and pairs of them.
    """
    found: list[str] = []
    for match in _TERM.finditer(_folded(text)):
        term = match.group()
        found += _kept(term) if len(term) <= _LONGEST_KEPT else _indexed(term)
    return found


def searchable(title: str, text: str) -> str:
    """What is indexed of a paper: its title, counted `TITLE_WEIGHT` times, and its text."""
    return " \n".join([title] * TITLE_WEIGHT + [text])


def _indexed(term: str) -> tuple[str, ...]:
    """The tokens that a match of `_TERM` gives: "fine-tuned" -> ("fine", "tune", "finetun")."""
    stem = _stemmer().stemWord
    return tuple(stem(part) for part in _forms(term) if part not in STOP_WORDS)


_kept = functools.lru_cache(_KEPT)(_indexed)


def _forms(term: str) -> Iterator[str]:
    if _CJK.match(term):
        yield from term
        yield from (term[i : i + 2] for i in range(len(term) - 1))
        return
    parts = _PART.findall(term)
    for part in parts:
        yield part
        if not part.isalpha():
            yield from _LETTERS.findall(part)
    if len(parts) > 1 and "'" not in term:
        yield "".join(parts)


def _folded(text: str) -> str:
    """NFKC ("²" -> "2", full-width -> ASCII), lower case, accents off ("Gödel" -> "godel")."""
    text = unicodedata.normalize("NFKC", text).lower()
    if text.isascii():
        return text
    text = _HYPHEN.sub("-", _APOSTROPHE.sub("'", text))
    # Only marks on Latin, Greek and Cyrillic letters are accents; in Indic scripts they are vowels,
    # and in kana they tell consonants apart.
    bare = (c for c in unicodedata.normalize("NFD", text) if not "\u0300" <= c <= "\u036f")
    return unicodedata.normalize("NFC", "".join(bare))


@functools.cache
def _stemmer() -> Any:
    import Stemmer

    return Stemmer.Stemmer("english")
