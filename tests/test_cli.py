from __future__ import annotations

import re

import pytest
from doubles.commands import ALPHA, FACT, GAMMA, QUESTION, RECORDS, Rag, reply, write
from doubles.service import Service

from rag.render import Screen
from rag.types import Paper, Source

SUMMARY = "added updated unchanged duplicates removed rejected conflicts papers chunks".split()


def test_ingest_prints_its_summary(rag: Rag) -> None:
    ran = rag("ingest", write("papers.jsonl", *RECORDS, RECORDS[0], {"id": "x"}), "--json")
    assert ran.code == 0
    assert list(ran.json) == SUMMARY
    assert ran.json == {
        "added": 3,
        "updated": 0,
        "unchanged": 0,
        "duplicates": 1,
        "rejected": [
            {
                "source": "papers.jsonl",
                "position": 5,
                "line": 5,
                "reason": ran.json["rejected"][0]["reason"],
            }
        ],
        "removed": 0,
        "conflicts": [],
        "papers": 3,
        "chunks": 3,
    }
    assert list(ran.json["rejected"][0]) == ["source", "position", "line", "reason"]
    assert (
        ran.err == f"Rejected papers.jsonl, line 5, record 5: {ran.json['rejected'][0]['reason']}\n"
    )
    again = rag("ingest", "papers.jsonl")
    assert (again.code, again.out) == (
        0,
        "0 added, 0 updated, 4 unchanged, 0 duplicates, 1 rejected. "
        "vectorstore holds 3 papers in 3 passages.\n",
    )


def test_search_prints_hits(filled: Rag) -> None:
    ran = filled("search", "graph noise AlphaNet", "--k", "2", "--json")
    assert ran.code == 0
    assert ran.err == ""
    first, second = ran.json
    assert list(first) == ["paper_id", "title", "score", "sources", "evidence"]
    assert (first["paper_id"], first["title"]) == ("alpha", "AlphaNet")
    assert first["sources"] == [{"file": "papers.jsonl", "position": 1}]
    assert [list(e) for e in first["evidence"]] == [["text", "start", "end"]] * 2
    for found in first["evidence"]:
        assert ALPHA[found["start"] : found["end"]] == found["text"]
    assert first["score"] >= second["score"]


def test_search_for_a_person(filled: Rag) -> None:
    ran = filled("search", "graph noise AlphaNet", "-k", "1")
    assert ran.out.splitlines() == [
        "  1. 1.000  alpha  AlphaNet  (papers.jsonl:1)",
        f"       “{FACT}”",
        "       “It needs 3 GPUs for a week.”",
    ]


def test_ask_prints_an_answer(filled: Rag, service: Service) -> None:
    service.replies.append(reply((FACT, [1])))
    ran = filled("ask", QUESTION, "--json")
    assert (ran.code, ran.err) == (0, "")
    found = ran.json
    assert list(found) == [
        "question", "answered", "confidence", "text", "statements", "papers", "model", "usage",
        "seconds",
    ]  # fmt: skip
    assert found["question"] == QUESTION
    assert found["answered"] is True
    assert found["confidence"] == 0.9
    assert found["text"] == f"{FACT} [alpha]"
    (statement,) = found["statements"]
    assert list(statement) == ["text", "supported", "citations"]
    (citation,) = statement["citations"]
    assert list(citation) == ["paper_id", "quote", "start", "end", "support"]
    assert (citation["paper_id"], citation["quote"]) == ("alpha", FACT)
    assert ALPHA[citation["start"] : citation["end"]] == FACT
    assert 0.5 <= citation["support"] <= 1.0
    source = {"file": "papers.jsonl", "position": 1}
    assert found["papers"] == [{"paper_id": "alpha", "title": "AlphaNet", "sources": [source]}]
    assert list(found["papers"][0]) == ["paper_id", "title", "sources"]
    assert found["model"] == "scripted"
    assert found["usage"] == {"prompt_tokens": 800, "completion_tokens": 60}
    assert list(found["seconds"]) == ["retrieve", "generate", "verify", "total"]


