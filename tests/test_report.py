from __future__ import annotations

import base64
import hashlib
import itertools
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from doubles.commands import Rag, failed, write
from doubles.reported import (
    EMPTY,
    EVIL,
    FAILED,
    ITEMS,
    LEFT,
    META,
    MISSED,
    QUOTE,
    REFUSED,
    RIGHT,
    Reader,
    cite,
    entry,
    item,
    question,
    summary,
)
from hypothesis import given
from hypothesis import strategies as st

from eval.items import Item
from eval.metrics.measures import METRICS
from eval.metrics.scores import score
from eval.questions.gold import Gold
from eval.report import figures, markdown, page, provenance, shown
from eval.report.highlight import parts
from eval.report.verdicts import State, judge
from eval.report.view import HEADLINE, RunView
from eval.runs.directory import META as META_FILE
from eval.runs.directory import RESULTS, write_json, write_questions
from rag.text import visible


@pytest.fixture(scope="module")
def html() -> str:
    return page.render(META, ITEMS, summary())


@pytest.fixture(scope="module")
def read(html: str) -> Reader:
    return Reader(html)


@pytest.mark.parametrize(
    ("given_item", "state", "words"),
    [
        (RIGHT, State.RIGHT, "right"),
        (
            MISSED,
            State.WRONG,
            "a gold paper missed, a fact missed, an unsupported statement, an invented ID",
        ),
        (REFUSED, State.RIGHT, "refused, rightly"),
        (FAILED, State.FAILED, "failed"),
        (LEFT, State.SKIPPED, "not reached"),
        (item(question(6, gold=(("a",),))), State.WRONG, "refused, though answerable"),
        (
            item(question(6, "unanswerable", must_not_include=("TEA",)), ("Tea.", True, [cite()])),
            State.WRONG,
            "answered, though unanswerable, a false fact",
        ),
        (item(question(6, gold=((), ()))), State.WRONG, "refused, though answerable"),
        (
            item(question(6, gold=((), ("x",))), ("A.", True, [cite()])),
            State.WRONG,
            "2 gold papers missed",
        ),
        (item(question(6, "unlabelled"), ("A.", True, [cite()])), State.UNSCORED, "answered"),
        (item(question(6)), State.UNSCORED, "refused, though answerable"),
        (item(question(6), ("A.", True, [cite()])), State.UNSCORED, "answered"),
        (
            item(question(6, must_include=("(",)), ("A.", True, [cite()])),
            State.UNSCORED,
            "answered; an expression cannot be searched",
        ),
        (item(question(6, "unlabelled")), State.UNSCORED, "refused"),
        (
            item(question(6, "unlabelled"), ("A.", False, []), ("B.", False, [])),
            State.UNSCORED,
            "answered, 2 unsupported statements",
        ),
        (
            item(question(6, gold=(("alpha",),)), ("A.", False, [cite()]), unknown=["z"]),
            State.RIGHT,
            "right, an unsupported statement, an invented ID",
        ),
        (item(question(6, "unanswerable", gold=(("b",),))), State.RIGHT, "refused, rightly"),
    ],
)
def test_verdicts(given_item: Item, state: State, words: str) -> None:
    verdict = judge(given_item)
    assert (verdict.state, verdict.words) == (state, words)


@pytest.mark.parametrize("kind", ["fact", "unanswerable", "unlabelled"])
@pytest.mark.parametrize("gold", [(), (("alpha",),), (("omega",),)])
@pytest.mark.parametrize("patterns", [{}, {"must_include": ("A",)}, {"must_include": ("(",)},
                                      {"must_not_include": ("A",)}])  # fmt: skip
@pytest.mark.parametrize("said", [(), (("A.", False, [cite()]),)])
def test_a_verdict_is_that_of_the_metrics(
    kind: str, gold: Any, patterns: dict[str, Any], said: tuple[Any, ...]
) -> None:
    given_item = item(question(6, kind, gold=gold, **patterns), *said)
    scores = score(given_item)
    right = scores["correct"] if kind != "unanswerable" else scores["refused"]
    verdict = judge(given_item)
    expected = {1.0: State.RIGHT, 0.0: State.WRONG, None: State.UNSCORED}[right]
    assert verdict.state is expected
    assert all(verdict.reasons)


def test_failing_items_come_first_and_of_the_wrong_those_with_most_faults() -> None:
    mild = item(question(6, gold=(("x",),)), ("A.", True, [cite()]))
    view = RunView(META, [RIGHT, mild, *ITEMS[1:]], EMPTY, 2)
    assert [row.id for row in view.rows] == ["q-4", "q-2", "q-6", "q-1", "q-3", "q-5"]
    assert [detail is not None for _, detail in view.details()] == [True, True, *[False] * 4]


