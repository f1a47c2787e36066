from __future__ import annotations

import errno
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eval.questions.datasets import Question
from eval.questions.gold import Gold
from eval.runs import environment
from eval.runs.directory import (
    prepare,
    read_meta,
    read_run,
    refuse_other,
    write_json,
    write_questions,
    write_whole,
)
from rag.answer import Turn
from rag.errors import RagError, ReadError, UsageError

RUN = Path("run")
ANSWER = {
    "answered": True,
    "confidence": 0.8,
    "text": "Yes.",
    "statements": [],
    "papers": [],
    "usage": {"prompt_tokens": 600, "completion_tokens": 30},
    "seconds": {"total": 5.0},
}
FOUND = {
    "rank": 1, "paper_id": "a", "title": "A", "score": 0.5, "dense_rank": 1, "lexical_rank": None,
}  # fmt: skip
FIRST = Question("1", "followup", "q?", (("000:1",),), ("x",), ("y",), (Turn("a", "b"),), "n")
SECOND = Question("2", "unanswerable", "r?\u2028")
ASKED = [(FIRST, Gold((frozenset({"b", "a"}), frozenset()))), (SECOND, Gold(()))]


def result(item_id: str, error: str | None = None, attempt: int = 1) -> dict[str, Any]:
    answer = None if error else ANSWER
    return {
        "id": item_id,
        "attempt": attempt,
        "cached": False,
        "answer": answer,
        "notes": [],
        "retrieved": [],
        "entailment": [],
        "unknown_ids": [],
        "error": error,
    }


def made(*results: dict[str, Any] | str, **meta: Any) -> Path:
    RUN.mkdir()
    write_json(RUN / "run.json", {"format": 1, "identity": {}, "finished": "then", **meta})
    write_questions(RUN, ASKED)
    lines = [line if isinstance(line, str) else json.dumps(line) + "\n" for line in results]
    (RUN / "results.jsonl").write_text("".join(lines), encoding="utf-8")
    return RUN


def test_a_run_is_read_with_its_questions_gold_and_results() -> None:
    run = read_run(made(result("2"), result("1", "no reply")))
    assert (run.directory, run.meta["format"], len(run.items)) == (RUN, 1, 2)
    first, second = run.items
    assert first.question == Question(
        "1", "followup", "q?", (("a", "b"), ()), ("x",), ("y",), (Turn("a", "b"),), "n"
    )
    assert first.gold == (frozenset("ab"), frozenset())
    assert first.failed
    assert (second.question, second.gold, second.failed) == (SECOND, (), False)
    assert second.answer == ANSWER
    assert run.items[1] == run.items[-1] == run.items[:][1] == second
    assert list(run.items) == [first, second]
    with pytest.raises(IndexError):
        run.items[2]


def test_the_last_line_of_an_item_counts_and_skipped_ones_have_none() -> None:
    run = read_run(made(result("1", "busy"), result("1", attempt=2)))
    assert run.items[0].result == result("1", attempt=2)
    assert run.items[1].result is None
    assert (run.items[1].failed, run.items[1].answer) == (False, None)


def test_a_run_that_is_not_finished_says_how_far_it_has_come() -> None:
    made(result("1"), '{"id": "2", "answ', finished=None)
    with pytest.raises(ReadError, match=r"results\.jsonl, line 2, is damaged"):
        read_run(RUN)
    assert read_run(RUN, unfinished=True).items[1].result is None
    (RUN / "results.jsonl").write_text(json.dumps(result("1")) + "\n")
    with pytest.raises(ReadError, match="run is not finished: 1 of 2 questions have a result"):
        read_run(RUN)
    assert [item.result is None for item in read_run(RUN, unfinished=True).items] == [False, True]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "{",
            r"results\.jsonl, line 2, is damaged\. Run the `rag eval answers` command of this run",
        ),
        ('{"id": "1"}\n', r"results\.jsonl, line 2, is damaged\."),
        (result("3"), r"results\.jsonl has a result of '3', which is no question of the run\."),
    ],
)
def test_damaged_results_are_named(line: dict[str, Any] | str, said: str) -> None:
    made(result("1"), line)
    with pytest.raises(ReadError, match=said):
        read_run(RUN)


