from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from doubles.commands import RECORDS, UNSEEN, Rag, write
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eval.linting.findings import Report
from eval.linting.lint import NO_CORPUS, lint
from rag.errors import RagError
from rag.types import Paper, Source

SHARED = Path(__file__).parents[2] / "shared"
DATA = Path(__file__).parents[1] / "eval" / "data"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason=f"no development data at {SHARED}")

GOOD = {
    "id": "q1",
    "kind": "fact",
    "question": "By how much does AlphaNet lower the graph noise?",
    "gold": [["alpha"]],
    "must_include": ["12\\.5"],
}


def paper(record: Any, file: str = "papers.jsonl", position: int = 1) -> Paper:
    title, text = record.get("title", record["id"]), record["abstract"]
    return Paper(record["id"], title, text, text, (Source(file, position),))


PAPERS = [paper(record, position=n) for n, record in enumerate(RECORDS, start=1)]


def check(*lines: object, papers: list[Paper] | None = PAPERS) -> Report:
    return lint(write("set.jsonl", *lines), papers)


def found(*lines: object, papers: list[Paper] | None = PAPERS) -> list[tuple[int, str, str]]:
    """(line, severity, rule) of every finding."""
    return [(f.line, str(f.severity), f.rule) for f in check(*lines, papers=papers).findings]


def changed(**values: object) -> dict[str, object]:
    return {**GOOD, **values}


def test_a_sound_set_has_no_findings() -> None:
    report = check(GOOD, {"id": "u", "kind": "unanswerable", "question": "What is GammaNet's AUC?"})
    assert report == Report(2, ())


def test_without_a_corpus_the_rest_is_checked_and_said_so() -> None:
    report = check(changed(gold=[["nobody"]], must_include=["x*"]), papers=None)
    assert [f.rule for f in report.findings] == ["matches-everything"]
    assert report.notes == (NO_CORPUS,)


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ({"gold": []}, "error no-gold"),
        ({"must_include": []}, "warning no-must-include"),
        ({"kind": "unanswerable", "must_include": []}, "error unanswerable-with-gold"),
        ({"kind": "unanswerable", "gold": []}, "error unanswerable-with-must-include"),
        ({"kind": "followup"}, "error no-history"),
        ({"question": "AlphaNet noise?"}, "warning short"),
        ({"question": "Why does AlphaNet " + "lower noise " * 60}, "warning long"),
        ({"gold": [["alpha"], ["papers.jsonl:1"]]}, "warning gold-twice"),
        ({"gold": [["alhpa"]]}, "error gold-not-in-corpus"),
        ({"gold": [["papers.jsonl:9"]]}, "error gold-not-in-corpus"),
        ({"gold": [["other:1"]]}, "error gold-not-in-corpus"),
        ({"gold": [["alpha", "other:1"]]}, "warning gold-not-in-corpus"),
        ({"must_include": ["12\\.6"]}, "error not-in-gold"),
        ({"must_include": ["12\\.6|12\\.5"]}, None),
        ({"gold": [["beta"], ["alpha"]]}, None),
        ({"must_include": [".*"]}, "error matches-everything"),
        ({"must_include": ["(?i)\\w"]}, "error matches-everything"),
        ({"must_include": ["x|"]}, "error matches-everything"),
        ({"must_include": ["12\\.5", "graph noise"]}, "warning given-away"),
        ({"must_include": ["graph noise"]}, "error given-away"),
        ({"must_include": ["(a+)+\\x00b", "12\\.5"]}, "error slow-pattern"),
        ({"must_not_include": ["3 GPUs"]}, "warning forbids-gold"),
        ({"must_not_include": ["99"]}, None),
        ({"must_not_include": ["12\\.5"]}, "error contradiction"),
        ({"must_not_include": ["\\s*"]}, "error matches-everything"),
        ({"must_include": ["("]}, "error unreadable"),
        ({"must_inlcude": ["x"]}, "warning unknown"),
        ({"from": [{"paper_id": "alpha", "quote": "A", "start": 0, "end": 1}]}, None),
        ({"kind": "unanswerabel"}, "warning unknown"),
    ],
)
def test_what_is_wrong_with_one_question(values: dict[str, object], rule: str | None) -> None:
    if values.get("question"):
        values = {**values, "must_include": ["12\\.5"]}
    other = {**GOOD, "id": "other", "question": "What does AlphaNet need for a week?"}
    wanted = [(1, *rule.split())] if rule else []
    assert found(changed(**values), other) == wanted


