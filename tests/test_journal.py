from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.batch.journal import Attempt, Journal
from rag.errors import BatchError
from rag.types import Usage

PATH = Path("results.jsonl")
WHOLE = b'{"id": "a", "answer": {}, "error": null}\n'


def line(item_id: str, text: str = "", *, error: str | None = None, **more: Any) -> dict[str, Any]:
    answer = {"text": text, "usage": {"prompt_tokens": 10, "completion_tokens": 2}}
    return {
        "id": item_id,
        "attempt": 1,
        "answer": None if error else answer,
        "error": error,
        **more,
    }


def written(*lines: dict[str, Any]) -> bytes:
    with Journal.open(PATH) as journal:
        for each in lines:
            journal.append(each)
    return PATH.read_bytes()


def refused(path: Path = PATH) -> str:
    with pytest.raises(BatchError) as caught:
        Journal.open(path)
    assert caught.value.exit_code == 1
    return str(caught.value)


def test_a_line_is_in_the_file_as_soon_as_it_is_appended() -> None:
    with Journal.open(PATH) as journal:
        journal.append(line("a", "für\u2028dich\x1b[31m"))
        content = PATH.read_bytes()
        assert content.count(b"\n") == 1
        assert content.decode().rstrip("\n").isprintable()
        assert json.loads(content)["answer"]["text"] == "für\u2028dich\x1b[31m"
        assert "für" in content.decode()


def test_the_id_comes_first_whatever_the_order_of_the_fields() -> None:
    assert written({"error": None, "answer": None, "id": "a"}).startswith(b'{"id": "a", ')


def test_attempts_and_tokens_are_read_back() -> None:
    written(
        line("a", error="no", attempt=1, spent={"prompt_tokens": 5, "completion_tokens": 0}),
        line("b"),
        line("c", cached=True),
        line("a", attempt=2),
    )
    with Journal.open(PATH) as journal:
        assert journal.attempts == {
            "a": Attempt(2, failed=False, usage=Usage(15, 2)),
            "b": Attempt(1, failed=False, usage=Usage(10, 2)),
            "c": Attempt(1, failed=False, usage=Usage(), cached=True),
        }
        assert journal.spent == Usage(25, 4)
        assert journal.repaired is None


def test_what_replaced_attempts_cost_is_not_forgotten() -> None:
    def tried(attempt: int, tokens: int, **more: Any) -> dict[str, Any]:
        spent = {"prompt_tokens": tokens, "completion_tokens": 1}
        return line("a", attempt=attempt, spent=spent, **more)

    with Journal.open(PATH) as journal:
        for attempt, tokens in ((1, 1000), (2, 50), (3, 7)):
            journal.append(tried(attempt, tokens, error="no" if attempt < 3 else None))
        assert journal.spent == Usage(1057, 3)
    for _ in range(2):
        with Journal.open(PATH) as journal:
            assert journal.spent == journal.attempts["a"].usage == Usage(1057, 3)
            journal.settle(["a"])
    assert len(PATH.read_text().splitlines()) == 1
    with Journal.open(PATH) as journal:
        assert journal.spent == Usage(1057, 3)
        journal.append(tried(4, 10))
        journal.settle(["a"])
    with Journal.open(PATH) as journal:
        assert journal.spent == Usage(1067, 4)
        assert json.loads(PATH.read_text())["spent"]["prompt_tokens"] == 10


def test_lines_are_the_latest_of_each_item() -> None:
    with Journal.open(PATH) as journal:
        for text in ("1", "2", "3"):
            journal.append(line("a", text))
            journal.append(line("b", text))
        journal.append(line("a", "4"))
        assert [(x["id"], x["answer"]["text"]) for x in journal.lines()] == [("b", "3"), ("a", "4")]
        assert [x["id"] for x in journal.lines(["a", "zz", "b", "a"])] == ["a", "b", "a"]


def test_settling_puts_the_latest_lines_in_order_and_leaves_a_settled_file_alone() -> None:
    written(line("c"), line("a", error="no"), line("x"), line("b"), line("a", "2"))
    with Journal.open(PATH) as journal:
        journal.settle(["a", "b", "unknown", "c", "a"])
        assert [x["id"] for x in map(json.loads, PATH.read_text().splitlines())] == list("abcx")
        settled = PATH.stat().st_ino, PATH.stat().st_mtime_ns
        journal.settle(["a", "b", "c", "x"])
        assert (PATH.stat().st_ino, PATH.stat().st_mtime_ns) == settled
        journal.append(line("d", "after"))
        assert [x["id"] for x in journal.lines()] == ["a", "b", "c", "x", "d"]
    with Journal.open(PATH) as journal:
        assert list(journal.attempts) == ["a", "b", "c", "x", "d"]
    assert sorted(p.name for p in Path().iterdir() if "results" in p.name) == [
        ".results.jsonl.lock",
        "results.jsonl",
    ]