def test_damaged_or_missing_files_are_named() -> None:
    made(result("1"))
    (RUN / "questions.jsonl").unlink()
    with pytest.raises(ReadError, match=r"questions\.jsonl cannot be read: No such file"):
        read_run(RUN)
    (RUN / "run.json").write_text("[")
    with pytest.raises(ReadError, match=r"run\.json cannot be read: Expecting"):
        read_run(RUN)
    (RUN / "run.json").write_text('{"format": 2}')
    with pytest.raises(UsageError, match="has format 2; this version reads 1"):
        read_meta(RUN)


@pytest.mark.parametrize("name", ["nowhere", "empty", "file"])
def test_what_is_no_run_is_said_to_be_none(name: str) -> None:
    Path("empty").mkdir()
    Path("file").write_text("x")
    with pytest.raises(UsageError, match=rf"There is no run in {name}\. Make one with `rag eval"):
        read_run(Path(name))


def test_a_run_begins_in_a_new_or_empty_directory_or_where_one_was_killed_at_once() -> None:
    prepare(RUN)
    (RUN / "results.jsonl").touch()
    (RUN / ".results.jsonl.lock").touch()
    (RUN / ".run.json.new").write_text("{")
    prepare(RUN)
    (RUN / "results.jsonl").write_text("my own\n")
    with pytest.raises(UsageError, match="run holds something other than a run"):
        prepare(RUN)
    (RUN / "run.json").write_text("{}")
    prepare(RUN)


@pytest.mark.parametrize("path", ["file", "file/run"])
def test_a_file_is_no_run_directory(path: str) -> None:
    Path("file").write_text("x")
    with pytest.raises(
        UsageError, match=rf"{path} is no directory\. Choose another with --out DIR"
    ):
        prepare(Path(path))


def test_what_differs_from_the_run_is_named() -> None:
    meta = {
        "identity": {
            "model": "small",
            "questions": "a" * 64,
            "settings": {"answer": {"seed": 0}, "retrieval": {"papers": 6}},
        }
    }
    refuse_other(meta, json.loads(json.dumps(meta["identity"])), RUN)
    now = {
        "model": "large",
        "questions": "b" * 64,
        "settings": {"answer": {"seed": 0}, "retrieval": {"papers": 7}},
        "judge": True,
    }
    with pytest.raises(UsageError) as caught:
        refuse_other(meta, now, RUN)
    assert str(caught.value) == (
        'The run in run was begun with something else: model ("small" then, "large" now); '
        "questions; settings.retrieval.papers (6 then, 7 now); judge (null then, true now). Go "
        "back to that to finish it, or choose another directory for a new run."
    )
    assert caught.value.exit_code == 2


def test_a_full_disk_leaves_the_file_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    made()
    before = (RUN / "run.json").read_bytes()

    def full(self: Path, target: Path) -> Path:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(RagError, match="run cannot be written: No space left on device"):
        write_json(RUN / "run.json", {"format": 1})
    assert (RUN / "run.json").read_bytes() == before
    assert sorted(path.name for path in RUN.iterdir()) == [
        "questions.jsonl",
        "results.jsonl",
        "run.json",
    ]


def test_a_file_name_that_is_no_utf_8_is_kept() -> None:
    name = os.fsdecode(b"q\xff.jsonl")
    made(questions={"name": name})
    meta = read_meta(RUN)
    assert meta is not None
    assert meta["questions"]["name"] == name
    assert sorted(path.name for path in RUN.iterdir()) == [
        "questions.jsonl",
        "results.jsonl",
        "run.json",
    ]


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "full"), ValueError(), KeyboardInterrupt()]
)
def test_whatever_stops_a_writing_nothing_is_left_beside_the_file(error: BaseException) -> None:
    def parts() -> Iterator[str]:
        yield "{"
        raise error

    made()
    before = (RUN / "run.json").read_bytes()
    with pytest.raises((RagError, type(error))):
        write_whole(RUN / "run.json", parts())
    assert (RUN / "run.json").read_bytes() == before
    assert len(list(RUN.iterdir())) == 3


