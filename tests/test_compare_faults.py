from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from doubles.commands import UNSEEN, Rag, failed
from doubles.compared import A, B, answered, runs
from doubles.items import skipped, write_run


def test_one_run_is_not_enough(rag: Rag) -> None:
    runs([answered(1)], [])
    failed(
        rag("eval", "compare", A), 2,
        "Name at least two run directories: rag eval compare RUN_A RUN_B",
    )  # fmt: skip


def test_runs_without_a_shared_question_cannot_be_compared(rag: Rag) -> None:
    runs([answered(1)], [answered(2)])
    ran = rag("eval", "compare", A, B)
    assert ran.code == 1
    assert "1 only in B: q-2\n" in ran.out
    assert ran.err == (
        "a and b share no question that both were asked. Compare runs of one question set.\n"
    )


def test_an_empty_run_is_no_failure_of_the_program(rag: Rag) -> None:
    runs([], [answered(1)])
    assert rag("eval", "compare", A, B).code == 1


def test_what_is_no_finished_run_is_named(rag: Rag) -> None:
    runs([answered(1)], [answered(1)])
    missing = rag("eval", "compare", A, "nowhere")
    assert (missing.code, missing.out) == (2, "")
    assert missing.err.startswith("There is no run in nowhere.")
    write_run("killed", [answered(1), skipped(id="q-2")], finished=None)
    killed = rag("eval", "compare", A, "killed")
    assert (killed.code, killed.out) == (1, "")
    assert "killed is not finished: 1 of 2 questions" in killed.err
    shutil.copytree(B, "damaged")
    Path("damaged/results.jsonl").write_text('{"id": "q-1", "answ\n')
    damaged = rag("eval", "compare", "damaged", A)
    assert (damaged.code, damaged.out) == (1, "")
    assert "results.jsonl, line 1" in damaged.err


@pytest.mark.parametrize(
    ("file", "content", "code", "said_so"),
    [
        ("run.json", None, 2, "There is no run in b. "),
        ("run.json", "[]", 2, "The run in b has format None; this version reads 1. "),
        ("run.json", '{"format": 2}', 2, "The run in b has format 2; this version reads 1. "),
        ("run.json", '{"format"', 1, "b/run.json cannot be read: "),
        (
            "run.json", '{"format": 1, "finished": "now", "identity": ["x"]}', 1,
            '"identity" in b/run.json is damaged. ',
        ),
        ("results.jsonl", None, 1, "b/results.jsonl cannot be read: No such file"),
        ("results.jsonl", "\n", 1, "b/results.jsonl, line 1, is damaged. "),
        ("results.jsonl", '{"id": "q-1", "answer": {}, "error": null}\n', 1,
         "b/results.jsonl, line 1, is not a result that a run wrote ("),
        ("questions.jsonl", None, 1, "b/questions.jsonl cannot be read: No such file"),
        ("questions.jsonl", '{"id": "q-1"}\n', 1, "b/questions.jsonl, line 1, is damaged. "),
        (
            "questions.jsonl", '{"id": "z", "kind": "fact", "question": "?", "gold": []}\n', 1,
            "b/results.jsonl has a result of 'q-1', which is no question of the run. ",
        ),
    ],
)  # fmt: skip
def test_damage_is_named_with_its_file(
    rag: Rag, file: str, content: str | None, code: int, said_so: str
) -> None:
    runs([answered(1)], [answered(1)])
    (B / file).unlink()
    if content is not None:
        (B / file).write_text(content)
    for order in ((A, B), (B, A)):
        ran = rag("eval", "compare", *order, "--fail-if-worse", "correct:0")
        assert (ran.code, ran.out) == (code, "")
        assert ran.err.startswith(said_so)


def test_results_that_an_editor_gave_a_byte_order_mark_are_read(rag: Rag) -> None:
    runs([answered(1)], [answered(1, False)])
    whole = (B / "results.jsonl").read_bytes()
    (B / "results.jsonl").write_bytes(b"\xef\xbb\xbf" + whole)
    assert "  q-1  b/results.jsonl:1\n" in rag("eval", "compare", A, B).out


def test_verdicts_that_do_not_fit_the_answer_are_named(rag: Rag) -> None:
    good = answered(1)
    bad = replace(good, result={**(good.result or {}), "entailment": []})
    runs([good], [bad])
    ran = rag("eval", "compare", A, B)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("The result of question q-1 is damaged:")


def test_a_missing_package_is_told_with_the_command_that_installs_it(
    rag: Rag, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs([answered(1)], [answered(1)])
    monkeypatch.setitem(sys.modules, "ir_measures", None)
    said_so = 'Comparing runs needs ir_measures. Run: pip install "citewise[eval]"'
    failed(rag("eval", "compare", A, B), 1, said_so)


def test_text_that_steers_a_terminal_is_not_printed(rag: Rag) -> None:
    evil = "q\x1b[31m\u202e"
    runs([answered(1, False, id=evil), answered(2)], [answered(1, id=evil)], model="\x1b]0;x\x07")
    ran = rag("eval", "compare", A, B)
    assert "Better in B: 1" in ran.out
    assert not UNSEEN.search(ran.out + ran.err)


def test_long_lists_are_cut_on_the_screen_and_whole_in_json(rag: Rag) -> None:
    runs([answered(n, False) for n in range(30)], [answered(n) for n in range(30)])
    ran = rag("eval", "compare", A, B)
    assert "  and 10 more, all of them with --json\n" in ran.out
    assert "Worse in B: none" in ran.out
    assert len(rag("eval", "compare", A, B, "--json").json["comparisons"][0]["won"]) == 30
