from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rag.batch.engine import Budget, Outcome, Price, Progress, run_all
from rag.batch.journal import Journal
from rag.errors import (
    BatchError,
    ConfigError,
    EndpointDownError,
    EndpointError,
    StoreError,
    UsageError,
)
from rag.types import Usage

PATH = Path("results.jsonl")
ITEMS = [(f"q{number}", number) for number in range(6)]


@pytest.fixture
def journal() -> Iterator[Journal]:
    with Journal.open(PATH) as opened:
        yield opened


def answer(tokens: int = 10) -> dict[str, Any]:
    return {"answer": {"usage": {"prompt_tokens": tokens, "completion_tokens": 0}}, "error": None}


def doubled(number: int, attempt: int) -> dict[str, Any]:
    return {**answer(), "made": number * 2, "error": None}


def failing_on(*numbers: int, error: Callable[[int], Exception]) -> Any:
    def work(number: int, attempt: int) -> dict[str, Any]:
        if number in numbers:
            raise error(number)
        return answer()

    return work


def test_every_item_gets_its_line(journal: Journal) -> None:
    outcome = run_all(ITEMS, doubled, journal)
    assert outcome == Outcome(
        done=6, failed=0, skipped=0, cached=0, usage=Usage(60, 0), cost=None, stopped=None
    )
    lines = list(journal.lines())
    assert [(x["id"], x["attempt"], x["made"]) for x in lines] == [
        (item_id, 1, number * 2) for item_id, number in ITEMS
    ]
    assert time.strptime(lines[0]["at"], "%Y-%m-%dT%H:%M:%SZ")


def test_an_error_is_the_line_of_its_item_and_the_rest_goes_on(journal: Journal) -> None:
    work = failing_on(2, 5, error=lambda number: EndpointError(f"No {number}. Try again."))
    outcome = run_all(ITEMS, work, journal)
    assert (outcome.done, outcome.failed, outcome.stopped) == (4, 2, None)
    failed = [x for x in journal.lines() if x["error"] is not None]
    assert [(x["id"], x["answer"], x["error"]) for x in failed] == [
        ("q2", None, "No 2. Try again."),
        ("q5", None, "No 5. Try again."),
    ]


def test_a_line_with_an_error_counts_as_failed(journal: Journal) -> None:
    outcome = run_all(ITEMS[:1], lambda n, a: {"answer": None, "error": "no"}, journal)
    assert (outcome.done, outcome.failed) == (0, 1)


def test_an_unforeseen_error_is_recorded_once(journal: Journal, isolated: Path) -> None:
    work = failing_on(1, 3, error=lambda _: KeyError("citation"))
    run_all(ITEMS, work, journal)
    first, second = (x["error"] for x in journal.lines() if x["error"])
    assert first == second
    assert first.startswith("Internal error: KeyError: 'citation'. Details are in ")
    (crash,) = isolated.rglob("crash-*.txt")
    assert str(crash) in first
    assert "in work" in crash.read_text()


@pytest.mark.parametrize("jobs", [1, 3])
def test_done_items_are_not_worked_on_again_nor_failed_ones_unless_asked(
    journal: Journal, jobs: int
) -> None:
    asked: list[tuple[int, int]] = []

    def work(number: int, attempt: int) -> dict[str, Any]:
        asked.append((number, attempt))
        if number == 2 and attempt < 3:
            raise EndpointError("no")
        return answer()

    run_all(ITEMS[:4], work, journal, jobs=jobs)
    again = run_all(ITEMS, work, journal, jobs=jobs)
    assert sorted(asked) == [(number, 1) for number in range(6)]
    assert (again.done, again.before, again.failed) == (5, 3, 1)
    for attempt in (2, 3):
        retried = run_all(ITEMS, work, journal, jobs=jobs, retry_failed=True)
        assert asked[-1] == (2, attempt)
    assert (retried.done, retried.failed, retried.before) == (6, 0, 5)
    assert journal.attempts["q2"].number == 3


def test_an_id_that_comes_twice_is_one_item(journal: Journal) -> None:
    asked: list[int] = []

    def work(number: int, attempt: int) -> dict[str, Any]:
        asked.append(number)
        return answer()

    outcome = run_all([*ITEMS, *ITEMS], work, journal, jobs=2)
    assert (outcome.done, sorted(asked)) == (6, list(range(6)))


def test_as_many_jobs_at_a_time_as_allowed_and_no_more(journal: Journal) -> None:
    at_work, most = 0, 0
    turn = threading.Lock()
    together = threading.Barrier(3)

    def work(number: int, attempt: int) -> dict[str, Any]:
        nonlocal at_work, most
        with turn:
            at_work += 1
            most = max(most, at_work)
        together.wait(timeout=20)  # breaks unless three are at work at once
        with turn:
            at_work -= 1
        return answer()

    outcome = run_all(ITEMS, work, journal, jobs=3)
    assert (outcome.done, most) == (6, 3)