def test_an_earlier_answer_may_give_it_away_too() -> None:
    turn = {"question": "What is AlphaNet?", "answer": "It lowers noise by 12.5%."}
    line = changed(kind="followup", question="By how much?", history=[turn])
    assert found(line) == [(1, "error", "given-away")]


def test_a_place_that_means_two_papers() -> None:
    papers = [paper(RECORDS[0], "list-a.txt"), paper(RECORDS[1], "list-b.txt")]
    assert found(changed(gold=[["list:1"]]), papers=papers) == [(1, "error", "gold-ambiguous")]
    assert found(changed(gold=[["list-a:1"]]), papers=papers) == []


def test_messages_say_what_and_what_to_do() -> None:
    (finding,) = check(changed(gold=[["alhpa"]], must_include=["12\\.5"])).findings
    assert (finding.line, finding.id) == (1, "q1")
    assert finding.message == (
        "gold 'alhpa' is no paper of the store (is 'alpha' meant?). Correct it, ingest its file, "
        "or name the right store with --store."
    )


NEAR = "By how much does AlphaNet lower graph noise?"


@pytest.mark.parametrize(
    ("first", "second", "rule"),
    [
        (GOOD["question"], "by how much does alphanet LOWER the graph-noise", "error duplicate"),
        (GOOD["question"], NEAR, "warning near-duplicate"),
        (
            "How many tokens does the new distillation of AlphaNet need?",
            "How many tokens does the new distilation of AlphaNet need?",
            "warning near-duplicate",
        ),
        # Another name, another number, another word: another question.
        (GOOD["question"], "By how much does BetaNet lower the graph noise?", None),
        ("What does AlphaNet need in 3 weeks?", "What does AlphaNet need in 4 weeks?", None),
        (
            "Which of the rules is hardest to manipulate under the mean in AlphaNet?",
            "Which of the rules is hardest to manipulate under the median in AlphaNet?",
            None,
        ),
    ],
)
def test_duplicates(first: str, second: str, rule: str | None) -> None:
    lines = [changed(question=first), changed(id="q2", question=second)]
    assert found(*lines) == ([(2, *rule.split())] if rule else [])


def test_follow_ups_are_compared_with_their_history() -> None:
    def follow_up(name: str, question: str) -> dict[str, object]:
        turn = {"question": question, "answer": "Something."}
        return changed(id=name, kind="followup", question="And under noise?", history=[turn])

    lines = [follow_up("a", "What of Alpha?"), follow_up("b", "What of Beta?")]
    assert found(*lines) == []
    assert found(*lines, follow_up("c", "What of alpha?")) == [(3, "error", "duplicate")]


def test_a_list_that_lacks_a_paper() -> None:
    line = changed(kind="list", question="Which papers are about noise?", must_include=[])
    report = check(line)
    assert [f.rule for f in report.findings] == ["list-incomplete"]
    assert report.findings[0].message.startswith(
        "'noise', which every gold paper holds, stands in beta, gamma too."
    )
    assert found({**line, "note": "beta and papers.jsonl:3 only mention it"}) == []
    assert found({**line, "gold": [["alpha"], ["beta"], ["gamma"]]}) == []
    # Only AlphaNet lowers it: single words count together.
    assert found({**line, "question": "Which papers lower the noise?"}) == []


def test_a_list_by_an_acronym() -> None:
    papers = [
        paper({"id": "a", "abstract": "A Sparse Autoencoder (SAE) is trained."}),
        paper({"id": "b", "abstract": "Most SAEs deviate."}, position=2),
    ]
    question = "Which papers work with sparse autoencoders?"
    line = changed(kind="list", question=question, gold=[["a"]], must_include=[])
    assert found(line, papers=papers) == [(1, "warning", "list-incomplete")]


