"""What a paper is looked up by where another record may be the same paper; pure.

Identifiers (DOI, arXiv ID) say that two records are one paper. The other keys, of the title and of
an abstract's beginning and end, only find the papers that are worth comparing.
"""

from __future__ import annotations

import functools
import hashlib
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

from rag.types import MetaValue, Paper

# Words of an abstract's beginning and of its end; fewer begin many abstracts alike.
EDGE_WORDS = 12

# Texts that are looked at more than once in a row while they are taken in.
_KEPT = 2_048

_WORD = re.compile(r"\w+")
_DOI = re.compile(r"10\.\d{4,9}/\S+")
_ARXIV_DOI = "10.48550/arxiv."
# https://info.arxiv.org/help/arxiv_identifier.html
_ARXIV = re.compile(r"(?:arxiv:\s*)?(\d{2}(?:0[1-9]|1[0-2])\.\d{4,5}|[a-z-]+(?:\.[a-z]{2})?/\d{7})")
_ARXIV_ALONE = re.compile(rf"{_ARXIV.pattern}(?:v\d+)?")


@dataclass(frozen=True, slots=True)
class Identifiers:
    """A paper's DOI and arXiv ID in the one form in which they are compared, where it has them."""

    doi: str | None = None
    arxiv: str | None = None


def identifiers(paper_id: str, metadata: Mapping[str, MetaValue]) -> Identifiers:
    """The identifiers in `metadata` ("doi", "arxiv", "arxiv_id" in any case), or the ID itself.

    >>> identifiers("a", {"DOI": "https://doi.org/10.48550/arXiv.2301.00001"})
    Identifiers(doi='10.48550/arxiv.2301.00001', arxiv='2301.00001')
    """
    named = {re.sub(r"[\W_]", "", key).casefold(): str(value) for key, value in metadata.items()}
    own = paper_id.casefold()
    doi = _doi(named.get("doi", "")) or (_doi(own) if own.startswith("10.") else None)
    arxiv = _arxiv(named.get("arxiv", "")) or _arxiv(named.get("arxivid", ""))
    if arxiv is None and doi is not None and doi.startswith(_ARXIV_DOI):
        arxiv = _arxiv(doi.removeprefix(_ARXIV_DOI))
    if arxiv is None and (alone := _ARXIV_ALONE.fullmatch(own)) is not None:
        arxiv = alone[1]
    return Identifiers(doi, arxiv)


def title_key(title: str) -> int | None:
    """A 64-bit hash of a title's letters and digits; None where it has none.

    >>> title_key("GÖDEL: a Net") == title_key("Godel, A-Net")
    True
    """
    letters = "".join(words(title))
    return key_of(letters) if letters else None


@functools.lru_cache(_KEPT)
def edge_keys(text: str) -> tuple[int, int]:
    """Hashes of the first and the last `EDGE_WORDS` words of an abstract."""
    found = words(text)
    return key_of(" ".join(found[:EDGE_WORDS])), key_of(" ".join(found[-EDGE_WORDS:]))


def paper_keys(paper: Paper) -> tuple[int | None, int, int]:
    """Keys of the title, unless it is derived, and of both ends of the abstract."""
    return (None if paper.title_derived else title_key(paper.title), *edge_keys(paper.text))


def text_key(content_hash: str) -> int:
    """The first 64 bits of a hexadecimal hash as SQLite stores integers."""
    return int.from_bytes(bytes.fromhex(content_hash[:16]), signed=True)


def key_of(text: str) -> int:
    """A 64-bit hash that is the same in every process."""
    digest = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, signed=True)


def words(text: str) -> list[str]:
    """Words without case and accents, in order."""
    if not text.isascii():
        text = unicodedata.normalize("NFKD", text)
        # A text has few different characters.
        text = text.translate({ord(c): None for c in set(text) if unicodedata.combining(c)})
    return _WORD.findall(text.casefold())


def _doi(value: str) -> str | None:
    found = _DOI.search(value.casefold())
    return found[0].rstrip(".,;") if found else None


def _arxiv(value: str) -> str | None:
    found = _ARXIV.search(value.casefold())
    return found[1] if found else None
