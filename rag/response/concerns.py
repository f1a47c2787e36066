"""A file's reviews -> its questions and concerns, numbered through the file."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from rag.errors import UsageError
from rag.review import Kind, Review, find_items, kind_of, read_reviews, reviews_in

STANDARD_INPUT = "-"


@dataclass(frozen=True, slots=True)
class Concern:
    """One item of a review: `text` stands at `[start, end)` of the review's text.

    `item` counts the items of the file from 1, `reviewer` its reviews; `number` is the reviewer's
    own, None where there is none. `review` is the file's name, and where it holds several reviews
    "#" and the review's ID or number. Of a file with one text the offsets are those of the file as
    decoded.
    """

    review: str
    reviewer: int
    item: int
    number: str | None
    section: str
    text: str
    start: int
    end: int
    kind: Kind

    @property
    def key(self) -> str:
        """The same for concerns of the same words, which are answered once."""
        said = f"{self.kind.kind}\0{' '.join(self.text.split())}"
        return hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class ReviewFile:
    """The reviews of one file, at least one, and all their items in order."""

    name: str
    reviews: tuple[Review, ...]
    concerns: tuple[Concern, ...]


def read_file(path: Path) -> ReviewFile:
    """The items of one file, "-" being standard input.

    Raises:
        ReadError: it cannot be read, is empty, no text, or JSON without a review.
        UsageError: standard input is a terminal.
    """
    if str(path) != STANDARD_INPUT:
        reviews = read_reviews(path)
    elif sys.stdin is None or sys.stdin.isatty():
        raise UsageError("There is no review to read. Name a file, or pipe one: rag review FILE")
    else:
        reviews = reviews_in(sys.stdin.buffer.read(), "stdin")
    return ReviewFile(reviews[0].file, reviews, _concerns(reviews))


def _concerns(reviews: Sequence[Review]) -> tuple[Concern, ...]:
    number = count(1)
    return tuple(
        Concern(
            review.file if len(reviews) == 1 else f"{review.file}#{review.id or review.number}",
            review.number,
            next(number),
            item.number,
            item.section,
            item.text,
            item.start,
            item.end,
            kind_of(item),
        )
        for review in reviews
        for item in find_items(review.text)
    )