def test_the_environment_says_what_and_never_whose(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = environment.versions()
    assert versions["python"].count(".") == 2
    assert versions["numpy"]
    machine = environment.machine()
    assert list(machine) == ["platform", "cpus", "memory_bytes"]
    assert os.uname().nodename not in machine["platform"] or len(os.uname().nodename) < 4
    assert environment.git_state(Path.cwd()) is None
    monkeypatch.setattr(Path, "home", lambda: Path("/home/somebody"))
    assert environment.shown_path(Path("/home/somebody/x/store")) == "~/x/store"
    assert environment.shown_path(Path("vectorstore")) == "vectorstore"


def test_the_checkout_is_named_by_its_commit(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        command = ["git", *identity, *arguments]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)

    git("init")
    (tmp_path / "file").write_text("x")
    git("add", "file")
    git("commit", "-m", "first")
    state = environment.git_state(tmp_path)
    assert state is not None
    assert (len(state["commit"]), state["dirty"]) == (40, False)
    (tmp_path / "file").write_text("y")
    assert environment.git_state(tmp_path) == {**state, "dirty": True}


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("answer", {**ANSWER, "statements": [None]}, "answer.statements.0: "),
        ("answer", {**ANSWER, "confidence": float("nan")}, "answer.confidence: "),
        ("answer", "x", "answer: "),
        ("answer", None, "neither or both"),
        ("answer", {**ANSWER, "confidence": 1.5}, "answer.confidence: "),
        ("answer", {k: v for k, v in ANSWER.items() if k != "papers"}, "answer.papers: "),
        ("answer", {**ANSWER, "papers": [{"paper_id": "a"}]}, "answer.papers.0.title: "),
        ("retrieved", [FOUND | {"dense_rank": "1"}], "retrieved.0.dense_rank: "),
        ("retrieved", [{k: v for k, v in FOUND.items() if k != "lexical_rank"}], "lexical_rank: "),
        ("judge", {"model": "m", "support": "0.5"}, "judge.support: "),
        ("at", 5, "at: "),
        ("entailment", [{"all": True}], "entailment.0.each: "),
    ],
)
def test_a_result_of_another_shape_is_named(field: str, value: Any, said: str) -> None:
    run = read_run(made(result("2"), {**result("1"), field: value}))
    with pytest.raises(ReadError, match=r"results\.jsonl, line 2, is not a result") as error:
        list(run.items)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("gold", 5, "gold: "),
        ("gold", [["a"], "b"], "gold.1: "),
        ("kind", None, "kind: "),
        ("must_include", [5], "must_include.0: "),
        ("history", [{"question": "q"}], "history.0.answer: "),
        ("history", "before", "history: "),
        ("note", 7, "note: "),
        ("id", 1, "id: "),
    ],
)
def test_a_question_of_another_shape_is_named(field: str, value: Any, said: str) -> None:
    made(result("1"), result("2"))
    file = RUN / "questions.jsonl"
    first, second = map(json.loads, file.read_text().strip().split("\n"))
    file.write_text(f"{json.dumps(second)}\n{json.dumps({**first, field: value})}\n")
    with pytest.raises(ReadError, match=r"questions\.jsonl, line 2, is damaged \(") as error:
        list(read_run(RUN).items)
    assert said in str(error.value)


def test_an_identity_that_is_none_is_named() -> None:
    made(identity=["x"])
    with pytest.raises(ReadError, match=r'"identity" in run.run\.json is damaged'):
        read_meta(RUN)