def test_words_of_the_statement_are_marked_in_the_quote() -> None:
    assert parts("It scores 76.6% mIoU, on ScanNet.", "76.6% mIoU is scored") == [
        ("It ", False),
        ("scores 76.6% mIoU", True),
        (", on ScanNet.", False),
    ]
    assert parts("达到63.9%。", "63.9%") == [("达到", False), ("63.9%", True), ("。", False)]
    assert parts("", "x") == []


@given(st.text(), st.text())
def test_the_pieces_of_a_quote_are_the_quote(quote: str, statement: str) -> None:
    pieces = parts(quote, statement)
    assert "".join(text for text, _ in pieces) == visible(quote)
    assert all(a[1] != b[1] for a, b in itertools.pairwise(pieces))


def test_an_item_unfolded_shows_everything_known_of_it(read: Reader) -> None:
    assert read.text("item-q-1") == (
        "By how much? fact right confidence 0.80 5.0 s Answer By 12.5% it lowers the noise. "
        "supported entailed "
        f"{QUOTE} alpha AlphaNet; support 0.91; carries the statement by itself "
        "Beta folds. beta; support 0.91; adds nothing to the others "
        r"Notes A note. Expected cites alpha or omega says 12\.5 About the question a number "
        "Retrieved Rank Paper Title Use Score By meaning By words "
        "1 alpha AlphaNet gold, cited 4.031 2 – "
        "q-1; 2026-03-14 09:00 UTC; attempt 2; from the cache; retrieve 0.2 s; generate 4.0 s; "
        "verify 0.8 s; 1,200 tokens read, 34 written"
    )
    assert read.text("item-q-4") == (
        "And then? followup failed – – Before First? Yes. "
        "Error The endpoint answered 500. Try again. Notes A note. Expected "
        "Retrieved Rank Paper Title Use Score By meaning By words 1 alpha AlphaNet gold 4.031 2 – "
        "q-4; 2026-03-14 09:00 UTC; attempt 2"
    ).replace("Expected ", "")
    assert "does not cite gamma does not say seven says folds?" in read.text("item-q-2")
    assert "cites zeta, which was not retrieved" in read.text("item-q-2")


def test_the_page_loads_nothing_and_lets_nothing_load(html: str, read: Reader) -> None:
    assert "http://" not in html
    assert "https://" not in html
    assert not re.search(r"@import|url\((?!#)|\bstyle=|\son\w+=", html)
    assert not {tag for tag, _ in read.tags} & {"link", "img", "iframe", "object", "embed", "base"}
    addresses = [v for _, at in read.tags for n, v in at.items() if n in ("src", "href", "action")]
    assert addresses and all(address and address.startswith("#") for address in addresses)


def test_the_policy_allows_the_page_s_own_style_and_script_only(html: str, read: Reader) -> None:
    inline = re.findall(r"<(?:style|script)>(.*?)</(?:style|script)>", html, re.DOTALL)
    style, script = (
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in inline
    )
    policy = next(at["content"] for tag, at in read.tags if at.get("http-equiv"))
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; "
        "base-uri 'none'; form-action 'none'"
    )


def test_links_within_the_page_lead_somewhere(read: Reader) -> None:
    ids = [at["id"] for _, at in read.tags if "id" in at]
    assert len(ids) == len(set(ids))
    links = {at[n][1:] for _, at in read.tags for n in ("href",) if n in at}
    assert links <= set(ids)
    labels = " ".join(at["aria-labelledby"] or "" for _, at in read.tags if "aria-labelledby" in at)
    assert set(labels.split()) <= set(ids)


def test_the_same_run_gives_the_same_bytes(html: str) -> None:
    assert page.render(META, ITEMS, summary()) == html


def test_headline_and_what_was_run(read: Reader) -> None:
    assert f"0.50 {METRICS['all_gold_cited'].title} 0.25 to 0.75 n 3" in read.text("figures")
    assert read.text("run").startswith(
        "What was run Language model tiny.gguf Embedding bge-small-en-v1.5 "
        "Corpus vectorstore/demo, 56 papers, fingerprint fedcba987654 "
        "Questions demo.jsonl, 4 questions, fingerprint 0123456789ab "
        "Commit 1010bf9c0d7a, with changes not committed Version 0.1.0 "
        "Started 2026-03-14 09:00 UTC Took 1 min 13 s, 2 at a time "
        "Tokens 12,345 read, 678 written Seed 0 Settings"
    )
    assert "settings.llm.context_tokens 4096" in read.text("run")
    assert "only programs read" not in read.text("run")


