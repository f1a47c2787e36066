from __future__ import annotations

import errno
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from doubles.commands import BETA, FACT, UNSEEN, Rag, Run, failed, write
from doubles.reader import Reader
from doubles.service import USAGE
from test_process import spawn

from eval.runs.directory import read_run
from eval.runs.overhead import overhead
from rag.batch.journal import Journal
from rag.errors import ReadError

OUT = Path("run")
FILES = ["metrics.json", "questions.jsonl", "results.jsonl", "run.json"]
ALPHA_ASKED = "By how much does AlphaNet lower the graph noise?"
BETA_ASKED = "In how many seconds does BetaNet fold a protein?"
QUESTIONS = (
    {
        "id": "q-1",
        "kind": "fact",
        "question": ALPHA_ASKED,
        "gold": [["papers.jsonl:1"]],
        "must_include": ["12\\.5"],
    },
    {"id": "q-2", "kind": "fact", "question": BETA_ASKED, "gold": [["beta"]]},
    {
        "id": "q-3",
        "kind": "compare",
        "question": "Does GammaNet or AlphaNet cost 40 cents?",
        "gold": [["gamma"], ["alpha"]],
    },
)


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    with Reader() as running:
        for name, value in running.environ.items():
            monkeypatch.setenv(name, value)
        yield running


@pytest.fixture
def asked(filled: Rag) -> Rag:
    """`rag` with a store of three papers and a set of three questions."""
    write("set.jsonl", *QUESTIONS)
    return filled


def answers(rag: Rag, *options: str | Path, questions: str = "set.jsonl") -> Run:
    return rag("eval", "answers", questions, "--out", OUT, *options)


def results() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (OUT / "results.jsonl").read_text().splitlines()]


