from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.bibliography import bibtex, reference
from rag.chat import export
from rag.chat.exchanges import Exchange, from_record, replay, to_record
from rag.errors import RagError
from rag.highlight import supporting
from rag.types import Answer, Citation, Hit, Paper, Source, Span, Statement, Usage

ODD = "a\x1b[31m*b* <i>`c` [d](e) \u202e\U000e0041"


def an_answer(**changes: Any) -> Answer:
    paper = Paper("a`1", "On *A*", "", "", (Source("l_s.txt", 3),), metadata={"year": 2026})
    citation = Citation(paper.id, "It is *so* <b>good</b> 12.5%.", 0, 28, 0.9)
    fields: dict[str, Any] = {
        "question": "Q?",
        "answered": True,
        "confidence": 0.75,
        "statements": (
            Statement("1. It is good, 12.5%.", True, (citation,)),
            Statement(f"- {ODD}", False, ()),
        ),
        "papers": (paper,),
        "model": "m",
        "usage": Usage(3, 4),
        "seconds": {"total": 1.5},
        "notes": ("n",),
        "retrieved": (Hit(replace(paper, metadata={}), 0.5, 1, None),),
        "asked": "Asked?",
    }
    return Answer(**(fields | changes))


def test_an_exchange_comes_back_as_it_was_kept() -> None:
    exchange = Exchange("Q?", an_answer(), "2026-01-01T00:00:00+0000", condition="year=2026")
    assert from_record(json.loads(json.dumps(to_record(exchange)))) == exchange
    failed = Exchange("Q?", error="down", stopped=True, unfinished="It", at="now")
    assert from_record(to_record(failed)) == failed


@given(st.recursive(st.none() | st.integers() | st.text(), st.lists, max_leaves=5))
def test_lines_of_another_version_are_passed_over(value: Any) -> None:
    good = to_record(Exchange("Q?", an_answer()))
    damaged = [{**good, name: value} for name in ("answer", "question")]
    damaged.append({**good, "answer": {**good["answer"], "statements": value}})
    past = replay([*damaged, {"type": value}, {"type": "filter", "filter": value}, good])
    assert past.exchanges[-1] == Exchange("Q?", an_answer())


def test_an_export_holds_all_and_no_markup_but_its_own() -> None:
    text = export.markdown("my *one*", [Exchange(f"What\nis {ODD}?", an_answer())])
    assert text == (
        "<!-- citewise conversation -->\n\n"
        "# Conversation my \\*one\\*\n\n"
        "## 1\\. What is a\\*b\\* \\<i\\>\\`c\\` \\[d\\](e) ?\n\n"
        "*Understood as: Asked?*\n\n"
        "1\\. It is good, 12.5%. \\[a\\`1\\]\n\n"
        "\\- a\\*b\\* \\<i\\>\\`c\\` \\[d\\](e)  **(not supported by the paper it cites)**\n\n"
        "> “It is \\*so\\* \\<b\\>**good**\\</b\\> **12.5%**.” \\[a\\`1\\]\n\n"
        "## Bibliography\n\n"
        "- \\[a\\`1\\] On \\*A\\*. 2026. (l\\_s.txt, record 3)\n"
    )


def test_an_export_says_what_was_not_answered_stopped_or_failed() -> None:
    closest = an_answer(answered=False, statements=(), asked="")
    text = export.markdown(
        "",
        [
            Exchange("Q1?", closest),
            Exchange("Q2?", error="It is *down*."),
            Exchange("Q3?", an_answer(), stopped=True, condition="keyword=a_b"),
        ],
    )
    assert "The papers do not answer this. Closest papers: \\[a\\`1\\]" in text
    assert "*No answer: It is \\*down\\*.*" in text
    assert "*Filter: keyword=a\\_b*" in text
    assert "*Stopped before the end.*" in text


def test_an_export_is_never_written_over_another_file() -> None:
    path = Path("a.md")
    export.save(path, export.markdown("a", []))
    export.save(path, export.markdown("b", []))
    assert path.read_text(encoding="utf-8").startswith("<!-- citewise")
    path.write_text("mine")
    with pytest.raises(RagError, match="is another file"):
        export.save(path, "x")
    with pytest.raises(RagError, match="cannot be written"):
        export.save(Path("nowhere/a.md"), "x")
    assert path.read_text() == "mine"
    assert [p.name for p in Path().iterdir()] == ["a.md"]


def test_bibtex_where_enough_is_known() -> None:
    known = {"authors": ["Ann Lee", "Bo_1"], "year": 2025, "venue": "COLM", "doi": "10.1/a"}
    paper = Paper("a b", "On {A} & 5% of $B$", "", "", (), metadata=known)
    assert (
        reference(paper) == "Ann Lee, Bo_1. On {A} & 5% of $B$. COLM. 2025. https://doi.org/10.1/a."
    )
    assert bibtex(paper) == (
        "@inproceedings{a-b,\n"
        "  title = {{On \\{A\\} \\& 5\\% of \\$B\\$}},\n"
        "  author = {Ann Lee and Bo\\_1},\n"
        "  year = {2025},\n"
        "  booktitle = {COLM},\n"
        "  doi = {10.1/a}\n}"
    )
    derived = Paper("a", "T", "", "", (), title_derived=True, metadata=known)
    assert bibtex(derived) is None
    assert bibtex(Paper("a", "T", "", "", (), metadata={"year": 2025})) is None
    own = Paper("a", "T", "", "", (), metadata={"bibtex": "@misc{x,}"})
    assert bibtex(own) == "@misc{x,}"


def test_words_that_support_stand_out() -> None:
    quote = "TopoPT scores 76.6% mIoU on ScanNet, not less."
    said = ["On ScanNet the mIoU of TopoPT is 76.6%."]
    assert [quote[s.start : s.end] for s in supporting(quote, said)] == [
        "TopoPT",
        "76.6% mIoU",
        "ScanNet",
    ]
    assert supporting("核的衰减速率", ["衰减"]) == [Span(2, 4)]
    assert supporting("", said) == supporting(quote, []) == []
