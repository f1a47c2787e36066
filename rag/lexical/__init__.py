"""Search by words: BM25 over whole papers, kept up with each paper that comes, changes or goes."""

from rag.lexical.file import DamagedIndexError
from rag.lexical.index import LexicalIndex
from rag.lexical.scoring import K1, B
from rag.lexical.words import STOP_WORDS, TITLE_WEIGHT, searchable, tokens

__all__ = [
    "K1",
    "STOP_WORDS",
    "TITLE_WEIGHT",
    "B",
    "DamagedIndexError",
    "LexicalIndex",
    "searchable",
    "tokens",
]