def timeless(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Results without what differs from run to run."""
    shown = []
    for line in lines:
        answer = line["answer"] and {**line["answer"], "seconds": None}
        shown.append({**line, "answer": answer, "at": None})
    return shown


def meta() -> dict[str, Any]:
    found = json.loads((OUT / "run.json").read_text())
    assert isinstance(found, dict)
    return found


def visible_files() -> list[str]:
    return sorted(path.name for path in OUT.iterdir() if not path.name.startswith("."))


def test_a_run_leaves_its_answers_and_what_they_are_worth(asked: Rag) -> None:
    ran = answers(asked)
    assert (ran.code, ran.err) == (0, "")
    assert visible_files() == FILES
    first, second, third = results()
    assert set(first) == {
        "id", "kind", "question", "asked", "attempt", "seed", "made_with", "prompt_hash", "at",
        "cached", "answer", "notes", "retrieved", "unknown_ids", "error", "spent", "entailment",
    }  # fmt: skip
    assert (first["id"], first["kind"], first["question"]) == ("q-1", "fact", ALPHA_ASKED)
    assert (first["attempt"], first["error"], first["cached"]) == (1, None, False)
    (statement,) = first["answer"]["statements"]
    assert (statement["text"], statement["citations"][0]["paper_id"]) == (FACT, "alpha")
    assert first["entailment"] == [{"all": True, "each": [True], "without": [False]}]
    assert first["retrieved"][0]["paper_id"] == "alpha"
    assert [line["id"] for line in (second, third)] == ["q-2", "q-3"]
    assert second["answer"]["statements"][0]["text"] in BETA
    assert f"{OUT}" in ran.out.splitlines()[-1]


def test_the_run_says_what_it_was_made_with(asked: Rag) -> None:
    assert answers(asked, "--jobs", "2").code == 0
    found = meta()
    assert list(found) == [
        "format", "identity", "made_with", "questions", "corpus", "model", "embedding", "settings",
        "seed", "versions", "git", "machine", "started", "finished", "seconds", "sessions", "jobs",
        "usage", "cost", "prices", "outcome",
    ]  # fmt: skip
    assert (found["questions"]["name"], found["questions"]["n"]) == ("set.jsonl", 3)
    assert (found["corpus"]["papers"], found["corpus"]["store"]) == (3, "vectorstore")
    assert (found["model"], found["seed"], found["jobs"], found["sessions"]) == (
        "scripted",
        0,
        2,
        1,
    )
    assert found["embedding"] == "endpoint:word-counts@512"
    assert found["usage"] == {name: count * 6 for name, count in USAGE.items()}
    assert found["outcome"] == {
        "done": 3,
        "failed": 0,
        "skipped": 0,
        "cached": 0,
        "stopped": None,
    }
    assert found["identity"]["answer"]["seed"] == 0
    assert found["made_with"] == results()[0]["made_with"]


def test_the_run_can_be_read_with_its_gold_as_papers(asked: Rag) -> None:
    assert answers(asked).code == 0
    run = read_run(OUT)
    assert [item.gold for item in run.items] == [
        (frozenset({"alpha"}),),
        (frozenset({"beta"}),),
        (frozenset({"gamma"}), frozenset({"alpha"})),
    ]
    assert [item.result for item in run.items] == results()


def test_json_is_the_file_of_metrics(asked: Rag) -> None:
    ran = answers(asked, "--json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.json == json.loads((OUT / "metrics.json").read_text())


def test_what_is_wrong_is_named_line_by_line_and_the_rest_goes_on(asked: Rag) -> None:
    lines = [json.dumps(question) for question in QUESTIONS]
    lines[1] = json.dumps({**QUESTIONS[1], "gold": [["nobody"], ["papers.jsonl:1"]]})
    lines.insert(1, "{")
    lines.append('{"id": "q-4", "kind": "fact", "question": "q", "must_include": ["("]}')
    Path("bad.jsonl").write_text("\n".join(lines))
    ran = answers(asked, questions="bad.jsonl")
    assert ran.code == 1
    assert ran.err.splitlines() == [
        "bad.jsonl, line 2: it is not JSON (Expecting property name enclosed in double quotes). "
        "The line is left out.",
        "bad.jsonl, line 5: the field 'must_include' holds a bad regular expression: '(': missing "
        "), unterminated subpattern at position 0. The line is left out.",
        "bad.jsonl, line 3: gold 'nobody' is no paper of the store.",
    ]
    assert [line["id"] for line in results()] == ["q-1", "q-2", "q-3"]


def test_csv_is_answered_without_anything_expected(asked: Rag) -> None:
    Path("set.csv").write_text(f"question\n{ALPHA_ASKED}\n")
    assert answers(asked, questions="set.csv").code == 0
    (item,) = read_run(OUT).items
    assert (item.question.kind, item.gold) == ("unlabelled", ())
    assert item.answer is not None


def test_a_model_that_fails_on_every_third_item(asked: Rag, service: Reader) -> None:
    questions = [
        {"id": str(n), "kind": "fact", "question": f"In case {n}: {ALPHA_ASKED}"} for n in range(9)
    ]
    write("set.jsonl", *questions)
    service.fails = lambda question: int(question.split(":")[0][-1]) % 3 == 2
    ran = answers(asked, "--no-cache")
    assert ran.code == 1
    said = ran.err.splitlines()
    assert [line.partition(":")[0] for line in said] == ["Failed 2", "Failed 5", "Failed 8"]
    assert [line["error"] is None for line in results()] == [True, True, False] * 3
    assert meta()["outcome"]["failed"] == 3
    before = Path(OUT / "results.jsonl").read_bytes()

    assert answers(asked, "--no-cache").code == 1
    assert Path(OUT / "results.jsonl").read_bytes() == before
    assert sum(service.asked.values()) == 9

    service.fails = lambda question: False
    assert answers(asked, "--no-cache", "--retry-failed").code == 0
    assert sum(service.asked.values()) == 12
    assert [(line["id"], line["attempt"]) for line in results()] == [
        (str(n), 2 if n % 3 == 2 else 1) for n in range(9)
    ]
    assert (meta()["sessions"], meta()["outcome"]["failed"]) == (3, 0)


def test_a_budget_leaves_a_run_that_the_same_command_finishes(asked: Rag, service: Reader) -> None:
    ran = answers(asked, "--no-cache", "--jobs", "1", "--max-tokens", "900")
    assert ran.code == 1
    assert ran.err.splitlines() == [
        "Stopped: The budget of 900 tokens is used up (1,720 spent).",
    ]
    assert [line["id"] for line in results()] == ["q-1", "q-2"]
    assert read_run(OUT).items[2].result is None
    assert answers(asked, "--no-cache").code == 0
    assert [line["id"] for line in results()] == ["q-1", "q-2", "q-3"]
    assert set(service.asked.values()) == {1}


def test_a_budget_of_money_needs_prices(asked: Rag) -> None:
    ran = answers(asked, "--max-cost", "1")
    assert ran.code == 2
    assert "--max-cost needs the price of scripted" in ran.err
    Path("rag.toml").write_text("[prices.scripted]\ninput = 1000\noutput = 0\n")
    ran = answers(asked, "--jobs", "1", "--max-cost", "1")
    assert "Stopped: The budget of 1 is used up (1.6 spent)." in ran.err
    assert meta()["cost"] == 1.6
    assert meta()["prices"] == {"input": 1000.0, "output": 0.0}


def test_ctrl_c_leaves_a_run_that_the_same_command_finishes(asked: Rag, service: Reader) -> None:
    service.delay_seconds = 0.5
    process = spawn("eval", "answers", "set.jsonl", "--out", str(OUT), "--jobs", "1", "--no-cache")
    deadline = time.monotonic() + 30
    while sum(service.asked.values()) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (130, b"")
    assert err == b"Interrupted. The same command again finishes the run in run.\n"
    assert [line["id"] for line in results()] == ["q-1"]
    with pytest.raises(ReadError, match="not finished: 1 of 3 questions have a result"):
        read_run(OUT)
    service.delay_seconds = 0
    assert answers(asked, "--no-cache").code == 0
    assert service.asked[ALPHA_ASKED] == 1
    assert [line["id"] for line in results()] == ["q-1", "q-2", "q-3"]


def test_a_second_process_is_told_and_changes_nothing(asked: Rag, service: Reader) -> None:
    assert answers(asked).code == 0
    before = {path.name: path.read_bytes() for path in OUT.iterdir()}
    with Journal.open(OUT / "results.jsonl"):
        ran = answers(asked)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"Another process is at work on {OUT / 'results.jsonl'}. Nothing was")
    assert {path.name: path.read_bytes() for path in OUT.iterdir()} == before


@pytest.mark.parametrize("change", ["questions", "corpus", "model", "seed", "judge"])
def test_a_run_of_something_else_is_not_continued(
    asked: Rag, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert answers(asked).code == 0
    before = {path.name: path.read_bytes() for path in OUT.iterdir()}
    if change == "questions":
        write("set.jsonl", *QUESTIONS[:2])
    elif change == "corpus":
        delta = {"id": "delta", "abstract": "DeltaNet reads a language with no reward."}
        assert asked("ingest", write("more.jsonl", delta)).code == 0
    elif change == "model":
        monkeypatch.setenv("RAG_LLM_MODEL", "another")
    elif change == "seed":
        monkeypatch.setenv("RAG_ANSWER_SEED", "7")
    ran = answers(asked, *(["--judge"] if change == "judge" else []))
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("The run in run was begun with something else: ")
    assert {
        "questions": "questions",
        "corpus": "corpus",
        "model": 'model ("scripted" then, "another" now)',
        "seed": "answer.seed (0 then, 7 now)",
        "judge": "judge (false then, true now)",
    }[change] in ran.err
    assert {path.name: path.read_bytes() for path in OUT.iterdir()} == before


def test_a_directory_of_something_else_is_left_alone(asked: Rag) -> None:
    OUT.mkdir()
    (OUT / "thesis.tex").write_text("x")
    ran = answers(asked)
    failed(
        ran,
        2,
        "run holds something other than a run. Choose a new or an empty directory with --out DIR.",
    )
    assert [path.name for path in OUT.iterdir()] == ["thesis.tex"]


def test_a_disk_that_fills_up(asked: Rag, service: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    write = Journal._write
    written: list[bytes] = []

    def filling(self: Journal, content: bytes) -> None:
        if len(written) == 2:
            write(self, content[:10])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written.append(content)
        write(self, content)

    monkeypatch.setattr(Journal, "_write", filling)
    ran = answers(asked, "--jobs", "1", "--no-cache")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("There is no space left on the disk of run/results.jsonl.")
    assert len(results()) == 2
    monkeypatch.setattr(Journal, "_write", write)
    assert answers(asked, "--no-cache").code == 0
    assert [line["id"] for line in results()] == ["q-1", "q-2", "q-3"]
    assert service.asked[ALPHA_ASKED] == service.asked[BETA_ASKED] == 1


def test_another_run_of_the_same_takes_its_answers_from_the_cache(
    asked: Rag, service: Reader
) -> None:
    assert answers(asked).code == 0
    first = timeless(results())
    assert asked("eval", "answers", "set.jsonl", "--out", "again").code == 0
    again = [json.loads(line) for line in Path("again/results.jsonl").read_text().splitlines()]
    nothing = {"prompt_tokens": 0, "completion_tokens": 0}
    assert timeless(again) == [{**line, "cached": True, "spent": nothing} for line in first]
    assert set(service.asked.values()) == {1}
    assert asked("eval", "answers", "set.jsonl", "--out", "anew", "--no-cache").code == 0
    assert set(service.asked.values()) == {2}


def test_the_judges_opinion_is_kept_and_marked_as_such(asked: Rag) -> None:
    ran = answers(asked, "--judge", "--no-cache")
    assert (ran.code, ran.err) == (0, "")
    for line in results():
        assert line["judge"] == {"model": "scripted", "support": [0.9]}
        assert line["spent"] == {name: count * 3 for name, count in USAGE.items()}
    assert (
        "Statements supported, judged by scripted (an opinion): 0.900 [" in ran.out
        and "], of 3 answers\n" in ran.out
    )
    judge = json.loads((OUT / "metrics.json").read_text())["judge"]
    assert (judge["models"], judge["support"]["n"]) == (["scripted"], 3)


def test_only_the_first_questions(asked: Rag) -> None:
    assert answers(asked, "--limit", "1").code == 0
    assert [line["id"] for line in results()] == ["q-1"]
    assert meta()["questions"]["n"] == 1


def test_no_key_stands_in_a_run(asked: Rag, monkeypatch: pytest.MonkeyPatch) -> None:
    for section in ("LLM", "EMBEDDING"):
        monkeypatch.setenv(f"RAG_{section}_API_KEY", "sk-very-secret")
    address = os.environ["RAG_LLM_BASE_URL"]
    monkeypatch.setenv("RAG_LLM_BASE_URL", f"{address}?api-key=sk-very-secret")
    answers(asked)
    assert meta()["settings"]["llm"]["base_url"] == address
    for path in OUT.iterdir():
        assert b"sk-very-secret" not in path.read_bytes()


def test_text_that_steers_a_terminal_is_not_printed(asked: Rag, service: Reader) -> None:
    evil = "\x1b[2J\u202eid"
    service.fails = lambda question: True
    write(
        "set.jsonl",
        {"id": evil, "kind": f"k{evil}", "question": f"{evil}?", "gold": [[evil]], evil: 1},
    )
    ran = answers(asked)
    assert ran.code == 1
    assert not UNSEEN.search(ran.out + ran.err)


def test_a_missing_package_is_told_before_anything_is_asked(
    asked: Rag, service: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ir_measures", None)
    said = 'Measuring answers needs ir_measures. Run: pip install "citewise[eval]"'
    failed(answers(asked), 1, said)
    assert not OUT.exists()
    assert not service.chats


def test_the_harness_itself_costs_little() -> None:
    few, many = overhead(30), overhead(300)
    assert (few.items, many.items) == (30, 300)
    # What the metrics cost whatever the items is a part of the few; of the many none may grow.
    assert 0 < many.seconds_per_item < 3 * few.seconds_per_item
    assert 0 <= many.added_mib < 50


def test_the_papers_need_not_be_there_to_be_told(rag: Rag) -> None:
    write("set.jsonl", *QUESTIONS)
    ran = answers(rag)
    assert ran.code == 1
    assert ran.err.startswith("There is no store at vectorstore yet.")


def test_a_run_that_stops_at_its_first_item_says_why(
    asked: Rag, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAG_LLM_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("RAG_LLM_MAX_RETRIES", "0")
    ran = answers(asked)
    assert ran.code == 1
    assert ran.err.startswith("Stopped: ")
    assert "127.0.0.1:9" in ran.err
    assert (results(), len(read_run(OUT).items)) == ([], 3)
