"""BM25 over whole papers. The only import of bm25s.

Okapi BM25 in Lucene's variant (Kamphuis et al. 2020, https://doi.org/10.1007/978-3-030-45442-5_4):
idf = ln(1 + (N - df + 0.5) / (df + 0.5)); each occurrence of a word in the query counts.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rag.scripts import CJK

# Lucene's own defaults.
K1 = 1.2
B = 0.75

# How often a title's words count; 2 to 4 did slightly better than 1 on scifact and neurips-2023.
TITLE_WEIGHT = 2

_IDS = "ids.json"
# Written last: what every other file was. Bad bytes in them need not raise, but rank wrongly.
_HASHES = "sha256.json"

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
    stem = _stemmer().stemWord
    return [stem(term) for term in _terms(_folded(text)) if term not in STOP_WORDS]


def searchable(title: str, text: str) -> str:
    """What is indexed of a paper: its title, counted `TITLE_WEIGHT` times, and its text."""
    return " \n".join([title] * TITLE_WEIGHT + [text])


class LexicalIndex:
    """An immutable BM25 index; scores are BM25's, higher is better."""

    def __init__(self, ids: Sequence[str], index: Any) -> None:
        self._ids = list(ids)
        self._index = index

    @classmethod
    def build(
        cls, ids: Sequence[str], texts: Iterable[str], directory: Path | None = None
    ) -> LexicalIndex:
        """Index `texts[i]` under `ids[i]`, IDs ascending; saved where `directory` is given."""
        import bm25s

        vocabulary: dict[str, int] = {}
        documents = [
            [vocabulary.setdefault(t, len(vocabulary)) for t in tokens(text)] for text in texts
        ]
        index = None
        if vocabulary:
            index = bm25s.BM25(k1=K1, b=B, method="lucene")
            index.index((documents, vocabulary), create_empty_token=False, show_progress=False)
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)
            if index is not None:
                index.save(directory, show_progress=False)
            (directory / _IDS).write_text(json.dumps(list(ids)), encoding="utf-8")
            hashes = json.dumps(_hashes(directory), indent=2)
            (directory / _HASHES).write_text(hashes, encoding="utf-8")
        return cls(ids, index)

    @classmethod
    def load(cls, directory: Path) -> LexicalIndex:
        """Open a saved index, memory-mapped.

        Raises:
            OSError, ValueError: files are missing or damaged.
        """
        import bm25s

        _require_whole(directory)
        ids = json.loads((directory / _IDS).read_text(encoding="utf-8"))
        saved = any(directory.glob("*.npy"))
        index = bm25s.BM25.load(directory, mmap=True, show_progress=False) if saved else None
        return cls(ids, index)

    @staticmethod
    def is_whole(directory: Path) -> bool:
        """Whether `directory` holds a saved index, every file as it was written."""
        try:
            _require_whole(directory)
        except (OSError, ValueError):
            return False
        return True

    def __len__(self) -> int:
        return len(self._ids)

    def rank(
        self, query: str, k: int, among: Collection[str] | None = None
    ) -> list[tuple[str, float]]:
        """The `k` best papers that share a word with `query`, best first, ties by ID.

        Only papers `among` these IDs count, where they are given.
        """
        if self._index is None:
            return []
        vocabulary = self._index.vocab_dict
        known = [vocabulary[token] for token in tokens(query) if token in vocabulary]
        if not known:
            return []
        scores = self._index.get_scores_from_ids(known)
        if among is not None:
            scores = np.where([paper_id in among for paper_id in self._ids], scores, 0.0)
        # IDs ascend, so a stable sort leaves equal scores in the order of their IDs.
        order = np.argsort(-scores, kind="stable")[:k]
        return [(self._ids[i], float(scores[i])) for i in order if scores[i] > 0]


def _require_whole(directory: Path) -> None:
    if json.loads((directory / _HASHES).read_text(encoding="utf-8")) != _hashes(directory):
        raise ValueError(f"files of {directory} are not as they were written")


def _hashes(directory: Path) -> dict[str, str]:
    """SHA-256 by file name; 5 MB, the index of 5,000 abstracts, take some 4 ms."""
    found = {}
    for file in sorted(directory.iterdir()):
        if file.name != _HASHES:
            with file.open("rb") as content:
                found[file.name] = hashlib.file_digest(content, "sha256").hexdigest()
    return found


def _terms(text: str) -> Iterator[str]:
    for match in _TERM.finditer(text):
        term = match.group()
        if re.match(rf"[{CJK}]", term):
            yield from term
            yield from (term[i : i + 2] for i in range(len(term) - 1))
            continue
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