def test_every_number_of_a_figure_stands_in_a_table(read: Reader) -> None:
    assert "0.70 to 0.90 0.80 0.67 3" in read.text("confidence")
    assert "0.50 0.00 0.90 1.00 0.50 0.70" in read.text("confidence")
    assert "generate 4.0 s 4.0 s 4.0 s" in read.text("confidence")
    assert read.text("reliability-text") == "confidence 0.80: 0.67 correct of 3"
    assert read.text("risk-text") == "At coverage 1.00 the risk is 0.50."
    assert read.text("kind-all_gold_cited-text") == "fact 0.50"
    assert "fact" in read.text("metrics")


@pytest.mark.parametrize(
    ("items", "absent"),
    [
        ([], {"reliability-text", "risk-text", "latency-text"}),
        ([LEFT], {"reliability-text", "risk-text", "latency-text"}),
        ([FAILED, FAILED], {"reliability-text", "risk-text", "latency-text"}),
        ([REFUSED], {"reliability-text", "risk-text"}),
    ],
)
def test_a_run_without_answers_gives_a_page(items: list[Item], absent: set[str]) -> None:
    read = Reader(page.render({}, items, EMPTY))
    assert not absent & read.texts.keys()
    plural = "" if len(items) == 1 else "s"
    assert f"{len(items)} question{plural}" in " ".join(read.texts["top"].split())
    assert ("There is no answer to measure." in read.text("confidence")) is (
        "latency-text" in absent
    )


def test_answers_that_all_took_the_same_time_and_have_the_same_confidence() -> None:
    seconds = [{"retrieve": 0.0, "generate": 0.0, "verify": 0.0, "total": 0.0}] * 3
    assert "3" in figures.latency("same", seconds)
    table = [{"low": 1.0, "high": 1.0, "confidence": 1.0, "accuracy": 1.0, "n": 3}]
    assert "confidence 1.00: 1.00 correct of 3" in figures.reliability("same", table)


def test_text_from_outside_is_never_markup() -> None:
    statement = (EVIL, True, [cite(EVIL, EVIL)])
    asked = replace(question(1), id=EVIL, kind=EVIL, question=EVIL, note=EVIL)
    hostile = item(replace(asked, must_include=(re.escape(EVIL),)), statement, unknown=[EVIL])
    broken = replace(FAILED, result={**(FAILED.result or {}), "error": EVIL})
    html = page.render(
        {**META, "model": EVIL, "settings": {EVIL: EVIL}},
        [hostile, broken],
        summary(**{EVIL: {"all_gold_cited": entry(0.5)}}),
    )
    read = Reader(html)
    assert [tag for tag, _ in read.tags].count("script") == 1
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e]", html)
    seen = visible(EVIL)
    assert seen == "<script>alert(\"x\")</script> & 'quote' red gnp $E=mc^2$"
    unfolded = read.text(shown.anchor(EVIL))
    assert unfolded.count(seen) == 8
    assert f"Error {seen} Notes" in read.text("item-q-4")
    assert f"settings.{seen} {seen}" in read.text("run")


def test_more_items_than_are_unfolded(read: Reader) -> None:
    short = Reader(page.render(META, ITEMS, summary(), detailed=1))
    assert short.text("item-q-2") == read.text("item-q-2").partition(" Answer")[0]
    assert short.text("item-q-4") == read.text("item-q-4")
    assert "The first 1 only: the others are in results.jsonl of the run." in short.text("items")


@pytest.mark.parametrize(
    ("identifier", "anchor"),
    [("dev-001", "item-dev-001"), ("a b#%", "item-a%20b%23%25"), ("ü)", "item-%C3%BC%29")],
)
def test_anchors(identifier: str, anchor: str) -> None:
    assert shown.anchor(identifier) == anchor


@given(st.lists(st.text(), unique=True))
def test_no_two_ids_have_one_anchor(ids: list[str]) -> None:
    assert len({shown.anchor(identifier) for identifier in ids}) == len(ids)


@pytest.mark.parametrize(
    ("number", "unit", "text"),
    [
        (None, "share", "–"),
        (0.975, "share", "0.97"),
        (1.0, "share", "1.00"),
        (0.0, "count", "0"),
        (0.333, "count", "0.33"),
        (1234.5, "tokens", "1,234"),
        (9.96, "seconds", "10.0 s"),
        (1234.0, "seconds", "1,234 s"),
    ],
)
def test_values(number: float | None, unit: str, text: str) -> None:
    assert shown.value(number, unit) == text


def test_intervals_may_lack_a_bound() -> None:
    assert shown.interval(0.2, 0.4, "share") == "0.20 to 0.40"
    assert shown.interval(None, 3.0, "count") == "at most 3"
    assert shown.interval(2.0, None, "seconds") == "at least 2.0 s"
    assert shown.interval(None, None, "share") == ""


