from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from eval.datasets import Question, read_collection, read_questions, resolve_gold
from rag.answer import Turn
from rag.errors import ReadError
from rag.types import Paper, Source

SHARED = Path(__file__).parents[2] / "shared"
DATA = Path(__file__).parents[1] / "eval" / "data"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason=f"no development data at {SHARED}")


def paper(paper_id: str, *places: tuple[str, int]) -> Paper:
    return Paper(paper_id, "t", "t", "t", tuple(Source(f, p) for f, p in places))


def test_a_question_with_everything(tmp_path: Path) -> None:
    raw = {
        "id": 7,
        "kind": "followup",
        "question": "And\u2028then?",
        "gold": [["000:7", "a"], ["b"]],
        "must_include": ["x"],
        "must_not_include": ["y"],
        "history": [{"question": "q", "answer": "a"}],
        "note": "n",
    }
    file = tmp_path / "q.jsonl"
    plain = {"id": "8", "kind": "unanswerable", "question": "Q"}
    file.write_text(json.dumps(raw, ensure_ascii=False) + "\n\n" + json.dumps(plain))
    first, second = read_questions(file)
    assert first == Question(
        "7",
        "followup",
        "And\u2028then?",
        (("000:7", "a"), ("b",)),
        ("x",),
        ("y",),
        (Turn("q", "a"),),
        "n",
    )
    assert first.answerable
    assert second == Question("8", "unanswerable", "Q")
    assert not second.answerable


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        '"x"',
        '{"id": "1", "kind": "fact"}',
        '{"id": "1", "kind": "fact", "question": "q", "must_include": ["("]}',
        '{"id": "1", "kind": "followup", "question": "q", "history": ["x"]}',
    ],
)
def test_a_line_that_is_no_question_is_named(tmp_path: Path, line: str) -> None:
    file = tmp_path / "q.jsonl"
    file.write_text('{"id": "0", "kind": "fact", "question": "q"}\n' + line)
    with pytest.raises(ReadError, match=re.escape(f"{file}, line 2: not a question (")):
        read_questions(file)


def test_a_missing_or_undecodable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match=r"nowhere\.jsonl cannot be read"):
        read_questions(tmp_path / "nowhere.jsonl")
    (tmp_path / "q.jsonl").write_bytes(b"\xff")
    with pytest.raises(ReadError, match=r"q\.jsonl cannot be read"):
        read_questions(tmp_path / "q.jsonl")


def test_gold_is_found_by_id_and_by_the_start_of_a_file_and_a_place() -> None:
    papers = [
        paper("a", ("folder/000_x.txt", 7), ("002_y.txt", 1)),
        paper("000:9", ("000_x.txt", 1)),
        paper("c", ("1000.txt", 7)),
    ]
    question = Question(
        "1", "fact", "q", (("000:7", "c"), ("000:9",), ("002:1",), ("002:2", "nobody"))
    )
    assert resolve_gold(question, iter(papers)) == [{"a", "c"}, {"000:9"}, {"a"}, set()]


def collection(directory: Path, queries: str, qrels: str) -> Path:
    (directory / "queries.jsonl").write_text(queries)
    (directory / "qrels.tsv").write_text(qrels)
    return directory


def test_a_collection(tmp_path: Path) -> None:
    queries = '{"id": 1, "text": "graph"}\n{"id": "q2", "text": "noise"}\n'
    found = read_collection(collection(tmp_path, queries, "q\tp\ts\n1\ta\t2\n1\tb\t0.0\n"))
    assert found.corpus == tmp_path / "corpus.jsonl"
    assert found.queries == {"1": "graph", "q2": "noise"}
    assert found.qrels == {"1": {"a": 2, "b": 0}}


@pytest.mark.parametrize(
    ("queries", "qrels", "said"),
    [
        ('{"id": 1}\n', "q\tp\ts\n", "queries.jsonl, line 1: not a query ("),
        ("{", "q\tp\ts\n", "queries.jsonl, line 1: not a query ("),
        ("", "q\tp\ts\n1\ta\n", "qrels.tsv, line 2: not a judgement ("),
        ("", "q\tp\ts\n1\ta\tx\n", "qrels.tsv, line 2: not a judgement ("),
    ],
)
def test_a_malformed_collection_is_named(
    tmp_path: Path, queries: str, qrels: str, said: str
) -> None:
    with pytest.raises(ReadError, match=re.escape(said)):
        read_collection(collection(tmp_path, queries, qrels))


def test_the_smoke_questions_refer_to_the_demo_corpus() -> None:
    lines = (DATA / "demo.jsonl").read_text(encoding="utf-8").splitlines()
    ids = {json.loads(line)["id"] for line in lines}
    questions = read_questions(DATA / "smoke.jsonl")
    assert (len(ids), len(questions)) == (56, 10)
    for question in questions:
        assert question.answerable is bool(question.gold)
        assert {i for group in question.gold for i in group} <= ids


@needs_shared
def test_the_development_data_can_be_read() -> None:
    questions = read_questions(SHARED / "questions" / "dev.jsonl")
    assert len(questions) == 70
    assert all(bool(q.gold) is q.answerable for q in questions)
    found = read_collection(SHARED / "retrieval" / "scifact")
    assert len(found.queries) == 809
    assert set(found.qrels) <= set(found.queries)
