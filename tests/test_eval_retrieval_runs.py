from __future__ import annotations

from pathlib import Path

import pytest
from doubles.collection import QUERIES, measured, nets, values, write_qrels_file
from doubles.commands import Rag, failed, write


@pytest.fixture
def folder() -> Path:
    return nets()


def test_another_tools_run_is_measured_over_every_judged_query(rag: Rag) -> None:
    run = Path("theirs.trec")
    run.write_text("q1 Q0 b 1 2 t\nq1 Q0 a 2 2 t\nq7 Q0 a 1 1 t\n")
    qrels = write_qrels_file("q1 0 a 1\nq2 0 a 1\n")
    ran = rag("eval", "retrieval", "--run", run, "--qrels", qrels, "--json")
    assert ran.json["queries"] == 2
    # equal scores: trec_eval reads b before a
    assert values(ran.json["systems"][0])["MRR@10"] == pytest.approx(1 / 4)
    assert (ran.json["systems"][0]["name"], ran.json["systems"][0]["without_result"]) == (
        "theirs",
        1,
    )
    assert ran.err == "Left out, without judgements: 1 query (q7).\n"
    queries = write("some.jsonl", {"_id": "q1", "text": "x"})
    ran = rag("eval", "retrieval", "--run", run, "--qrels", qrels, "--queries", queries, "--json")
    assert (ran.json["queries"], ran.json["not_asked"]) == (1, 1)
    assert ran.err.splitlines() == [
        "Left out, judged but not among the queries: 1 query (q2).",
        "Left out, in a run but not in the collection: 1 query (q7).",
    ]


def test_a_run_of_other_queries_is_refused(rag: Rag) -> None:
    Path("theirs.trec").write_text("zz Q0 a 1 1 t\n")
    qrels = write_qrels_file("q1 0 a 1\n")
    queries = write("some.jsonl", {"id": "q1", "text": "x"})
    message = (
        "No judged query of the collection is in theirs.trec, only 1 query (zz). Check that the "
        "files belong together."
    )
    arguments = ("eval", "retrieval", "--run", "theirs.trec", "--qrels", qrels)
    failed(rag(*arguments), 1, message)
    failed(rag(*arguments, "--queries", queries), 1, message)
    # another run's queries do not make up for it
    Path("ours.trec").write_text("q1 Q0 a 1 1 t\n")
    failed(rag(*arguments, "--run", "ours.trec"), 1, message)


def test_the_first_few_unknown_queries_of_a_run_are_named(rag: Rag) -> None:
    lines = [f"z{n} Q0 a 1 1 t\n" for n in range(7)]
    Path("r.trec").write_text("".join(["q1 Q0 a 1 1 t\n", *lines]))
    qrels = write_qrels_file("q1 0 a 1\n")
    queries = write("some.jsonl", {"id": "q1", "text": "x"})
    ran = rag("eval", "retrieval", "--run", "r.trec", "--qrels", qrels, "--queries", queries)
    assert (ran.code, ran.err) == (
        0,
        "Left out, in a run but not in the collection: 7 queries (z0, z1, z2, z3, z4, ...).\n",
    )


@pytest.mark.parametrize("name", ["nets/corpus.jsonl", "nets/queries.jsonl", "nets/qrels.tsv"])
def test_what_is_read_is_not_overwritten(rag: Rag, folder: Path, name: str) -> None:
    before = Path(name).read_bytes()
    ran = rag("eval", "retrieval", "--corpus", folder, "--run-out", name)
    assert (ran.code, ran.out) == (2, "")
    assert "is read by this command: write" in ran.err
    assert Path(name).read_bytes() == before


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        ("--run a.trec", "--run-out a.trec"),
        ("--run a.trec", "--qrels-out a.trec"),
        ("--run a.trec", "--run-out soft.trec"),
        ("--run a.trec", "--run-out hard.trec"),
        ("--run a.trec", "--run-out qrels.txt"),
        ("--run a.trec", "--qrels-out nets/../qrels.txt"),
        # b.b.trec is what the second run would be written to
        ("--run a.trec --run b.trec --run b.b.trec", "--run-out b.trec"),
        ("--run a.trec --run b.trec --run o.b.trec", "--run-out o.trec"),
        ("--corpus nets/corpus.jsonl --queries o.bm25.jsonl --baselines", "--run-out o.jsonl"),
        ("--corpus nets/corpus.jsonl --queries nets/queries.jsonl", "--run-out nets/corpus.jsonl"),
        ("--corpus linked --corpus nets --queries nets/queries.jsonl", "--run-out a.trec"),
        ("--corpus linked --corpus nets --queries nets/queries.jsonl", "--run-out nets/new.trec"),
    ],
)
def test_no_output_is_an_input_by_any_name(
    rag: Rag, folder: Path, inputs: str, outputs: str
) -> None:
    for name in ("a.trec", "b.trec", "b.b.trec", "o.b.trec"):
        Path(name).write_text("q1 Q0 a 1 1 t\n")
    Path("soft.trec").symlink_to("a.trec")
    Path("hard.trec").hardlink_to("a.trec")
    Path("linked").mkdir()
    Path("linked/papers.jsonl").symlink_to("../a.trec")
    write("o.bm25.jsonl", *QUERIES)
    write_qrels_file("q1 0 a 1\n")
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    ran = rag("eval", "retrieval", *inputs.split(), "--qrels", "qrels.txt", *outputs.split())
    assert (ran.code, ran.out) == (2, "")
    assert "is read by this command: write" in ran.err
    assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == before


def test_two_outputs_are_two_files(rag: Rag, folder: Path) -> None:
    failed(
        rag("eval", "retrieval", "--corpus", folder, "--run-out", "o", "--qrels-out", "./o"),
        2,
        "o would be written twice: name another file.",
    )


def test_runs_of_one_name_are_written_by_their_paths(rag: Rag) -> None:
    for name in ("x", "y"):
        Path(name).mkdir()
        Path(name, "r.trec").write_text("q1 Q0 a 1 1 t\n")
    qrels = write_qrels_file("q1 0 a 1\n")
    runs = ("--run", "x/r.trec", "--run", "y/r.trec")
    measured(rag, *runs, "--qrels", qrels, "--run-out", "o.trec", "--qrels-out", "o.y.trec")
    assert sorted(path.name for path in Path().glob("o*")) == [
        "o.trec",
        "o.y-r.trec.trec",
        "o.y.trec",
    ]


def test_long_names_are_shortened_in_the_table(rag: Rag) -> None:
    first, second = "a" * 90 + "1", "a" * 90 + "2"
    for name in (first, second):
        Path(f"{name}.trec").write_text("q1 Q0 a 1 1 t\n")
    qrels = write_qrels_file("q1 0 a 1\n")
    runs = ("--run", f"{first}.trec", "--run", f"{second}.trec", "--qrels", qrels)
    lines = rag("eval", "retrieval", *runs).out.splitlines()
    assert lines[2].split() == ["aaaaaaaaaa…aaaaaaaa1", "aaaaaaaaaa…aaaaaaaa2"]
    assert lines[11:13] == [
        "aaaaaaaaaa…aaaaaaaa1 vs aaaaaaaaaa…aaaaaaaa2",
        "                 difference           p (paired randomisation)",
    ]
    assert max(map(len, lines)) <= 80
    assert [s["name"] for s in measured(rag, *runs)["systems"]] == [first, second]