def test_items_are_taken_as_they_are_needed(journal: Journal) -> None:
    taken = 0

    def items() -> Iterator[tuple[str, int]]:
        nonlocal taken
        for item in ITEMS:
            taken += 1
            yield item

    def work(number: int, attempt: int) -> dict[str, Any]:
        assert taken <= number + 2
        return answer()

    assert run_all(items(), work, journal, jobs=2).failed == 0


# Budgets.


def test_a_budget_of_tokens_stops_before_the_next_item(journal: Journal) -> None:
    outcome = run_all(ITEMS, lambda n, a: answer(), journal, budget=Budget(max_tokens=25))
    assert (outcome.done, outcome.skipped) == (3, 3)
    assert outcome.stopped == "The budget of 25 tokens is used up (30 spent)."
    # What was spent before counts, unless more is allowed.
    again = run_all(ITEMS, lambda n, a: answer(), journal, budget=Budget(max_tokens=25))
    assert (again.done, again.skipped) == (3, 3)
    more = run_all(ITEMS, lambda n, a: answer(), journal, budget=Budget(max_tokens=61))
    assert (more.done, more.skipped, more.stopped) == (6, 0, None)


def test_a_budget_of_money(journal: Journal) -> None:
    budget = Budget(max_cost=1.0, price=Price(input=40_000, output=0))
    outcome = run_all(ITEMS, lambda n, a: answer(), journal, budget=budget)
    assert (outcome.done, outcome.skipped, outcome.cost) == (3, 3, pytest.approx(1.2))
    assert outcome.stopped == "The budget of 1 is used up (1.2 spent)."
    with pytest.raises(UsageError):
        Budget(max_cost=1.0)


def test_the_price_of_both_kinds_of_tokens() -> None:
    assert Price(input=0.15, output=0.60).of(Usage(2_000_000, 500_000)) == pytest.approx(0.60)


def test_cached_items_cost_nothing_and_failed_attempts_cost_what_they_spent(
    journal: Journal,
) -> None:
    spent = {"prompt_tokens": 7, "completion_tokens": 1}

    def work(number: int, attempt: int) -> dict[str, Any]:
        if number % 2:
            return {**answer(1000), "cached": True}
        return {"answer": None, "error": f"no {number}", "spent": spent}

    outcome = run_all(ITEMS, work, journal, budget=Budget(max_tokens=1000))
    assert (outcome.cached, outcome.failed, outcome.usage) == (3, 3, Usage(21, 3))


def test_items_done_before_are_counted_even_after_the_budget_is_used_up(journal: Journal) -> None:
    run_all(ITEMS[4:], lambda n, a: answer(), journal)
    outcome = run_all(ITEMS, lambda n, a: answer(), journal, budget=Budget(max_tokens=5))
    assert (outcome.done, outcome.before, outcome.skipped) == (2, 2, 4)


# Errors that would strike every item.


@pytest.mark.parametrize("kind", [StoreError, ConfigError, EndpointDownError, BatchError])
def test_a_general_error_ends_the_run_and_is_no_items_fault(
    journal: Journal, kind: type[Exception]
) -> None:
    work = failing_on(2, 3, 4, 5, error=lambda _: kind("All is lost. Mend it."))
    outcome = run_all(ITEMS, work, journal)
    assert (outcome.done, outcome.failed, outcome.skipped) == (2, 0, 4)
    assert outcome.stopped == "All is lost. Mend it."
    assert list(journal.attempts) == ["q0", "q1"]
    assert run_all(ITEMS, lambda n, a: answer(), journal).done == 6


def test_ten_items_that_fail_alike_end_the_run(journal: Journal) -> None:
    items = [(f"q{number}", number) for number in range(30)]

    def work(number: int, attempt: int) -> dict[str, Any]:
        if number < 5 or number == 10:
            return answer()
        raise EndpointError("The server is busy.")

    outcome = run_all(items, work, journal)
    assert (outcome.done, outcome.failed, outcome.skipped) == (6, 15, 9)
    assert outcome.stopped is not None
    assert outcome.stopped.startswith("10 items in a row failed in the same way: The server is")


def test_items_that_fail_each_in_its_own_way_do_not_end_the_run(journal: Journal) -> None:
    items = [(f"q{number}", number) for number in range(30)]
    work = failing_on(*range(30), error=lambda number: EndpointError(f"No {number}."))
    assert run_all(items, work, journal).failed == 30