def test_bad_lines_are_named_and_the_rest_is_checked() -> None:
    path = Path("set.jsonl")
    lines = ["{", "[]", json.dumps({"id": "x"}), json.dumps(GOOD), json.dumps(GOOD)]
    path.write_text("\n\n".join(lines), encoding="utf-8")
    report = lint(path, PAPERS)
    assert [(f.line, f.rule) for f in report.findings] == [(n, "unreadable") for n in (1, 3, 5, 9)]
    assert report.questions == 1


def test_the_command(filled: Rag) -> None:
    path = write("set.jsonl", GOOD, changed(id="q2", question="Of \x1b[31mwhat\u202e is AlphaNet?"))
    assert filled("eval", "lint", path).code == 0
    write("set.jsonl", GOOD, changed(id="\x1b[31mq2\u202e", gold=[["\u202enobody"]]))
    run = filled("eval", "lint", path)
    assert run.code == 1
    assert not UNSEEN.search(run.out)
    assert [line.partition(": ")[0] for line in run.out.splitlines()] == ["set.jsonl:2"] * 2
    assert run.err == "2 questions, 2 errors, 0 warnings.\n"
    as_json = filled("eval", "lint", path, "--json")
    assert (as_json.code, as_json.json["errors"], as_json.json["warnings"]) == (1, 2, 0)
    assert as_json.json["findings"][0].keys() == {"line", "id", "severity", "rule", "message"}


def test_the_command_without_a_store(rag: Rag) -> None:
    path = write("set.jsonl", GOOD)
    run = rag("eval", "lint", path)
    assert (run.code, run.out) == (0, "")
    assert run.err == f"Note: {NO_CORPUS}\n1 questions, 0 errors, 0 warnings.\n"
    named = rag("eval", "lint", path, "--store", "elsewhere")
    assert named.code == 1
    assert "There is no store at elsewhere" in named.err
    assert rag("eval", "lint", "absent.jsonl").code == 1


def test_the_smoke_set(rag: Rag) -> None:
    assert rag("ingest", DATA / "demo.jsonl", "--store", "demo").code == 0
    run = rag("eval", "lint", DATA / "smoke.jsonl", "--store", "demo", "--json")
    assert (run.code, run.json["questions"], run.json["errors"]) == (0, 10, 0)
    assert [(f["id"], f["rule"]) for f in run.json["findings"]] == [("smoke-06", "given-away")]


@needs_shared
def test_the_development_set(rag: Rag) -> None:
    lists = sorted((SHARED / "papers").glob("*.txt"))
    assert rag("ingest", *lists, "--store", "lists").code == 0
    path = SHARED / "questions" / "dev.jsonl"
    run = rag("eval", "lint", path, "--store", "lists", "--json")
    assert (run.code, run.json["questions"], run.json["errors"]) == (0, 70, 0)
    assert {f["rule"] for f in run.json["findings"]} == {"given-away"}


texts = st.text(max_size=12)
values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
turns = st.fixed_dictionaries({"question": texts, "answer": texts})
questions = st.fixed_dictionaries(
    {"id": texts | values, "kind": st.sampled_from(["fact", "list", "unanswerable"]) | texts},
    optional={
        "question": texts | values,
        "gold": st.lists(st.lists(st.sampled_from(["alpha", "papers:2", ":1", "x:99"]) | texts)),
        "must_include": st.lists(texts | st.sampled_from(["a*", "(?=x)", "\\b", "{"]), max_size=3),
        "must_not_include": st.lists(texts, max_size=2),
        "history": st.lists(turns, max_size=2) | values,
        "note": texts | values,
        "other": values,
    },
)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(lines=st.lists(questions | values, min_size=1, max_size=4))
def test_nothing_in_a_line_ends_in_anything_but_findings(lines: list[object]) -> None:
    try:
        report = check(*lines)
    except RagError:
        return
    assert all(1 <= finding.line <= len(lines) for finding in report.findings)
    unread = [f for f in report.findings if f.rule == "unreadable"]
    assert report.questions + len(unread) == len(lines)
