from __future__ import annotations

import json
import re
import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.sentences import sentence_spans
from rag.text import clean

SHARED = Path(__file__).parents[2] / "shared"


def split(text: str) -> list[str]:
    return [text[span.start : span.end] for span in sentence_spans(text)]


@pytest.mark.parametrize(
    "sentences",
    [
        ["It gets 63.9% mAP50.", "See Fig. 3 of Li et al. (2020)."],
        ["We use e.g. Adam, i.e. Nadam vs. SGD.", "It works."],
        ["Version 2.5.1 is w.r.t. GPT-4.1 slower.", "On approx. 5 items it fails."],
        ["It was shown by Smith et al.", "We go on."],
        [
            "Data is i.i.d. Gaussian.",
            "J. K. Smith found U.S. Data.",
            "It is vitamin C.",
            "We agree.",
        ],
        ["CF. is not Cf. Smith."],
        ["We ask why.", "3D Gaussians help.", "vLLM is fast.", "iBOT too."],
        ["It lags... and stops... but then goes on.", "Yes!", "Really?!", "Yes."],
        ["Code is at https://a.io/b.html.", "Then www.a.io/c.d is down."],
        ["Gains are large.[12]", "They said “stop.”", "(See Eq. 5.)", "All of it."],
        ["1. The first holds.", "2. The second holds."],
        ["The answer is no.", "Nothing is left.", "No. 5 is alive."],
        ["我们提出新方法。", "“效果好！”", "真的吗？", "是的"],
        ["Left whole: a; b, c without an end"],
        ["Is it so (cf. Sec. 2. of it)?", "Yes."],
    ],
)
def test_boundaries(sentences: list[str]) -> None:
    # Chinese needs no space between sentences; each case is put together as it would be written.
    joined = ("" if sentences[0][0] > "\u3000" else " ").join(sentences)
    assert split(joined) == sentences


def test_a_missing_space_after_the_stop() -> None:
    assert split("It forgets old ones.However, ours helps.") == [
        "It forgets old ones.",
        "However, ours helps.",
    ]
    assert split("Node.js and foo.In/x and a.We stay whole.") == [
        "Node.js and foo.In/x and a.We stay whole."
    ]


@pytest.mark.parametrize("text", ["", " \n ", "\u3000"])
def test_nothing_has_no_sentence(text: str) -> None:
    assert sentence_spans(text) == []


@given(st.one_of(st.text(), st.text(st.sampled_from("aA1 .!?…。”)[]\n\u3000é"), max_size=80)))
def test_spans_are_ordered_trimmed_and_cover_all(text: str) -> None:
    spans = sentence_spans(text)
    assert all(a.end <= b.start for a, b in pairwise(spans))
    covered = [text[span.start : span.end] for span in spans]
    assert all(part and part == part.strip() for part in covered)
    assert "".join("".join(covered).split()) == "".join(text.split())


@pytest.mark.parametrize("unit", [". ", "a. ", "。", ".[1] ", "word ", "A.", "?!", "؟"])
def test_time_is_linear(unit: str) -> None:
    started = time.perf_counter()
    sentence_spans(unit * 100_000)
    assert time.perf_counter() - started < 5


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"no development data at {SHARED}")
def test_real_abstracts() -> None:
    records = json.loads((SHARED / "papers" / "colm-2025.json").read_text("utf-8"))
    sentences = [s for r in records for s in split(clean(r["abstract"]))]
    # A torn sentence starts in lower case or is a fragment; "Code: <address>" is whole.
    torn = [
        s
        for s in sentences
        if (re.match(r"[a-z]+\b(?!-?[A-Z])", s) or len(s.split()) < 3) and "://" not in s
    ]
    assert len(sentences) > 3000
    assert torn == []
