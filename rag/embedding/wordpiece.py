"""Tokens of a text as the sum of its words', for BERT's tokenizer, which joins none at a blank."""

from __future__ import annotations

import re
from collections.abc import Callable, Container

# Words with their punctuation, 30 MB of them, and parts of words, far fewer. The commonest
# come early; those that come later are counted each time they occur.
_MOST = 200_000
# Longer ones hardly recur.
_LONGEST = 40

# BERT parts a word before and behind every sign; in ASCII, all but letters and digits are signs.
_PART = re.compile(r"[a-z0-9]+|[^a-z0-9]")


class WordCounts(dict[str, int]):
    """Word -> its tokens, by the `vocabulary` of WordPiece; `count` says those of the odd ones.

    BERT's normalisation looks at single characters and its pre-tokenizer splits at blanks, so that
    `sum(map(counts.__getitem__, text.split(" ")))` are the tokens of a text, without the special
    ones around it. That takes a tenth of the time of the tokenizer, which also makes the tokens.

    >>> counts = WordCounts({"an", "ant", "-", "hi", "##ll"}, len)
    >>> sum(map(counts.__getitem__, "an Ant-hill".split(" ")))
    5
    """

    def __init__(self, vocabulary: Container[str], count: Callable[[str], int]) -> None:
        super().__init__()
        self._parts = _Parts(vocabulary, count)
        self._count = count

    def __missing__(self, word: str) -> int:
        # A bracket may begin a special token: "[MASK]".
        if word.isascii() and word.isprintable() and "[" not in word:
            tokens = sum(map(self._parts.__getitem__, _PART.findall(word.lower())))
        else:
            tokens = self._count(word)
        if len(word) <= _LONGEST and len(self) < _MOST:
            self[word] = tokens
        return tokens


class _Parts(dict[str, int]):
    """Part of a word -> its tokens."""

    def __init__(self, vocabulary: Container[str], count: Callable[[str], int]) -> None:
        super().__init__()
        self._vocabulary = vocabulary
        self._count = count

    def __missing__(self, part: str) -> int:
        tokens = _pieces(part, self._vocabulary) if len(part) <= _LONGEST else self._count(part)
        if len(part) <= _LONGEST and len(self) < _MOST:
            self[part] = tokens
        return tokens


def _pieces(part: str, vocabulary: Container[str]) -> int:
    """How many pieces make up a part of a word, the longest first; 1 where there are none ([UNK]).

    https://arxiv.org/abs/2012.15524, section 2
    """
    if part in vocabulary:
        return 1
    count = start = 0
    while start < len(part):
        mark = "##" if start else ""
        ends = range(len(part), start, -1)
        end = next((end for end in ends if mark + part[start:end] in vocabulary), None)
        if end is None:
            return 1
        count, start = count + 1, end
    return count
