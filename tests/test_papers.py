from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.labels import MAX_WORDS, derive_label
from rag.papers import MIN_WORDS, content_hash, derive_id, to_paper
from rag.text import clean
from rag.types import Paper, Record, Rejected, Source

SHARED = Path(__file__).parents[2] / "shared"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason=f"no development data at {SHARED}")
SOURCE = Source("list.txt", 3)
ABSTRACT = r"We propose \textbf{FooNet}, which is $2\times$ faster than every other net."


def paper_of(record: Record) -> Paper:
    paper = to_paper(record)
    assert isinstance(paper, Paper)
    return paper


def test_a_record_without_id_and_title_gets_both_from_its_text() -> None:
    paper = paper_of(Record(SOURCE, ABSTRACT))
    assert paper == Paper(
        id="p-t2jqf8y",
        title="FooNet",
        text="We propose FooNet, which is 2× faster than every other net.",
        original=ABSTRACT,
        sources=(SOURCE,),
        title_derived=True,
    )


def test_the_sources_own_id_and_title_are_kept_and_cleaned() -> None:
    record = Record(SOURCE, ABSTRACT, id=" A\u200b 1\n", title=r"Foo \emph{Net}: $x^2$")
    paper = paper_of(record)
    assert (paper.id, paper.title, paper.title_derived) == ("A 1", "Foo Net: x²", False)


@pytest.mark.parametrize("own", [None, "", " \u200b", "x" * 201])
def test_an_unusable_id_is_as_none(own: str | None) -> None:
    assert paper_of(Record(SOURCE, ABSTRACT, id=own)).id == derive_id(clean(ABSTRACT))


def test_metadata_keeps_simple_values_only() -> None:
    raw = {
        "year": 2026,
        "ok": True,
        "score": 0.5,
        "nan": float("nan"),
        "venue\x00": "Neur\x1b[1mIPS",
        "authors": ["A\u202e", "B"],
        "nested": {"a": 1},
        "mixed": ["a", 1],
        "empty": "",
    }
    paper = paper_of(Record(SOURCE, ABSTRACT, metadata=raw))  # type: ignore[arg-type]
    assert dict(paper.metadata) == {
        "year": 2026,
        "ok": True,
        "score": 0.5,
        "venue": "NeurIPS",
        "authors": ["A", "B"],
    }


@pytest.mark.parametrize(
    ("abstract", "reason"),
    [
        ("", "The abstract is empty; 5 words are the least."),
        ("\u200b", "The abstract is empty; 5 words are the least."),
        ("Withdrawn", "The abstract has 1 word; 5 words are the least."),
        ("One two three four", "The abstract has 4 words; 5 words are the least."),
    ],
)
def test_too_short(abstract: str, reason: str) -> None:
    assert to_paper(Record(SOURCE, abstract)) == Rejected("list.txt", 3, reason, whole=True)


def test_the_shortest_and_a_very_long_abstract() -> None:
    assert paper_of(Record(SOURCE, "one two three four five")).text.count(" ") == MIN_WORDS - 1
    assert len(paper_of(Record(SOURCE, "word " * 100_000)).text.split()) == 100_000
    assert paper_of(Record(SOURCE, "我们提出方法")).text == "我们提出方法"


def test_derived_ids_are_known_values() -> None:
    # SHA-256("abc") begins ba7816bf8f: 10111 01001 11100 00001 01101 01111 11100
    assert derive_id("abc") == "p-q9w1dfw"
    assert derive_id("abc", length=3) == "p-q9w"
    assert content_hash(" ABC\n") == (
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    )


@given(st.text(min_size=1), st.integers(1, 51))
def test_ids_ignore_case_and_spacing_and_are_typable(text: str, length: int) -> None:
    identifier = derive_id(text, length)
    assert re.fullmatch(f"p-[0-9a-hjkmnp-tv-z]{{{length}}}", identifier)
    assert derive_id(f"  {text}\n", length) == identifier
    assert derive_id(text, 51).startswith(identifier)
    words = " ".join(text.split())
    assert derive_id(words.replace(" ", "\n  "), length) == identifier


def test_ids_tell_texts_apart() -> None:
    assert len({derive_id(f"abstract {n}") for n in range(2_000)}) == 2_000


@pytest.mark.parametrize(
    ("text", "label"),
    [
        (
            "Nets are bad. We propose *Local Foo Estimation* (LFE), a method. LFE wins.",
            "LFE: Local Foo Estimation",
        ),
        (
            "We introduce Panoptic Foo Ranking (PFR), a new task for all.",
            "PFR: Panoptic Foo Ranking",
        ),
        (r"From BigNet we derive \textbf{TinyNet}, a student of it.", "TinyNet"),
        (
            "LLMs fail. This paper presents a large benchmark called FOO-Bench for LLMs.",
            "FOO-Bench",
        ),
        ("We study a few heads, termed **Evidence Heads**, that respond.", "Evidence Heads"),
        ("We propose Proprio, a framework for GPT-4 and LLaMA.", "Proprio"),
        (
            "RL is hard. We propose a method for RL in MORL. Ours, FooRL, and more.",
            "Method for RL in MORL…",
        ),
        (
            "We instantiate our framework for DP-SGD and find it fast.",
            "We instantiate our framework for DP-SGD and find…",
        ),
        (
            "We show that deep nets can be made sparse by very simple means.",
            "Deep nets can be made sparse by very…",
        ),
        ("Only these words", "Only these words"),
        ("", ""),
    ],
)
def test_labels(text: str, label: str) -> None:
    assert derive_label(text) == label


@given(st.text(max_size=300))
def test_labels_are_short_lines(text: str) -> None:
    label = derive_label(text)
    assert label == clean(label) or "\n" not in label
    assert len(label.split()) <= MAX_WORDS


@needs_shared
def test_the_shared_lists_hold_56_papers_with_distinct_ids_and_labels() -> None:
    blocks = [
        block
        for path in sorted((SHARED / "papers").glob("*.txt"))
        for block in re.split(r"\n\s*\n", path.read_text("utf-8").strip())[1:]
    ]
    papers = [paper_of(Record(SOURCE, block)) for block in blocks]
    assert len(papers) == 57
    assert len({paper.id for paper in papers}) == 56
    assert len({paper.title for paper in papers}) == 56


def test_half_a_surrogate_pair_can_be_stored() -> None:
    paper = to_paper(Record(SOURCE, "\ud83d We propose a graph network."))
    assert isinstance(paper, Paper)
    assert (paper.text, paper.original) == (
        "We propose a graph network.",
        "? We propose a graph network.",
    )


@needs_shared
def test_labels_find_the_systems_name_of_titled_papers() -> None:
    records = json.loads((SHARED / "papers" / "colm-2025.json").read_text("utf-8"))
    named = found = 0
    for record in records:
        name, colon, _ = record["title"].partition(": ")
        if colon and " " not in name and name.lower() in record["abstract"].lower():
            named += 1
            found += derive_label(record["abstract"]).partition(":")[0].lower() == name.lower()
    assert named == 140
    assert found / named >= 0.85
