"""A record as a source had it -> a paper ready for search, or the reason why it is none."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping

from rag.labels import derive_label
from rag.scripts import UNSPACED
from rag.text import clean, visible
from rag.types import MetaValue, Paper, Record, Rejected

# Fewer words are a heading or a remark ("Abstract withdrawn."), not an abstract.
MIN_WORDS = 5
MAX_ID_LENGTH = 200

# Crockford's base 32: no i, l, o, u to misread or mistype. https://www.crockford.com/base32.html
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_BITS = 5
_UNSPACED = re.compile(f"[{UNSPACED}]")


def to_paper(record: Record) -> Paper | Rejected:
    """Clean a record; its own ID and title where it has them, else derived ones."""
    text = clean(record.abstract)
    # Words between blanks are words, however they are counted.
    words = len(text.split(None, MIN_WORDS))
    if words < MIN_WORDS and (words := _count_words(text)) < MIN_WORDS:
        found = "is empty" if not words else f"has {words} word{'s' if words > 1 else ''}"
        reason = f"The abstract {found}; {MIN_WORDS} words are the least."
        source = record.source
        own = _own_id(record.id)
        return Rejected(source.file, source.position, reason, record.line, whole=True, id=own)
    identifier = _own_id(record.id) or derive_id(text)
    title = _title(record)
    return Paper(
        id=identifier,
        title=title or derive_label(record.abstract) or identifier,
        text=text,
        # JSON can hold half a surrogate pair, which no file or database can.
        original=record.abstract.encode("utf-8", "replace").decode("utf-8"),
        sources=tuple(listing.source for listing in record.listings) or (record.source,),
        title_derived=record.title_derived or not title,
        metadata=_metadata(record.metadata),
    )


def derive_id(text: str, length: int = 7) -> str:
    """An ID from the cleaned `text` alone: `p-` and `length` characters (1..51) of 5 bits each.

    Seven characters are 35 bits: among 100,000 papers two share an ID with probability 0.14, so
    whoever gives them out must look, and ask for a longer one.

    >>> derive_id("One  abstract") == derive_id("one abstract")
    True
    """
    number = int.from_bytes(hashlib.sha256(_normalised(text)).digest())
    shift = 256
    characters = []
    for _ in range(length):
        shift -= _BITS
        characters.append(_ALPHABET[(number >> shift) & 31])
    return "p-" + "".join(characters)


def content_hash(text: str) -> str:
    """SHA-256 of the cleaned `text` without regard to case and white space, in hex."""
    return hashlib.sha256(_normalised(text)).hexdigest()


def metadata_value(value: object) -> MetaValue | None:
    """`value` where it is text, a finite number, a truth value or a list of texts; else None."""
    if isinstance(value, str):
        return visible(value).strip() or None
    if isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return [shown for item in value if (shown := visible(item).strip())] or None
    return None


def _normalised(text: str) -> bytes:
    return " ".join(text.split()).casefold().encode("utf-8", "replace")


def _title(record: Record) -> str:
    # An exported one was cleaned before: to clean it twice could change it.
    title = record.title or ""
    return visible(title).strip() if record.listings else clean(title)


def _own_id(value: str | None) -> str | None:
    identifier = " ".join(visible(value).split()) if value else ""
    return identifier if 0 < len(identifier) <= MAX_ID_LENGTH else None


def _metadata(raw: Mapping[str, object]) -> dict[str, MetaValue]:
    kept = ((visible(key).strip(), metadata_value(value)) for key, value in raw.items())
    return {key: value for key, value in kept if key and value is not None}


def _count_words(text: str) -> int:
    return len(_UNSPACED.sub(" ", text).split()) + len(_UNSPACED.findall(text))