def test_another_process_is_told_that_the_file_is_in_use() -> None:
    with Journal.open(PATH) as journal:
        journal.append(line("a"))
        program = (
            "import sys\nfrom pathlib import Path\nfrom rag.batch.journal import Journal\n"
            "from rag.errors import BatchError\n"
            "try:\n    Journal.open(Path(sys.argv[1]))\n"
            "except BatchError as error:\n    sys.exit(str(error))\n"
        )
        command = [sys.executable, "-c", program, str(PATH)]
        environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
        ran = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
        assert ran.stderr == (
            "Another process is at work on results.jsonl. Nothing was changed: wait until it is "
            "done, or choose another file.\n"
        )
        assert "Another process is at work" in refused()
        journal.append(line("b"))
    with Journal.open(PATH) as journal:
        assert list(journal.attempts) == ["a", "b"]


def test_a_whole_line_without_its_end_is_kept() -> None:
    content = written(line("a"), line("b"))
    PATH.write_bytes(content[:-1])
    with Journal.open(PATH) as journal:
        assert list(journal.attempts) == ["a", "b"]
        assert journal.repaired == "Line 2 of results.jsonl lacked its end; it was whole."
        journal.append(line("c"))
    assert PATH.read_bytes().startswith(content)
    assert len(PATH.read_text().splitlines()) == 3


def test_a_torn_line_is_cut_off_and_reported() -> None:
    first, second = written(line("a")), line("b", "x" * 1000)
    written(second)
    for torn in (PATH.read_bytes()[:-400], first + b'{"i', first + b"\0" * 64, first + b"{\0\0"):
        PATH.write_bytes(torn)
        with Journal.open(PATH) as journal:
            assert list(journal.attempts) == ["a"]
            assert journal.repaired is not None
            assert journal.repaired.startswith("Line 2 of results.jsonl was torn")
        assert PATH.read_bytes() == first


@pytest.mark.parametrize(
    ("content", "number"),
    [
        (WHOLE + b'not JSON\n{"id": "b"}\n', 2),
        (b'{"id": "a"}\n', 1),
        (WHOLE + b'["b"]\n', 2),
        (b'{"id": 3}\n', 1),
        (b'{"question": "Mine?"}\n', 1),
        (b'{"id": "a", "answer": "text"}\n', 1),
        (b"my own notes, without an end", 1),
        (WHOLE + b"my own notes", 2),
        (b'{"question": "Mine?"}', 1),
        (b"\xff\xfe\n", 1),
    ],
)
def test_what_no_run_wrote_is_refused_and_left_as_it_is(content: bytes, number: int) -> None:
    PATH.write_bytes(content)
    assert refused() == (
        f"results.jsonl, line {number}, is not a result that a run wrote. Nothing was changed: "
        "correct or remove that line, or choose another file."
    )
    assert PATH.read_bytes() == content


def test_blank_lines_are_passed_over_and_go_when_the_file_is_settled() -> None:
    PATH.write_bytes(b"\n" + WHOLE + b"\n")
    with Journal.open(PATH) as journal:
        journal.settle(["a"])
    assert PATH.read_bytes() == WHOLE


def test_a_run_that_wrote_nothing_leaves_no_empty_file() -> None:
    with Journal.open(PATH):
        assert PATH.exists()
    assert not PATH.exists()
    PATH.touch()
    with Journal.open(PATH):
        pass
    assert PATH.exists()


def test_where_it_cannot_be_made() -> None:
    assert refused(Path("nowhere/x.jsonl")) == (
        "nowhere, where x.jsonl is to be, is no directory. Make it."
    )
    assert not Path("nowhere").exists()
    Path("folder.jsonl").mkdir()
    assert refused(Path("folder.jsonl")).startswith("folder.jsonl cannot be read or written: Is a")


