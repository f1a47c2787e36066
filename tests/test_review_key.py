"""Items and kinds against a hand-made key of fifteen real reviews: offsets and kinds, no text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rag.review.items import ReviewItem, find_items
from rag.review.kinds import kind_of

KEY = Path(__file__).parent / "data" / "review_key.jsonl"
REVIEWS = Path(__file__).parents[2] / "shared" / "reviews"

pytestmark = pytest.mark.skipif(not REVIEWS.is_dir(), reason=f"no reviews in {REVIEWS}")


def overlap(expected: dict[str, Any], found: ReviewItem) -> float:
    """Intersection over union, in characters."""
    shared = min(expected["end"], found.end) - max(expected["start"], found.start)
    return shared / (max(expected["end"], found.end) - min(expected["start"], found.start))


def matched(
    expected: Sequence[dict[str, Any]], found: Sequence[ReviewItem]
) -> list[tuple[dict[str, Any], ReviewItem]]:
    """Pairs that overlap by half or more, each in one pair only, the closest first."""
    close = ((overlap(e, f), n, m) for n, e in enumerate(expected) for m, f in enumerate(found))
    pairs: dict[int, int] = {}
    for share, n, m in sorted(close, reverse=True):
        if share >= 0.5 and n not in pairs and m not in pairs.values():
            pairs[n] = m
    return [(expected[n], found[m]) for n, m in pairs.items()]


@cache
def measured() -> tuple[int, int, list[tuple[dict[str, Any], ReviewItem]]]:
    """Items expected and found, and the matched pairs, over all reviews."""
    key = [json.loads(line) for line in KEY.read_text("utf-8").splitlines()]
    n_found, pairs = 0, []
    for name in sorted({line["review"] for line in key}):
        found = find_items((REVIEWS / name).read_text("utf-8"))
        n_found += len(found)
        pairs += matched([line for line in key if line["review"] == name], found)
    return len(key), n_found, pairs


def test_the_key_has_every_review() -> None:
    names = {json.loads(line)["review"] for line in KEY.read_text("utf-8").splitlines()}
    assert names == {path.name for path in REVIEWS.glob("*.md")}


def test_precision_and_recall_of_items() -> None:
    expected, found, pairs = measured()
    assert len(pairs) / found >= 0.9
    assert len(pairs) / expected >= 0.9


def test_kinds() -> None:
    pairs = measured()[2]
    assert sum(kind_of(f).kind == e["kind"] for e, f in pairs) / len(pairs) >= 0.85


def test_answerable_items_are_told_from_the_others() -> None:
    # Calling every item the authors' would be right on most of them.
    by_kind = {kind: [kind_of(f).kind for e, f in measured()[2] if e["kind"] == kind]
               for kind in ("answerable", "authors")}  # fmt: skip
    recalls = [kinds.count(kind) / len(kinds) for kind, kinds in by_kind.items()]
    assert sum(recalls) / 2 >= 0.75
