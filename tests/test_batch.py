from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from doubles.commands import FACT, QUESTION, Rag, failed, reply, write
from doubles.endpoint import Request, Response, error, hang, text
from doubles.service import USAGE, Service

from rag.batch import run as run_module
from rag.batch.engine import Budget, Price
from rag.batch.setup import MAX_RETRIES, budget_for, patient, usual_jobs
from rag.config import LLMSettings, Settings, load_settings
from rag.errors import ConfigError, UsageError

MAIN = [sys.executable, "-c", "from rag.cli import main; main()"]
GOOD = reply((FACT, [1]))
SUMMARY = re.compile(r"(.*), \d+\.\d s: (.*)\n")


def ask(count: int, name: str = "q.txt") -> Path:
    path = Path(name)
    path.write_text("".join(f"{QUESTION} And number {n}?\n" for n in range(count)))
    return path


def lines(name: str = "a.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(name).read_text().splitlines()]


def number(request: Request) -> int:
    """Which of the questions of `ask` a prompt asks."""
    found = re.findall(r"And number (\d+)\?", json.dumps(request.body))
    return int(found[0]) if found else -1


def answering(service: Service, chosen: Callable[[int], Response | str]) -> None:
    """Let the model answer each question as `chosen` says."""
    usual = service.default
    assert callable(usual)

    def respond(request: Request) -> Response:
        if request.path.endswith("/embeddings") or request.body.get("logprobs"):
            return usual(request)
        found = chosen(number(request))
        return text(found, usage=USAGE) if isinstance(found, str) else found

    service.default = respond


def asked(service: Service) -> Counter[int]:
    """How often an answer to each question was asked for."""
    return Counter(number(r) for r in service.chats if not r.body.get("logprobs"))


def counts(err: str) -> str:
    """The last line of standard error, without its time and file."""
    found = SUMMARY.fullmatch(err.splitlines(keepends=True)[-1])
    assert found is not None, err
    return found[1]


def test_answers_as_json_lines_in_the_order_of_the_questions(filled: Rag, service: Service) -> None:
    answering(service, lambda _: GOOD)
    ran = filled("batch", ask(9), "--out", "a.jsonl")
    assert (ran.code, ran.out) == (0, "")
    assert counts(ran.err) == "9 done, 0 failed, 0 skipped, 0 cached, 7,740 tokens"
    assert [x["question"] for x in lines()] == [f"{QUESTION} And number {n}?" for n in range(9)]
    assert {x["answer"]["text"] for x in lines()} == {f"{FACT} [alpha]"}
    before = Path("a.jsonl").read_bytes()
    again = filled("batch", "q.txt", "--out", "a.jsonl")
    assert again.code == 0
    assert counts(again.err) == "9 done (9 before), 0 failed, 0 skipped, 0 cached, 7,740 tokens"
    assert Path("a.jsonl").read_bytes() == before
    assert asked(service) == Counter(range(9))


def test_the_summary_as_json(filled: Rag, service: Service) -> None:
    service.replies.append(GOOD)
    write("q.jsonl", {"question": QUESTION}, {"text": "What?"})
    ran = filled("batch", "q.jsonl", "--out", "a.md", "--json")
    assert ran.code == 1
    assert {**ran.json, "seconds": 0} == {
        "out": "a.md",
        "done": 1,
        "failed": 0,
        "skipped": 0,
        "cached": 0,
        "before": 0,
        "bad_lines": [{"line": 2, "reason": "It has no field 'question'."}],
        "usage": {"prompt_tokens": 800, "completion_tokens": 60},
        "cost": None,
        "seconds": 0,
        "stopped": None,
    }
    assert ran.err.startswith(
        "Line 2 is left out: It has no field 'question'.\n1 done, 0 failed, 1 unreadable, "
    )
    assert Path("a.md").read_text().startswith(f"## {QUESTION}\n\n{FACT} \\[alpha\\]\n")


def test_a_table_lists_a_question_as_often_as_it_stands(filled: Rag, service: Service) -> None:
    service.replies.append(GOOD)
    Path("q.csv").write_text(f"question,id\n{QUESTION},=x\nWhat?,\n{QUESTION},=x\n")
    service.yes = 0.9
    service.replies.append(reply())
    ran = filled("batch", "q.csv", "--out", "a.csv", "--jobs", "1")
    assert ran.code == 0
    with Path("a.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(r["id"][:2], r["answered"], r["cited"]) for r in rows] == [
        ("'=", "true", "alpha"),
        ("q-", "false", ""),
        ("'=", "true", "alpha"),
    ]
    assert len(lines("a.csv.jsonl")) == 2


def test_an_endpoint_that_fails_at_every_third_question(filled: Rag, service: Service) -> None:
    broken = True

    def chosen(n: int) -> Response | str:
        return error(500, "oh no") if broken and n % 3 == 2 else GOOD

    answering(service, chosen)
    ran = filled("batch", ask(8), "--out", "a.csv")
    assert ran.code == 1
    assert counts(ran.err) == "6 done, 2 failed, 0 skipped, 0 cached, 6,020 tokens"
    ids = [x["id"] for x in lines("a.csv.jsonl")]
    said = 'answered with status 500. The server says: "oh no".'
    assert [line.split(": ")[0] for line in ran.err.splitlines()[:2]] == [
        f"Failed {ids[2]}",
        f"Failed {ids[5]}",
    ]
    assert ran.err.count(said) == 2
    assert [bool(x["error"]) for x in lines("a.csv.jsonl")] == [n % 3 == 2 for n in range(8)]
    assert Path("a.csv").read_text().count(",true,") == 6
    # Again: nothing is asked; with --retry-failed, those two.
    broken = False
    assert filled("batch", "q.txt", "--out", "a.csv").code == 1
    assert asked(service) == Counter(range(8))
    retried = filled("batch", "q.txt", "--out", "a.csv", "--retry-failed")
    assert retried.code == 0
    assert asked(service) == Counter(range(8)) + Counter([2, 5])
    assert [x["attempt"] for x in lines("a.csv.jsonl")] == [1, 1, 2, 1, 1, 2, 1, 1]
    assert Path("a.csv").read_text().count(",true,") == 8


def test_more_failures_than_are_named(filled: Rag, service: Service) -> None:
    answering(service, lambda n: error(400, f"not {n}"))
    ran = filled("batch", ask(25), "--out", "a.jsonl")
    assert ran.code == 1
    assert ran.err.count("Failed q-") == 20
    assert "and 5 more.\n" in ran.err


def test_a_rate_limit_is_sat_out(
    filled: Rag, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAG_LLM_MAX_RETRIES")
    seen: Counter[int] = Counter()

    def chosen(n: int) -> Response | str:
        seen[n] += 1
        if seen[n] <= 3:  # more than one question alone would try
            return error(429, "slow down", headers={"retry-after": "0.01"})
        return GOOD

    answering(service, chosen)
    ran = filled("batch", ask(6), "--out", "a.jsonl", "--jobs", "3")
    assert (ran.code, set(seen.values())) == (0, {4})
    assert {x["attempt"] for x in lines()} == {1}


def test_an_exhausted_quota_stops_the_run_and_is_nobodys_failure(
    filled: Rag, service: Service
) -> None:
    empty = True

    def chosen(n: int) -> Response | str:
        return error(429, "pay", code="insufficient_quota") if empty and n >= 3 else GOOD

    answering(service, chosen)
    ran = filled("batch", ask(9), "--out", "a.jsonl", "--jobs", "1")
    assert ran.code == 1
    assert f"Stopped: The account at {service.base_url} has no quota left." in ran.err
    assert counts(ran.err).startswith("3 done, 0 failed, 6 skipped")
    assert asked(service) == Counter([0, 1, 2, 3])
    empty = False
    assert filled("batch", "q.txt", "--out", "a.jsonl").code == 0
    assert asked(service) == Counter(range(9)) + Counter([3])


def test_a_wrong_key_stops_the_run_at_once(filled: Rag, service: Service) -> None:
    usual = service.default
    assert callable(usual)
    service.default = lambda r: usual(r) if "/emb" in r.path else error(401, "who are you?")
    ran = filled("batch", ask(9), "--out", "a.jsonl", "--jobs", "1")
    assert ran.code == 1
    assert "Stopped: " in ran.err
    assert "RAG_LLM_API_KEY" in ran.err
    assert not Path("a.jsonl").exists()


def test_a_server_that_is_down_stops_the_run(
    filled: Rag, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAG_LLM_BASE_URL", "http://127.0.0.1:9/v1")
    ran = filled("batch", ask(9), "--out", "a.jsonl")
    assert ran.code == 1
    assert "Stopped: http://127.0.0.1:9/v1 cannot be reached (ConnectError)." in ran.err
    assert counts(ran.err).startswith("0 done, 0 failed, 9 skipped")


def test_budgets(filled: Rag, service: Service) -> None:
    answering(service, lambda _: GOOD)
    arguments = ("batch", ask(5), "--out", "a.jsonl", "--jobs", "1")
    ran = filled(*arguments, "--max-tokens", "1000")
    assert ran.code == 1
    assert "Stopped: The budget of 1,000 tokens is used up (1,720 spent).\n" in ran.err
    assert counts(ran.err) == "2 done, 0 failed, 3 skipped, 0 cached, 1,720 tokens"
    Path("rag.toml").write_text('[prices."scripted"]\ninput = 1000\noutput = 2000\n')
    # 3 x 0.92: what was spent before counts as well.
    ran = filled(*arguments, "--max-cost", "2.5")
    assert (
        counts(ran.err) == "3 done (2 before), 0 failed, 2 skipped, 0 cached, 2,580 tokens for 2.76"
    )
    ran = filled(*arguments, "--max-cost", "100", "--json")
    assert (ran.code, ran.json["cost"]) == (0, pytest.approx(4.6))
    assert asked(service) == Counter(range(5))


def test_what_failed_attempts_cost_stays_in_the_budget(filled: Rag, service: Service) -> None:
    answering(service, lambda n: error(400, "no") if n == 0 else GOOD)
    arguments = ("batch", ask(2), "--out", "a.jsonl", "--jobs", "1", "--json")
    # The gate of each question has 430 tokens, and so has the reply.
    assert [filled(*arguments).json["usage"]["prompt_tokens"] for _ in range(2)] == [1200, 1200]
    retried = [filled(*arguments, "--retry-failed").json for _ in range(2)]
    assert [ran["usage"]["prompt_tokens"] for ran in retried] == [1600, 2000]
    assert filled(*arguments).json["usage"]["prompt_tokens"] == 2000
    ran = filled(*arguments, "--retry-failed", "--max-tokens", "2000").json
    assert ran["stopped"] == "The budget of 2,000 tokens is used up (2,150 spent)."


def test_a_limit_of_cost_needs_a_price(filled: Rag, service: Service) -> None:
    said = (
        "--max-cost needs the price of {}. Write it into rag.toml, as money for a million tokens: "
        '[prices."{}"] and below it `input = 0.15` and `output = 0.60`.'
    )
    arguments = ("batch", ask(2), "--out", "a.jsonl", "--max-cost", "1")
    failed(filled(*arguments), 2, said.format("scripted", "scripted"))
    Path("rag.toml").write_text('[prices."other"]\ninput = 1\noutput = 2\n')
    failed(filled(*arguments), 2, said.format("scripted", "scripted"))
    assert service.chats == []
    assert not Path("a.jsonl").exists()


def test_the_cache_spares_questions_that_were_answered_before(
    filled: Rag, service: Service
) -> None:
    answering(service, lambda _: GOOD)
    assert filled("batch", ask(4), "--out", "a.jsonl").code == 0
    ran = filled("batch", "q.txt", "--out", "b.md")
    assert counts(ran.err) == "4 done, 0 failed, 0 skipped, 4 cached, 0 tokens"
    assert asked(service) == Counter(range(4))
    ran = filled("batch", "q.txt", "--out", "c.jsonl", "--no-cache")
    assert counts(ran.err) == "4 done, 0 failed, 0 skipped, 0 cached, 3,440 tokens"
    assert asked(service) == Counter(dict.fromkeys(range(4), 2))


def test_a_cache_that_cannot_be_used_costs_a_note(
    filled: Rag, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("blocked").write_text("")
    monkeypatch.setenv("RAG_CACHE_DIR", "blocked")
    answering(service, lambda _: GOOD)
    ran = filled("batch", ask(2), "--out", "a.jsonl")
    assert ran.code == 0
    assert ran.err.startswith("Note: Answers are not kept for later runs: blocked/answers.sqlite")


def test_answers_of_another_make_are_not_mixed(
    filled: Rag, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(service, lambda _: GOOD)
    assert filled("batch", ask(2), "--out", "a.csv").code == 0
    before = Path("a.csv").read_bytes(), Path("a.csv.jsonl").read_bytes()
    said = (
        "a.csv.jsonl was made with {}. New answers are not mixed with those: finish it with what "
        "it was made with, choose another --out, or remove it to begin anew."
    )
    arguments = ("batch", "q.txt", "--out", "a.csv")
    for name, value, what in (
        ("RAG_LLM_MODEL", "newer", "another model (scripted; now newer)"),
        ("RAG_ANSWER_SEED", "3", "another seed (0; now 3)"),
        (
            "RAG_RETRIEVAL_PAPERS",
            "3",
            "other papers, other settings or another version of this program",
        ),
    ):
        with monkeypatch.context() as patched:
            patched.setenv(name, value)
            failed(filled(*arguments), 2, said.format(what))
    assert (Path("a.csv").read_bytes(), Path("a.csv.jsonl").read_bytes()) == before
    assert filled(*arguments).code == 0


def test_an_id_whose_question_has_changed_is_refused(filled: Rag, service: Service) -> None:
    service.replies.extend([GOOD, GOOD])
    write("q.jsonl", {"id": "a", "question": QUESTION})
    assert filled("batch", "q.jsonl", "--out", "a.jsonl").code == 0
    write("q.jsonl", {"id": "a", "question": "Something else?"})
    failed(
        filled("batch", "q.jsonl", "--out", "a.jsonl"),
        2,
        "a.jsonl answers another question, or one after another history, under the ID 'a' than "
        "q.jsonl asks. Give the changed question another ID, choose another --out, or remove that "
        "line.",
    )
    history = [{"question": "Which net is it?", "answer": "AlphaNet."}]
    write("q.jsonl", {"id": "a", "question": QUESTION, "history": history})
    ran = filled("batch", "q.jsonl", "--out", "a.jsonl")
    assert (ran.code, ran.out) == (2, "")
    assert "one after another history, under the ID 'a'" in ran.err
    # A question more is no change.
    write("q.jsonl", {"id": "b", "question": QUESTION + "?"}, {"id": "a", "question": QUESTION})
    assert filled("batch", "q.jsonl", "--out", "a.jsonl").code == 0
    assert [x["id"] for x in lines()] == ["b", "a"]


def test_files_that_cannot_be_used(filled: Rag, service: Service) -> None:
    ask(1)
    failed(
        filled("batch", "q.txt", "--out", "a.xlsx"),
        2,
        "--out a.xlsx: its name must end with .jsonl, .csv or .md.",
    )
    write("q.jsonl", {"question": QUESTION})
    before = Path("q.jsonl").read_bytes()
    said = "holds the questions: choose another file for the answers."
    for out in ("q.jsonl", "./q.jsonl", "Q.JSONL" if Path("Q.JSONL").exists() else "q.jsonl"):
        ran = filled("batch", "q.jsonl", "--out", out)
        assert (ran.code, ran.err) == (2, f"{Path(out)} {said}\n")
    Path("mine.csv").write_text("my,own\n")
    failed(
        filled("batch", "q.txt", "--out", "mine.csv"),
        2,
        "mine.csv exists, and no batch made it (mine.csv.jsonl is missing beside it). Choose "
        "another --out, or remove it.",
    )
    Path("mine.jsonl").write_text('{"question": "Mine?"}')
    assert "line 1, is not a result that a run wrote" in (
        filled("batch", "q.txt", "--out", "mine.jsonl").err
    )
    assert Path("mine.jsonl").read_text() == '{"question": "Mine?"}'
    assert filled("batch", "q.txt", "--out", "nowhere/a.jsonl").code == 1
    ran = filled("batch", "no.txt", "--out", "a.jsonl")
    assert (ran.code, ran.err) == (
        2,
        "no.txt cannot be read: No such file or directory. Check the path.\n",
    )
    Path("empty.csv").write_text("")
    assert filled("batch", "empty.csv", "--out", "a.jsonl").code == 2
    assert filled("batch", "q.txt", "--out", "a.jsonl", "--jobs", "0").code == 2
    assert service.chats == []
    assert (Path("q.jsonl").read_bytes(), Path("a.jsonl").exists()) == (before, False)


def test_questions_come_through_a_pipe(filled: Rag, service: Service) -> None:
    service.replies.append(GOOD)
    ran = filled("batch", "-", "--out", "a.jsonl", stdin=QUESTION.encode())
    assert (ran.code, lines()[0]["question"]) == (0, QUESTION)


def test_without_an_index_nothing_is_left_behind(rag: Rag, service: Service) -> None:
    ran = rag("batch", ask(1), "--out", "a.csv")
    assert (ran.code, ran.out) == (1, "")
    assert "There is no store at vectorstore yet." in ran.err
    assert not Path("a.csv").exists()
    assert not Path("a.csv.jsonl").exists()


def test_what_a_model_says_steers_no_terminal(filled: Rag, service: Service) -> None:
    answering(service, lambda _: error(500, "\x1b[31mred\u202e"))
    ran = filled("batch", ask(1), "--out", "a.md")
    assert "\x1b" not in ran.err + Path("a.md").read_text() + Path("a.md.jsonl").read_text()


# Several processes, and what ends them.


def spawn(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*MAIN, "batch", "q.txt", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_second_process_on_the_same_file_is_sent_away(filled: Rag, service: Service) -> None:
    answering(service, lambda _: hang(30))
    ask(3)
    first = spawn("--out", "a.csv")
    wait_for(lambda: bool(asked(service)))
    failed(
        filled("batch", "q.txt", "--out", "a.csv"),
        1,
        "Another process is at work on a.csv.jsonl. Nothing was changed: wait until it is done, or "
        "choose another file.",
    )
    first.kill()
    first.communicate()


def test_ctrl_c_says_how_to_go_on(filled: Rag, service: Service) -> None:
    answering(service, lambda n: hang(30) if n == 2 else GOOD)
    ask(4)
    process = spawn("--out", "a.csv", "--jobs", "1")
    wait_for(lambda: asked(service)[2] == 1)
    process.send_signal(signal.SIGINT)
    # Far less than the reply that hangs takes, which nobody waits for.
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (130, "")
    assert err == "Interrupted. The same command again finishes a.csv.\n"
    assert len(lines("a.csv.jsonl")) == 2
    assert not Path("a.csv").exists()
    answering(service, lambda _: GOOD)
    assert filled("batch", "q.txt", "--out", "a.csv").code == 0
    assert Path("a.csv").read_text().count(",true,") == 4


def test_killed_in_the_middle_it_goes_on_and_asks_nothing_twice(
    filled: Rag, service: Service
) -> None:
    if os.name != "posix":
        pytest.skip("kill -9 needs a Unix")
    answering(service, lambda n: hang(30) if n == 5 else GOOD)
    ask(8)
    process = spawn("--out", "a.jsonl", "--jobs", "1")
    wait_for(lambda: asked(service)[5] == 1)
    process.kill()
    process.communicate()
    with Path("a.jsonl").open("ab") as torn:  # as if killed while it wrote
        torn.write(b'{"id": "q-1", "attempt": 1, "ques')
    answering(service, lambda _: GOOD)
    ran = filled("batch", "q.txt", "--out", "a.jsonl", "--no-cache")
    assert ran.code == 0
    assert ran.err.startswith("Note: Line 6 of a.jsonl was torn when the run before was stopped")
    assert counts(ran.err).startswith("8 done (5 before), 0 failed")
    assert asked(service) == Counter(range(8)) + Counter([5])
    assert [x["question"][-3:-1] for x in lines()] == [f" {n}" for n in range(8)]


# Settings of a batch.


def test_jobs_and_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    there = Settings(llm=LLMSettings(base_url="http://h/v1"))
    assert (usual_jobs(Settings()), usual_jobs(there)) == (1, 4)
    assert patient(there).llm == LLMSettings(base_url="http://h/v1", max_retries=MAX_RETRIES)
    monkeypatch.setenv("RAG_LLM_MAX_RETRIES", "1")
    assert patient(load_settings()).llm.max_retries == 1


@pytest.mark.parametrize(("flags", "slots"), [((), 4), (("--jobs", "7"), 7)])
def test_the_model_gets_a_slot_for_each_job(
    filled: Rag,
    service: Service,
    monkeypatch: pytest.MonkeyPatch,
    flags: tuple[str, ...],
    slots: int,
) -> None:
    given: list[int] = []
    open_chat = run_module.open_chat

    def watched(settings: Settings, progress: Any, slots: int) -> Any:
        given.append(slots)
        return open_chat(settings, progress, slots)

    monkeypatch.setattr(run_module, "open_chat", watched)
    service.replies.append(GOOD)
    assert filled("batch", ask(1), "--out", "a.jsonl", *flags).code == 0
    assert given == [slots]


def test_prices_come_from_the_file() -> None:
    Path("rag.toml").write_text(
        '[prices."gpt-4.1-mini"]\ninput = 0.4\noutput = 1.6\n'
        "[prices.local]\ninput = 0\noutput = 0\n"
    )
    settings = load_settings(environ={"RAG_LLM_MODEL": "gpt-4.1-mini"})
    assert budget_for(settings, "gpt-4.1-mini", 5) == Budget(5, None, Price(0.4, 1.6))
    assert budget_for(settings, "local", max_cost=1.0).price == Price(0.0, 0.0)
    assert budget_for(settings, "unknown", 5) == Budget(5)
    with pytest.raises(UsageError, match=r'\[prices\."un\\"known"\]'):
        budget_for(settings, 'un"known', max_cost=1.0)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('[prices."m"]\ninput = 1', "prices.m.output: Field required"),
        ('[prices."m"]\ninput = 1\noutput = -1', "prices.m.output: Input should be greater than"),
        ('[prices."m"]\ninput = nan\noutput = 1', "prices.m.input: Input should be a finite"),
        ('[prices."m"]\ninput = 1\noutput = 1\nouput = 1', "prices.m.ouput: unknown setting"),
        ("prices = 3", "prices: Input should be a valid"),
    ],
)
def test_prices_that_do_not_fit_are_named(content: str, said: str) -> None:
    Path("rag.toml").write_text(content)
    with pytest.raises(ConfigError, match=re.escape(said)):
        load_settings(environ={})


@pytest.mark.parametrize("name", ["RAG_PRICES", "RAG_PRICES_GPT_INPUT"])
def test_prices_do_not_come_from_the_environment(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(environ={name: "3"})
    assert str(caught.value) == (
        f"{name}: prices cannot come from the environment. Unset it, and write into rag.toml: "
        '[prices."MODEL"] with `input = ...` and `output = ...`.'
    )
    # The rest of the layer is as it was.
    assert load_settings(environ={"RAG_PRICES": "", "RAG_LLM_MODEL": "m"}).llm.model == "m"
