from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from rag.batch import cache as module
from rag.batch.cache import AnswerCache, cache_file
from rag.config import Settings

PATH = Path("cache/answers.sqlite")


def test_what_was_kept_is_found_by_the_next_run() -> None:
    with AnswerCache(PATH) as cache:
        assert cache.get("k") is None
        cache.put("k", {"answer": {"text": "für", "seconds": {"total": 1.25}}})
        cache.put("k", {"answer": "another"})
        assert cache.note is None
    with AnswerCache(PATH) as cache:
        assert cache.get("k") == {"answer": {"text": "für", "seconds": {"total": 1.25}}}
        assert cache.get("K") is None


def test_it_lies_in_the_cache_directory(isolated: Path) -> None:
    assert cache_file(Settings(cache_dir=Path("mine"))) == Path("mine/answers.sqlite")
    assert cache_file(Settings()).is_relative_to(isolated)


def test_nobody_else_may_read_it() -> None:
    if os.name != "posix":
        pytest.skip("modes need a Unix")
    with AnswerCache(PATH) as cache:
        cache.put("k", {})
        modes = {stat.S_IMODE(file.stat().st_mode) for file in PATH.parent.iterdir()}
    assert modes == {0o600}


@pytest.mark.parametrize(
    "content", [b"no database at all" * 100, b"SQLite format 3\0" + b"x" * 200]
)
def test_a_damaged_file_costs_a_note(content: bytes) -> None:
    PATH.parent.mkdir()
    PATH.write_bytes(content)
    with AnswerCache(PATH) as cache:
        assert cache.get("k") is None
        cache.put("k", {"a": 1})
        assert cache.get("k") is None
        assert cache.note is not None
        assert cache.note.startswith(f"Answers are not kept for later runs: {PATH} cannot be used")
    assert PATH.read_bytes() == content


def test_a_damaged_row_costs_a_note() -> None:
    with AnswerCache(PATH) as cache:
        cache.put("k", {"a": 1})
    connection = sqlite3.connect(PATH)
    with connection:
        connection.execute("UPDATE answers SET content = '{\"a\": '")
    connection.close()
    with AnswerCache(PATH) as cache:
        assert cache.get("k") is None
        assert cache.note is not None


def test_a_place_that_cannot_be_written_costs_a_note() -> None:
    Path("cache").write_text("a file")
    with AnswerCache(PATH) as cache:
        cache.put("k", {"a": 1})
        assert cache.get("k") is None
        assert cache.note is not None
        assert "RAG_CACHE_DIR" in cache.note


def test_a_full_disk_costs_a_note() -> None:
    with AnswerCache(PATH) as cache:
        cache.put("small", {"a": 1})
        assert cache._connection is not None
        pages = cache._connection.execute("PRAGMA page_count").fetchone()[0]
        cache._connection.execute(f"PRAGMA max_page_count = {pages}")  # SQLite's own full disk
        cache.put("large", {"a": "x" * 100_000})
        assert cache.note is not None
        assert "full" in cache.note
        assert cache.get("small") is None
    with AnswerCache(PATH) as cache:
        assert cache.get("small") == {"a": 1}
        assert cache.get("large") is None


def test_another_versions_file_is_left_alone() -> None:
    PATH.parent.mkdir()
    connection = sqlite3.connect(PATH)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with AnswerCache(PATH) as cache:
        assert cache.note is not None
        assert "it is of version 99" in cache.note


def test_the_oldest_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ANSWERS", 3)
    clock = iter(range(100))
    monkeypatch.setattr(module.time, "time", lambda: next(clock))
    with AnswerCache(PATH) as cache:
        for number in range(5):
            cache.put(str(number), {"n": number})
    with AnswerCache(PATH) as cache:
        found = [number for number in range(5) if cache.get(str(number)) is not None]
    assert found == [2, 3, 4]


def test_nothing_is_found_nor_kept_after_the_end() -> None:
    cache = AnswerCache(PATH)
    cache.close()
    cache.close()
    cache.put("k", {"a": 1})
    assert (cache.get("k"), cache.note) == (None, None)


def test_several_threads_and_processes_use_it_at_once() -> None:
    program = (
        "import sys\nfrom pathlib import Path\nfrom rag.batch.cache import AnswerCache\n"
        "with AnswerCache(Path(sys.argv[1])) as cache:\n"
        "    for n in range(150):\n        cache.put(f'{sys.argv[2]}-{n}', {'n': n})\n"
        "    sys.exit(cache.note)\n"
    )
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    command = [sys.executable, "-c", program, str(PATH)]
    processes = [subprocess.Popen([*command, name], env=environ) for name in ("a", "b")]
    wrong: list[object] = []
    with AnswerCache(PATH) as cache:

        def work(thread: int) -> None:
            for n in range(150):
                cache.put(f"{thread}-{n}", {"n": n})
                if cache.get(f"{thread}-{n}") != {"n": n}:
                    wrong.append((thread, n))

        threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [process.wait(60) for process in processes] == [0, 0]
        assert (wrong, cache.note) == ([], None)
        assert all(cache.get(f"{who}-{n}") == {"n": n} for who in "ab012" for n in range(150))
