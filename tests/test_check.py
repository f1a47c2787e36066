from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from doubles.commands import Rag
from doubles.desk import GRAPH, IMAGE, PROTEIN, Desk, record

import rag.check
from rag.check import Checkup, check
from rag.rebuild import rebuild
from rag.store import Store

PARTS = {"papers", "words", "Chroma", "search"}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path)
    desk.take("a.jsonl", record(GRAPH, "g"), record(IMAGE, "i"), record(PROTEIN, "p"))
    return desk


def bad(found: Checkup) -> set[str]:
    return {finding.part for finding in found.findings if not finding.ok}


@pytest.mark.parametrize("full", [False, True])
def test_a_whole_store(desk: Desk, full: bool) -> None:
    seen: list[tuple[int, int | None]] = []
    found = check(desk.store, full=full, on_progress=lambda *given: seen.append(given))
    assert (found.papers, found.chunks, found.asked, found.recall) == (3, 3, 3, None)
    assert {finding.part for finding in found.findings} == PARTS
    assert (bad(found), found.ok) == (set(), True)
    assert seen == [(3, 3)]


def lose_words(store: Path) -> None:
    shutil.rmtree(store / "bm25")


def lose_chroma(store: Path) -> None:
    shutil.rmtree(store / "chroma")


def lose_graph(store: Path) -> None:
    for folder in (store / "chroma").iterdir():
        if folder.is_dir():
            shutil.rmtree(folder)


def damage_words(store: Path) -> None:
    with closing(sqlite3.connect(store / "bm25" / "words.sqlite")) as database, database:
        database.execute("UPDATE postings SET counts = x'05' WHERE term = 'graph'")


def lose_a_word(store: Path) -> None:
    with closing(sqlite3.connect(store / "bm25" / "words.sqlite")) as database, database:
        database.execute("DELETE FROM postings WHERE term = 'graph'")


def forget_a_vector(store: Path) -> None:
    with closing(sqlite3.connect(store / "papers.sqlite")) as database, database:
        database.execute("UPDATE chunks SET in_chroma = 0 WHERE pk = 2")


@pytest.mark.parametrize(
    ("harm", "part"),
    [
        (lose_words, "words"),
        (damage_words, "words"),
        (lose_a_word, "words"),
        (lose_chroma, "Chroma"),
        (forget_a_vector, "Chroma"),
    ],
)
def test_what_is_lost_is_found_and_mended_by_one_command(
    desk: Desk, harm: Callable[[Path], None], part: str
) -> None:
    harm(desk.store)
    found = check(desk.store)
    assert bad(found) == {part}
    assert [f.mend for f in found.findings if not f.ok] == [rag.check.REBUILD]
    rebuild(desk.store, desk.embedder)
    assert check(desk.store, full=True).ok
    assert len(desk.embedder.embedded) == 3


def test_the_approximate_search_is_asked_where_it_is_used(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("rag.check", "rag.store.store"):
        monkeypatch.setattr(f"{module}.EXACT_LIMIT", 2)
    assert bad(check(desk.store)) == {"mapped vectors"}  # nothing was mapped below the limit
    rebuild(desk.store, desk.embedder)
    found = check(desk.store, full=True)
    assert (bad(found), found.recall) == (set(), 1.0)


def test_a_lost_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("rag.check", "rag.store.store"):
        monkeypatch.setattr(f"{module}.EXACT_LIMIT", 1_000)
    desk = Desk(tmp_path)
    # Chroma writes its graph by the thousand vectors.
    desk.take("a.jsonl", *(record(counted(number), f"p{number}") for number in range(1_200)))
    found = check(desk.store)
    assert (bad(found), found.asked, found.recall) == (set(), 200, 1.0)
    lose_graph(desk.store)
    assert "search" in bad(check(desk.store))
    rebuild(desk.store, desk.embedder)
    assert check(desk.store).ok


def counted(number: int) -> str:
    """A text of its own, with a vector of its own."""
    words = ("graph", "image", "language", "protein", "reward")
    times = (1 + number // 5**place % 5 for place in range(5))
    parts = (" ".join([word] * count) for word, count in zip(words, times, strict=True))
    return f"Number {number} is about {' and '.join(parts)}."


def test_a_paper_without_a_vector(desk: Desk) -> None:
    with closing(sqlite3.connect(desk.store / "papers.sqlite")) as database, database:
        database.execute("DELETE FROM chunks WHERE pk = 2")
    found = check(desk.store)
    assert bad(found) >= {"papers"}
    assert "1 papers have no passages" in found.findings[0].detail


def test_checking_changes_nothing(desk: Desk) -> None:
    with Store.open(desk.store, None) as store:
        before = store.catalog.state
    lose_words(desk.store)
    check(desk.store, full=True)
    assert not (desk.store / "bm25").exists()
    with Store.open(desk.store, None) as store:
        assert store.catalog.state == before


def test_the_command(filled: Rag) -> None:
    whole = filled("index", "check")
    assert (whole.code, whole.err) == (0, "")
    assert whole.out.splitlines()[0] == "ok  papers: 3 in 3 passages, each with its vector"
    found = filled("index", "check", "--full", "--json").json
    assert (found["ok"], found["papers"], found["recall"]) == (True, 3, None)
    shutil.rmtree("vectorstore/bm25")
    broken = filled("index", "check")
    assert broken.code == 1
    assert "NO  words: the word index is missing\n    Run `rag index rebuild`." in broken.out
    assert filled("index", "rebuild").code == 0
    assert filled("index", "check").code == 0
