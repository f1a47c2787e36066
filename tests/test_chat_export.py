from __future__ import annotations

import json
import os
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
    exchange = replace(exchange, retry=True, spent=Usage(5, 6))
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
            Exchange("Q4?", stopped=True, unfinished=" It needs *a* "),
        ],
    )
    assert "The papers do not answer this. Closest papers: \\[a\\`1\\]" in text
    assert "*No answer: It is \\*down\\*.*" in text
    assert "*Filter: keyword=a\\_b*" in text
    unfinished = "It needs \\*a\\* … *(not finished, not checked)*\n\n*Stopped before the end.*"
    assert f"## 4\\. Q4?\n\n{unfinished}" in text
    assert text.count("not checked") == 1
    assert text.count("*Stopped before the end.*") == 2


def test_an_export_is_never_written_over_another_file() -> None:
    path = Path("a.md")
    export.save(path, export.markdown("a", []), "again")
    export.save(path, export.markdown("b", []), "again")
    assert path.read_text(encoding="utf-8").startswith("<!-- citewise")
    path.write_text("mine")
    with pytest.raises(RagError, match=r"^a\.md is another file\. Choose a new name: again$"):
        export.save(path, "x", "again")
    assert path.read_text() == "mine"
    assert [p.name for p in Path().iterdir()] == ["a.md"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("nowhere/a.md", "No such file or directory"),
        ("a.csv/a.md", "Not a directory"),
        ("核" * 200 + ".md", "File name too long"),
        ("~nobody-of-this-name/a.md", "Could not determine home directory"),
        ("/", "Is a directory"),
        (".", "Is a directory"),
        ("", "Is a directory"),
        ("..", "Is a directory"),
        ("a\0", "embedded null byte"),
    ],
)
def test_an_export_that_cannot_be_written_says_why(name: str, reason: str) -> None:
    Path("a.csv").write_text("mine")
    said = f"{Path(name)} cannot be written: {reason}. Choose another: again"
    with pytest.raises(RagError) as caught:
        export.save(Path(name), "x", "again")
    assert str(caught.value) == said
    assert [p.name for p in Path().iterdir()] == ["a.csv"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes need a Unix")
def test_an_export_waits_for_no_pipe() -> None:
    os.mkfifo("a.md")
    with pytest.raises(RagError, match="is another file"):
        export.save(Path("a.md"), "x", "again")


def test_names_as_long_as_a_file_system_takes_can_be_written() -> None:
    path = Path("é" * 126 + ".md")
    export.save(path, "half \ud800\n", "again")
    assert path.read_text(encoding="utf-8") == "half ?\n"


WHOLE, OTHER = Exchange("1?", an_answer()), Exchange("2?", an_answer())
STOPPED, FAILED = Exchange("3?", an_answer(), stopped=True), Exchange("4?", error="down")


def again(exchange: Exchange) -> Exchange:
    return replace(exchange, retry=True)


@pytest.mark.parametrize(
    ("added", "left"),
    [
        ([WHOLE, OTHER], [WHOLE, OTHER]),
        ([WHOLE, again(OTHER)], [OTHER]),
        ([WHOLE, again(FAILED)], [WHOLE, again(FAILED)]),
        ([WHOLE, again(STOPPED)], [WHOLE, again(STOPPED)]),
        ([WHOLE, again(FAILED), again(STOPPED)], [WHOLE, again(STOPPED)]),
        ([WHOLE, again(FAILED), again(OTHER)], [OTHER]),
        ([WHOLE, FAILED, again(STOPPED), again(OTHER)], [WHOLE, OTHER]),
        ([WHOLE, STOPPED, again(FAILED)], [WHOLE, FAILED]),
        ([again(WHOLE)], [WHOLE]),
    ],
)
def test_a_whole_answer_gives_way_to_another_whole_one_alone(
    added: list[Exchange], left: list[Exchange]
) -> None:
    assert replay(to_record(exchange) for exchange in added).exchanges == left


def test_what_was_forgotten_gives_way_to_nothing() -> None:
    records = [to_record(WHOLE), {"type": "clear"}, to_record(again(OTHER))]
    assert replay(records).exchanges == [WHOLE, OTHER]


def test_a_question_asked_again_that_came_to_nothing_takes_nothing_away() -> None:
    question = {"type": "question", "question": "1?", "retry": True}
    left = Exchange("1?", stopped=True, retry=True)
    assert replay([to_record(WHOLE), question]).exchanges == [WHOLE, left]


def test_a_question_whose_answer_never_came_was_stopped() -> None:
    asked = [{"type": "question", "question": f"{n}?", "filter": "year=2026"} for n in (1, 2)]
    left = [Exchange(f"{n}?", stopped=True, condition="year=2026") for n in (1, 2)]
    assert replay(asked).exchanges == left
    assert replay([asked[0], {"type": "clear"}, asked[1]]).forgotten == 1
    assert replay([asked[0], to_record(WHOLE), asked[1]]).exchanges == [WHOLE, left[1]]
    assert "## 1\\. 1?\n\n*Filter: year=2026*\n\n*Stopped, no answer.*" in export.markdown("", left)


def test_what_is_not_understood_is_counted_and_its_question_kept() -> None:
    asked = {"type": "question", "question": "1?"}
    past = replay([{"type": "session"}, asked, {"type": "answer", "answer": 7}, {"type": "new"}])
    (left,) = past.exchanges
    assert (left.question, left.stopped, past.skipped) == ("1?", False, 2)
    assert left.error.startswith("Its answer is damaged")


def test_an_unanswered_turn_says_so() -> None:
    answered, unanswered = WHOLE.turn(), Exchange("?", an_answer(answered=False)).turn()
    assert answered is not None
    assert unanswered is not None
    assert (answered.answered, unanswered.answered) == (True, False)


def test_an_export_is_written_through_a_link() -> None:
    Path("dir").mkdir()
    Path("a.md").symlink_to("dir/b.md")
    for _ in range(2):
        export.save(Path("a.md"), export.markdown("a", []), "again")
        assert Path("a.md").is_symlink()
        assert [p.name for p in Path("dir").iterdir()] == ["b.md"]


def test_tokens_of_all_that_was_asked_are_counted() -> None:
    spent = [Usage(10, 1), Usage(200, 20), Usage(3000, 300)]
    asked = [WHOLE, again(FAILED), again(OTHER)]
    records = [to_record(replace(e, spent=s)) for e, s in zip(asked, spent, strict=True)]
    assert replay(records).spent == Usage(3210, 321)
    assert replay([*records, *records]).spent == Usage(6420, 642)
    unmeasured = {k: v for k, v in to_record(WHOLE).items() if k != "spent"}
    assert replay([unmeasured]).spent == Usage(3, 4)


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
