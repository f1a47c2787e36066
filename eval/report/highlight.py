"""Which words of a quote carry the statement that cites it."""

from __future__ import annotations

import functools
import re

from rag.lexical import tokens
from rag.scripts import CJK
from rag.text import visible

_WORD = re.compile(rf"[{CJK}]|[^\W_{CJK}]+(?:[-_/.,+'’][^\W_{CJK}]+)*%?")


def parts(quote: str, statement: str) -> list[tuple[str, bool]]:
    """The quote in pieces, each with whether its words stand in the statement too.

    Words are compared as the search does: without case, accents and endings, stop words aside.
    The pieces joined are the quote as it can be seen. Marked words that only blanks part are one.

    >>> parts("It scores 76.6% mIoU on ScanNet.", "A mIoU of 76.6% is scored.")
    [('It ', False), ('scores 76.6% mIoU', True), (' on ScanNet.', False)]
    """
    quote, said = visible(quote), frozenset(tokens(visible(statement)))
    pieces: list[tuple[str, bool]] = []
    end = 0
    for word in _WORD.finditer(quote):
        if not _indexed(word[0]) & said:
            continue
        between = quote[end : word.start()]
        if pieces and not between.strip():
            pieces[-1] = (pieces[-1][0] + between + word[0], True)
        else:
            pieces += [(between, False)] if between else []
            pieces.append((word[0], True))
        end = word.end()
    return [*pieces, (quote[end:], False)] if end < len(quote) else pieces


@functools.lru_cache(maxsize=20_000)
def _indexed(word: str) -> frozenset[str]:
    return frozenset(tokens(word))