def test_ask_for_a_person(filled: Rag, service: Service) -> None:
    service.replies.append(reply((FACT, [1]), ("Noise is bad.", [77])))
    ran = filled("ask", QUESTION)
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[:-1] == [
        f"{FACT} [alpha]",
        "Noise is bad. (not supported by the paper it cites)",
        "",
        "Sources",
        "  alpha  AlphaNet  (papers.jsonl:1)",
        f"    “{FACT}”",
        "",
    ]
    assert re.fullmatch(r"Confidence 0\.45, \d+\.\d s, scripted", lines[-1])
    assert ran.err == 'Note: The model cited 77, which it was not given: "Noise is bad."\n'


def test_ask_without_an_answer_exits_with_3_and_prints_json_all_the_same(
    filled: Rag, service: Service
) -> None:
    service.yes = 0.1
    ran = filled("ask", QUESTION, "--json")
    assert (ran.code, ran.err) == (3, "")
    assert (ran.json["answered"], ran.json["statements"]) == (False, [])
    assert ran.json["text"] == "The papers do not answer this."
    assert ran.json["papers"][0]["paper_id"] == "alpha"
    shown = filled("ask", QUESTION)
    assert shown.code == 3
    assert shown.out.splitlines()[:4] == [
        "The papers do not answer this.",
        "",
        "Closest papers",
        "  alpha  AlphaNet  (papers.jsonl:1)",
    ]


def test_papers_prints_every_paper(filled: Rag) -> None:
    ran = filled("papers", "--json")
    assert [p["paper_id"] for p in ran.json] == ["alpha", "beta", "gamma"]
    assert ran.json[0] == {
        "paper_id": "alpha",
        "title": "AlphaNet",
        "title_derived": False,
        "sources": [{"file": "papers.jsonl", "position": 1}],
        "metadata": {"year": 2026},
    }
    assert filled("papers").out.splitlines() == [
        "alpha  AlphaNet",
        f"beta   {ran.json[1]['title']} (derived)",
        "gamma  GammaNet: Images",
    ]


def test_show_prints_one_paper(filled: Rag) -> None:
    ran = filled("show", "gamma", "--json")
    assert ran.json == {
        "paper_id": "gamma",
        "title": "GammaNet: Images",
        "title_derived": False,
        "text": GAMMA,
        "original": GAMMA,
        "sources": [{"file": "papers.jsonl", "position": 3}],
        "metadata": {"authors": ["Ann", "Bo"]},
    }
    assert filled("show", "GAMMA").out.splitlines() == [
        "GammaNet: Images",
        "ID        gamma",
        "Source    papers.jsonl, record 3",
        "authors   Ann, Bo",
        "",
        GAMMA,
    ]


def test_version_and_help(rag: Rag) -> None:
    assert re.fullmatch(r"rag \d+\.\d+\.\d+\n", rag("--version").out)
    assert "ingest" in rag("--help").out


def test_a_paper_that_takes_several_rows_is_indented(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {
        "FORCE_COLOR": "1",
        "NO_COLOR": "1",
        "COLUMNS": "30",
        "TERM": "xterm",
    }.items():
        monkeypatch.setenv(name, value)
    paper = Paper("a-1", "A graph has noise and a second line", "", "", (Source("l.txt", 3),))
    screen = Screen()
    screen.paper_line(paper)
    assert capsys.readouterr().out == (
        "  a-1  A graph has noise and\n    a second line  (l.txt:3)\n"
    )
    screen.paper_line(paper, "  1. 0.500  ")
    assert capsys.readouterr().out == (
        "  1. 0.500  a-1  A graph has\n"
        "              noise and a\n"
        "              second line\n"
        "              (l.txt:3)\n"
    )
