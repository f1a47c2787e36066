"""A peer review -> its questions and concerns, and which of them abstracts of papers can answer."""

from __future__ import annotations

from rag.review.addressed import addresses_program
from rag.review.items import ReviewItem, find_items
from rag.review.kinds import Kind, kind_of
from rag.review.reading import Review, read_reviews, reviews_in

__all__ = [
    "Kind",
    "Review",
    "ReviewItem",
    "addresses_program",
    "find_items",
    "kind_of",
    "read_reviews",
    "reviews_in",
]
