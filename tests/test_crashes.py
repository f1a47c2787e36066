from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
from doubles.desk import Desk, record
from doubles.embedder import WordCountEmbedder
from test_check import counted

from eval.bench.crashes import Crashes, crashes
from rag.check import check
from rag.errors import StoreError
from rag.ingest import ingest
from rag.store import Store

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(ROOT / "tests")]))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def many(amount: int) -> list[dict[str, object]]:
    return [record(f"{counted(n)} It is the paper numbered {n}.", f"p{n}") for n in range(amount)]


# Small sizes, so that a few hundred papers are as many steps as some thousands are.
@pytest.mark.parametrize("sizes", [(16, 50, 40), (64, 10_000, 10_000)], ids=["process", "within"])
def test_killed_at_random_moments(desk: Desk, sizes: tuple[int, int, int]) -> None:
    path = desk.write("a.jsonl", *many(300))
    found = crashes(path, desk.folder, kills=6, seed=20_260_601, sizes=sizes)
    assert found == Crashes(6, found.runs, 0, 0, 0, 0)


WRITER = """
    import pathlib, sys, time
    import rag.ingest, rag.ingest.run
    from doubles.embedder import WordCountEmbedder
    from rag.errors import StoreError

    class Slow(WordCountEmbedder):
        def documents(self, texts):
            time.sleep(0.05)
            return super().documents(texts)

    rag.ingest.run.BATCH = 16
    said = lambda done, total: print(done, flush=True)
    try:
        rag.ingest.ingest([pathlib.Path(sys.argv[1])], pathlib.Path(sys.argv[2]), Slow(), said)
    except StoreError as error:
        sys.exit(f"refused: {error}")
"""


def writer(desk: Desk, path: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", textwrap.dedent(WRITER), path, desk.store]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=desk.folder
    )


def test_of_two_writers_exactly_one_proceeds(desk: Desk) -> None:
    path = desk.write("a.jsonl", *many(100))
    both = [writer(desk, path) for _ in range(2)]
    said = [one.communicate()[1] for one in both]
    assert sorted(one.returncode for one in both) == [0, 1]
    assert [text.startswith("refused: The index at") for text in sorted(said)] == [False, True]
    assert (check(desk.store, full=True).ok, check(desk.store).papers) == (True, 100)


def test_readers_during_a_write_find_all_that_was_acknowledged(desk: Desk) -> None:
    embedder = WordCountEmbedder()
    records = many(400)
    process = writer(desk, desk.write("a.jsonl", *records))
    acknowledged, wrong, looks = [0], [], [0] * 8

    def look(reader: int) -> None:
        while process.poll() is None:
            known = acknowledged[0]
            if not known:
                time.sleep(0.01)
                continue
            number = known * (reader + 1) // 8 - 1
            with Store.open(desk.store, None) as store:
                paper = store.catalog.by_id(f"p{number}")
                if paper is None or paper.text != records[number]["abstract"]:
                    wrong.append(("missing", number))
                    continue
                (vector,) = store.chunks(paper.id)[1]
                if store.nearest(vector, 1)[0][1] < 0.99999:
                    wrong.append(("vector", number))
                ranked = [i for i, _ in store.lexical().rank(f"numbered {number}", 3)]
                if paper.id not in ranked:
                    wrong.append(("words", number))
            looks[reader] += 1

    readers = [threading.Thread(target=look, args=(reader,)) for reader in range(8)]
    for thread in readers:
        thread.start()
    assert process.stdout is not None
    for line in process.stdout:
        acknowledged[0] = int(line)
    for thread in readers:
        thread.join()
    assert (process.wait(), acknowledged[0], wrong) == (0, 400, [])
    assert min(looks) > 0
    assert check(desk.store, full=True).ok
    assert embedder.embedded == []


LIMITED = """
    import pathlib, resource, sys
    import rag.ingest, rag.ingest.run
    from doubles.embedder import WordCountEmbedder
    from rag.errors import RagError

    rag.ingest.run.BATCH = 16
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), int(sys.argv[3])))
    try:
        path, store = map(pathlib.Path, sys.argv[1:3])
        rag.ingest.ingest([path], store, WordCountEmbedder())
    except RagError as error:
        print(error)
        sys.exit(1)
"""


@pytest.mark.parametrize("limit", [40_000, 100_000, 200_000, 400_000])
def test_a_disk_that_takes_no_more(desk: Desk, limit: int) -> None:
    """No file may grow beyond a limit, which strikes each part of the store in turn."""
    path = desk.write("a.jsonl", *many(400))
    command = [sys.executable, "-c", textwrap.dedent(LIMITED), path, desk.store, str(limit)]
    ran = subprocess.run(command, check=False, capture_output=True, text=True)
    assert ran.returncode == 1, ran.stderr
    assert "Traceback" not in ran.stderr
    assert ran.stdout.count("\n") == 1
    stored = 0
    if (desk.store / "store.json").exists():
        with Store.open(desk.store, None) as store:
            stored = store.count()[0]
    summary = ingest([path], desk.store, desk.embedder)
    assert (summary.added, summary.unchanged, summary.papers) == (400 - stored, stored, 400)
    assert len(desk.embedder.embedded) == 400 - stored
    assert check(desk.store, full=True).ok


def test_too_little_room_is_said_before_anything_begins(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = desk.write("a.jsonl", *many(3))
    monkeypatch.setattr("rag.store.directory.LEAST_FREE_BYTES", 1 << 60)
    with pytest.raises(StoreError, match="There is no space left on the disk of"):
        ingest([path], desk.store, desk.embedder)
    assert desk.embedder.embedded == []