class FullDisk:
    """A file on a disk with room for `room` more bytes."""

    def __init__(self, file: Any, room: int) -> None:
        self._file = file
        self.room = room

    def write(self, content: Any) -> int:
        part = bytes(content)[: self.room]
        if not part:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.room -= len(part)
        return int(self._file.write(part))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def test_a_full_disk_leaves_no_torn_line_and_the_next_may_fit() -> None:
    with Journal.open(PATH) as journal:
        journal.append(line("a"))
        before = PATH.read_bytes()
        full = FullDisk(journal._file, room=20)
        journal._file = full  # type: ignore[assignment]
        with pytest.raises(BatchError, match="There is no space left on the disk of results"):
            journal.append(line("b"))
        assert PATH.read_bytes() == before
        assert list(journal.attempts) == ["a"]
        full.room = 10_000
        journal.append(line("b"))
        assert [x["id"] for x in journal.lines()] == ["a", "b"]


def test_a_limit_of_the_file_size_is_met_in_the_middle_of_a_line() -> None:
    resource = pytest.importorskip("resource", reason="limits need a Unix")
    before = written(line("a"))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Journal.open(PATH) as journal:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 30, limits[1]))
        try:
            with pytest.raises(BatchError, match="cannot be read or written: File too large"):
                journal.append(line("b"))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert PATH.read_bytes() == before


def test_a_settling_that_fails_leaves_everything_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    content = written(line("b"), line("a"))

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with Journal.open(PATH) as journal:
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(BatchError, match="no space left"):
            journal.settle(["a", "b"])
        assert PATH.read_bytes() == content
        assert not Path(".results.jsonl.new").exists()
        journal.append(line("c"))
        assert [x["id"] for x in journal.lines()] == ["b", "a", "c"]


def test_nothing_is_written_after_the_end() -> None:
    with Journal.open(PATH) as journal:
        journal.append(line("a"))
    with pytest.raises(BatchError, match=r"results\.jsonl is closed"):
        journal.append(line("b"))
    journal.close()
    assert PATH.read_text().count("\n") == 1


def test_threads_may_append_at_once() -> None:
    with Journal.open(PATH) as journal:

        def work(thread: int) -> None:
            for number in range(200):
                journal.append(line(f"{thread}-{number}", "x" * number))

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(list(journal.lines())) == 800
    with Journal.open(PATH) as journal:
        assert (len(journal.attempts), journal.repaired) == (800, None)
        assert journal.spent == Usage(8000, 1600)


lines = st.builds(
    lambda item, text, failed: line(item, text, error=text or "failed" if failed else None),
    st.sampled_from(["a", "b", "ü", "\ud800", ""]),
    st.text(st.characters(), max_size=30),
    st.booleans(),
)


def own(found: dict[str, Any]) -> dict[str, Any]:
    """A line without what earlier attempts cost."""
    return {name: value for name, value in found.items() if name != "spent_before"}


@given(appended=st.lists(lines, max_size=8), more=st.lists(lines, max_size=4), data=st.data())
def test_cut_anywhere_no_whole_line_is_lost_and_none_is_doubled(
    appended: list[dict[str, Any]], more: list[dict[str, Any]], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "r.jsonl"
        ends = [0]
        with Journal.open(path) as journal:
            for each in appended:
                journal.append(each)
                ends.append(path.stat().st_size)
        content = path.read_bytes() if appended else b""
        cut = data.draw(st.integers(0, len(content)))
        path.write_bytes(content[:cut])
        # A line is whole with or without the line feed behind it.
        whole = sum(end - 1 <= cut for end in ends[1:])
        expected = {each["id"]: each for each in appended[:whole]}

        with Journal.open(path) as journal:
            assert {x["id"]: own(x) for x in journal.lines()} == expected
            assert journal.attempts.keys() == expected.keys()
            assert (journal.repaired is None) == (cut in ends)
            for each in more:
                journal.append(each)
                expected[each["id"]] = each
            order = sorted(expected)
            journal.settle(order)
            assert [own(x) for x in journal.lines()] == [expected[i] for i in order]
        read = [own(json.loads(text)) for text in path.read_bytes().split(b"\n") if text]
        assert read == [expected[i] for i in order]
        answered = sum(each["error"] is None for each in [*appended[:whole], *more])
        with Journal.open(path) as journal:
            assert journal.spent == Usage(10 * answered, 2 * answered)


def test_a_file_that_is_removed_meanwhile_stops_the_run() -> None:
    with Journal.open(PATH) as journal:
        journal.append(line("a"))
        PATH.unlink()
        with pytest.raises(BatchError, match="was removed while the run was at work"):
            journal.append(line("b"))