def test_durations_and_moments() -> None:
    assert [shown.duration(s) for s in (0.25, 59.4, 59.6, 4000)] == [
        "0.2 s",
        "59.4 s",
        "1 min 0 s",
        "1 h 6 min",
    ]
    assert shown.moment("2026-03-14T09:00:31+02:00") == "2026-03-14 09:00 UTC+02:00"
    assert shown.moment("yesterday") == "yesterday"


def test_markdown() -> None:
    names = [METRICS[name].title for name in HEADLINE]
    rest = "".join(f"| {name} | – | – | 0 |\n" for name in names[1:])
    assert markdown.render(META, ITEMS, summary()) == (
        "## Evaluation: demo.jsonl, model tiny.gguf, 56 papers, 2026-03-14 09:00 UTC\n\n"
        "**5 questions**: 1 failed with an error, 1 wrong, 2 right, 1 not reached.\n\n"
        "| Metric | Value | 95 % interval | n |\n"
        "| --- | ---: | ---: | ---: |\n"
        f"| {names[0]} | 0.50 | 0.25 to 0.75 | 3 |\n"
        f"{rest}\n"
        f"| Kind | n | Failed | {names[0]} |\n"
        "| --- | ---: | ---: | ---: |\n"
        "| fact | 2 | 1 | 0.50 (0.00 to 1.00) |\n\n"
        "Failed and wrong items:\n\n"
        "- [q-4](report.html#item-q-4): And then? **failed**\n"
        "- [q-2](report.html#item-q-2): By how much? **a gold paper missed, a fact missed, "
        "an unsupported statement, an invented ID**\n"
    )


def test_markdown_of_nothing() -> None:
    assert markdown.render({}, [], EMPTY) == "## Evaluation: questions\n\n**0 questions**.\n"


def test_markdown_of_hostile_text() -> None:
    assert markdown.plain("a|b [x](y) <b>\n# `c` _d_ *e* &amp; \x1b[1m~$\\") == (
        "a\\|b \\[x\\](y) \\<b\\> # \\`c\\` \\_d\\_ \\*e\\* \\&amp; \\~\\$\\\\"
    )
    assert markdown.plain("@ann #12 http://a.b www.c.d") == (
        "@<!-- -->ann #<!-- -->12 http:<!-- -->//a.b www<!-- -->.c.d"
    )
    long = item(question(7, text="x" * 200, gold=(("a",),)))
    assert f"- [q-7](my%20page.html#item-q-7): {'x' * 159}… **refused" in markdown.render(
        META, [long], EMPTY, "my page.html"
    )


def test_titles_of_runs_that_say_little() -> None:
    assert provenance.title({}) == "questions"
    assert provenance.main_facts({"finished": None, "git": None}) == [
        ("Finished", "no: stopped, or still at work")
    ]


@pytest.fixture
def run_directory(isolated: Path) -> Path:
    directory = isolated / "run"
    directory.mkdir()
    write_json(directory / META_FILE, META)
    write_questions(directory, [(i.question, Gold(i.gold)) for i in ITEMS])
    write(str(directory / RESULTS), *(i.result for i in ITEMS if i.result))
    return directory


def test_the_command_writes_the_page(rag: Rag, run_directory: Path) -> None:
    ran = rag("eval", "report", "run")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == f"The report of 5 questions is in {Path('run/report.html')}.\n"
    first = (run_directory / "report.html").read_bytes()
    assert Reader(first.decode()).text("item-q-1").startswith("By how much? fact right")
    assert rag("eval", "report", "run", "--out", "other.html").code == 0
    assert Path("other.html").read_bytes() == first


def test_the_command_prints_markdown(rag: Rag, run_directory: Path) -> None:
    ran = rag("eval", "report", "run", "--md", "--out", "a page.html")
    assert (ran.code, ran.err) == (0, "The report of 5 questions is in a page.html.\n")
    assert ran.out.startswith("## Evaluation: demo.jsonl, model tiny.gguf, 56 papers, 2026-03-14")
    assert "- [q-4](a%20page.html#item-q-4): And then? **failed**\n" in ran.out


def test_the_command_without_a_run(rag: Rag, isolated: Path) -> None:
    failed(
        rag("eval", "report", "nowhere"),
        2,
        "There is no run in nowhere. Make one with "
        "`rag eval answers QUESTIONS.jsonl --out nowhere`, or correct the path.",
    )


def test_the_command_where_nothing_can_be_written(rag: Rag, run_directory: Path) -> None:
    ran = rag("eval", "report", "run", "--out", "missing/page.html")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("missing cannot be written: No such file or directory.")