def test_a_full_disk_ends_the_run_with_an_error(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(line: Any) -> None:
        raise BatchError("There is no space left.")

    monkeypatch.setattr(journal, "append", full)
    with pytest.raises(BatchError, match="no space left"):
        run_all(ITEMS, doubled, journal, jobs=3)


# Progress, and the end of patience.


def test_progress_is_told_after_each_item(journal: Journal) -> None:
    told: list[Progress] = []
    run_all(ITEMS[:1], doubled, journal)
    work = failing_on(3, error=lambda _: EndpointError("no"))
    budget = Budget(price=Price(1_000_000, 0))
    run_all(ITEMS, work, journal, budget=budget, on_progress=told.append)
    assert [(p.done, p.failed, p.before, p.total) for p in told] == [
        (2, 0, 1, 6), (3, 0, 1, 6), (3, 1, 1, 6), (4, 1, 1, 6), (5, 1, 1, 6),
    ]  # fmt: skip
    assert (told[-1].usage, told[-1].cost) == (Usage(50, 0), 50.0)
    told.clear()
    run_all(iter([("new", 0)]), doubled, journal, on_progress=told.append)
    assert told[0].total is None


def test_ctrl_c_keeps_what_is_done_and_waits_for_nobody(journal: Journal) -> None:
    released, ready, over = threading.Event(), threading.Event(), threading.Event()

    def work(number: int, attempt: int) -> dict[str, Any]:
        if number == 1:
            released.wait(30)
            over.set()
        if number == 2:
            ready.set()
        return answer()

    def interrupt(progress: Progress) -> None:
        if progress.done == 1:
            ready.wait(30)  # the third item is done too, but not yet written down
            time.sleep(0.05)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_all(ITEMS, work, journal, jobs=3, on_progress=interrupt)
    assert not over.is_set()
    assert set(journal.attempts) == {"q0", "q2"}
    released.set()
    assert over.wait(30)
    time.sleep(0.05)
    assert set(journal.attempts) == {"q0", "q2"}  # what was left behind writes nothing any more


def test_a_signal_interrupts_a_run(journal: Journal) -> None:
    if os.name != "posix":
        pytest.skip("signals to oneself need a Unix")

    released, over = threading.Event(), threading.Event()

    def work(number: int, attempt: int) -> dict[str, Any]:
        if number:
            os.kill(os.getpid(), signal.SIGINT)
            released.wait(30)
            over.set()
        return answer()

    # Where tests run in the background of a shell it is ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_all(ITEMS[:2], work, journal)
    finally:
        signal.signal(signal.SIGINT, before)
    assert not over.is_set()
    released.set()
    assert list(journal.attempts) == ["q0"]


def test_killed_at_any_moment_a_run_is_finished_by_the_next(tmp_path: Path) -> None:
    if os.name != "posix":
        pytest.skip("kill -9 needs a Unix")
    program = Path(__file__).parent / "doubles" / "batch_worker.py"
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    count, kills = 60, 0
    whole, asked, broken = tmp_path / "whole.jsonl", tmp_path / "asked", tmp_path / "broken.jsonl"

    def start(journal: Path, log: Path) -> subprocess.Popen[bytes]:
        command = [sys.executable, str(program), str(journal), str(log), str(count)]
        return subprocess.Popen(command, env=environ)

    assert start(whole, tmp_path / "unbroken").wait(60) == 0
    chance = random.Random(5)
    for _ in range(8):
        process = start(broken, asked)
        before = asked.stat().st_size if asked.exists() else 0
        while process.poll() is None and (not asked.exists() or asked.stat().st_size == before):
            time.sleep(0.002)
        time.sleep(chance.random() * 0.05)
        kills += process.poll() is None
        process.kill()
        process.wait()
    assert kills >= 4
    assert start(broken, asked).wait(60) == 0
    assert broken.read_bytes() == whole.read_bytes()
    times = Counter(asked.read_text().split())
    assert len(times) == count
    assert sum(times.values()) - count <= kills  # one in flight at each kill


def test_time_grows_with_the_items_and_memory_hardly() -> None:
    text = "x" * 5_000

    def work(number: int, attempt: int) -> dict[str, Any]:
        return {**answer(), "answer": {"text": text}}

    def seconds(journal: Journal, count: int) -> float:
        """To do items until there are so many, whatever else the machine does."""
        started = time.process_time()
        outcome = run_all(((f"q{n}", n) for n in range(count)), work, journal, jobs=4)
        assert outcome.done == count
        return time.process_time() - started

    with Journal.open(PATH) as journal:
        first, more = seconds(journal, 1_000), seconds(journal, 10_000)
        assert PATH.stat().st_size > 50_000_000
        # Nine times as many, onto a file that is there.
        assert more < 40 * first
        journal.settle([f"q{n}" for n in reversed(range(10_000))])
    tracemalloc.start()
    try:
        with Journal.open(PATH) as journal:
            run_all(((f"r{n}", n) for n in range(1_000)), work, journal, jobs=4)
            assert sum(1 for _ in journal.lines()) == 11_000
            journal.settle([f"q{n}" for n in range(10_000)])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # 55 MB of lines; what is kept is an ID, a place and an attempt of each item.
    assert peak < 15_000_000
