from __future__ import annotations

import math
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rag.lexical.file
import rag.lexical.writer
from rag.errors import StoreError
from rag.lexical import DamagedIndexError, LexicalIndex, searchable, tokens

PAPERS = {
    "a": searchable("H-LRU", "A cache that evicts by recency."),
    "b": searchable("Graphs", "Graph networks for proteins; recency plays no part."),
    "c": searchable("校准", "概率校准的方法。"),
    "d": searchable("Graphs", "Graph networks for proteins; recency plays no part."),
}


def build(papers: Mapping[str, str] = PAPERS) -> LexicalIndex:
    return LexicalIndex.build(list(papers), list(papers.values()))


def save(path: Path, papers: Mapping[str, str] = PAPERS, state: str = "s") -> Path:
    with closing(LexicalIndex.open(path, write=True)) as index:
        index.match(papers.items(), state)
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return save(tmp_path / "words.sqlite")


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (rag.lexical.file, rag.lexical.writer):
        monkeypatch.setattr(module, "BLOCK", 2)


# Ranking


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("h-lru", ["a"]),
        ("HLRU", ["a"]),
        ("LRU", ["a"]),
        ("protein graphs", ["b", "d"]),
        ("校准", ["c"]),
        ("of the", []),
        ("zebra", []),
        ("", []),
        ("\udcff \x00", []),
    ],
)
def test_rank(query: str, expected: list[str]) -> None:
    assert [paper_id for paper_id, _ in build().rank(query, 10)] == expected


def test_equal_papers_tie_by_id_and_k_cuts() -> None:
    ranked = build(dict(reversed(PAPERS.items()))).rank("protein graphs", 10)
    assert ranked[0][1] == ranked[1][1] > 0
    assert [paper_id for paper_id, _ in ranked] == ["b", "d"]
    assert build().rank("protein graphs", 1) == ranked[:1]


def test_scores_are_lucene_bm25() -> None:
    index = build({"a": "zebra", "b": "lion lion"})
    # Two documents of 1 and 2 words (mean 1.5); "lion" is in one of them, twice.
    idf = 0.6931472  # ln(1 + (2 - 1 + 0.5) / (1 + 0.5))
    expected = idf * 2 / (2 + 1.2 * (1 - 0.75 + 0.75 * 2 / 1.5))
    assert index.rank("lion", 5) == [("b", pytest.approx(expected, rel=1e-6))]
    assert index.rank("lion lion", 5) == [("b", pytest.approx(2 * expected, rel=1e-6))]


def test_only_papers_among_those_given_count() -> None:
    index = build()
    whole = dict(index.rank("recency graphs", 10))
    some = frozenset({"a", "d", "unknown"})
    for among in (some, some, {"a", "d"}, ["d", "a"]):
        assert dict(index.rank("recency graphs", 10, among)) == {i: whole[i] for i in ("a", "d")}
    assert index.rank("recency", 10, frozenset()) == []


@pytest.mark.parametrize("papers", [{}, {"a": "of the"}])
def test_an_index_without_words_finds_nothing(tmp_path: Path, papers: dict[str, str]) -> None:
    with closing(LexicalIndex.open(save(tmp_path / "w", papers))) as index:
        assert (len(index), index.rank("of the graph", 5)) == (len(papers), [])


# Changes


WORDS = ("graph", "image", "noise", "lion")
TEXTS = st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join)
IDS = st.sampled_from("pqrst")
STEPS = st.lists(st.tuples(st.dictionaries(IDS, TEXTS, max_size=4), st.sets(IDS, max_size=3)))


def reckoned(papers: Mapping[str, str], query: str) -> list[tuple[str, float]]:
    """BM25 from its definition, paper by paper."""
    documents = {i: Counter(tokens(text)) for i, text in papers.items()}
    mean = sum(d.total() for d in documents.values()) / max(1, len(documents)) or 1.0
    found = []
    for paper_id, document in documents.items():
        score = 0.0
        for word in tokens(query):
            df = sum(word in d for d in documents.values())
            norm = 1.2 * (1 - 0.75 + 0.75 * document.total() / mean)
            idf = math.log(1 + (len(documents) - df + 0.5) / (df + 0.5))
            score += idf * document[word] / (document[word] + norm)
        if score > 0:
            found.append((paper_id, score))
    return sorted(found, key=lambda row: (-round(row[1], 9), row[0]))


@pytest.mark.usefixtures("small_blocks")
@given(STEPS, st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join), st.data())
def test_any_history_ranks_as_an_index_made_at_once(
    steps: list[tuple[dict[str, str], set[str]]], query: str, data: st.DataObject
) -> None:
    papers: dict[str, str] = {}
    index = build({})
    for number, (put, removed) in enumerate(steps):
        papers = {i: t for i, t in {**papers, **put}.items() if i not in removed}
        if data.draw(st.booleans()):
            index.match(papers.items(), str(number))
        else:
            index.change(put.items(), removed, str(number))
        index.rank(query, 3)  # what is read in between must not stay
    once = build(dict(sorted(papers.items())))
    assert len(index) == len(papers)
    assert index.rank(query, 9) == once.rank(query, 9)
    assert [(i, pytest.approx(s)) for i, s in index.rank(query, 9)] == reckoned(papers, query)
    index.check()


@pytest.mark.usefixtures("small_blocks")
def test_what_is_known_is_not_indexed_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    monkeypatch.setattr(rag.lexical.writer, "tokens", lambda text: read.append(text) or ["x"])
    with closing(LexicalIndex.open(path, write=True)) as index:
        index.match({**PAPERS, "b": "new"}.items(), "later")
        index.change({"a": PAPERS["a"], "e": "newer"}.items(), ["unknown"], "last")
        assert index.state == "last"
    assert read == ["new", "newer"]


def test_an_index_of_mostly_what_is_gone_is_made_anew(path: Path) -> None:
    with closing(LexicalIndex.open(path, write=True)) as index:
        index.change((), ["b", "c"], "t")
        assert not index.wasteful
        index.change((), ["d"], "u")
        assert index.wasteful
        index.match([("a", PAPERS["a"])], "v")
        assert (index.wasteful, len(index)) == (False, 1)
    with closing(sqlite3.connect(path)) as raw:
        assert raw.execute("SELECT count(*) FROM postings").fetchone() == (
            len(set(tokens(PAPERS["a"]))),
        )


def test_a_failed_change_leaves_the_old_state(path: Path) -> None:
    def failing() -> Iterator[tuple[str, str]]:
        yield "e", "zebra"
        raise KeyboardInterrupt

    with closing(LexicalIndex.open(path, write=True)) as index:
        with pytest.raises(KeyboardInterrupt):
            index.match(failing(), "t")
        assert (index.state, len(index), index.rank("zebra", 1)) == ("s", 4, [])
        index.check()


def test_a_copy_changes_alone(path: Path) -> None:
    with closing(LexicalIndex.open(path)) as index:
        copy = index.copy()
        copy.change([("e", "zebra")], ["a"], "t")
        assert [i for i, _ in copy.rank("zebra lru", 5)] == ["e"]
        assert [i for i, _ in index.rank("zebra lru", 5)] == ["a"]


# Other processes


def test_a_reader_sees_each_change_whole(path: Path) -> None:
    with (
        closing(LexicalIndex.open(path)) as reader,
        closing(LexicalIndex.open(path, write=True)) as writer,
    ):
        before = reader.rank("zebra graphs", 9)

        def papers() -> Iterator[tuple[str, str]]:
            yield "e", "zebra"
            assert reader.rank("zebra graphs", 9) == before
            assert reader.state == "s"

        writer.change(papers(), ["b"], "t")
        assert [i for i, _ in reader.rank("zebra graphs", 9)] == ["d", "e"]
        assert (reader.state, len(reader)) == ("t", 4)


def test_a_read_only_directory(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    with closing(LexicalIndex.open(path)) as index:
        assert index.rank("lru", 1)[0][0] == "a"
    assert [file.name for file in path.parent.iterdir()] == ["words.sqlite"]


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
@pytest.mark.parametrize("function", ["put_block", "add_postings", "set_state", "clear"])
@pytest.mark.parametrize("after", [False, True])
def test_a_killed_writer_leaves_the_old_state(path: Path, function: str, after: bool) -> None:
    script = f"""
        import os, signal, sys
        from pathlib import Path
        from rag.lexical.file import IndexFile
        from rag.lexical import LexicalIndex

        whole = IndexFile.{function}
        def dying(*args):
            if {after}:
                whole(*args)
            os.kill(os.getpid(), signal.SIGKILL)
        IndexFile.{function} = dying
        index = LexicalIndex.open(Path(sys.argv[1]), write=True)
        LexicalIndex.wasteful = True
        index.match([("e", "zebra")], "t")
    """
    command = [sys.executable, "-c", textwrap.dedent(script), str(path)]
    ran = subprocess.run(command, check=False, capture_output=True, text=True)
    assert ran.returncode == -signal.SIGKILL, ran.stderr
    with closing(LexicalIndex.open(path)) as index:
        index.check()
        assert (index.state, len(index)) == ("s", 4)
        assert index.rank("protein graphs", 9) == build().rank("protein graphs", 9)
    save(path, {"e": "zebra"}, "t")
    with closing(LexicalIndex.open(path)) as index:
        assert [i for i, _ in index.rank("zebra graphs", 9)] == ["e"]


# Damage


def test_a_check_notices_every_wrong_byte_that_matters(path: Path) -> None:
    content = path.read_bytes()
    queries = ("protein graphs", "recency", "校准")
    right = [build().rank(query, 10) for query in queries]
    harmless = noticed = 0
    for place in range(0, len(content), 11):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        try:
            with closing(LexicalIndex.open(path)) as index:
                ranked = [index.rank(query, 10) for query in queries]
                index.check()
            assert ranked == right
            harmless += 1
        except StoreError:
            noticed += 1
    assert harmless > noticed > 20


def test_a_truncated_file_is_noticed(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-4096])
    with pytest.raises(DamagedIndexError, match=r"words.sqlite is damaged.*rag index rebuild"):
        LexicalIndex.open(path).check()


def test_lost_words_are_noticed_by_a_check(path: Path) -> None:
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("DELETE FROM postings WHERE term = 'lru'")
    with (
        closing(LexicalIndex.open(path)) as index,
        pytest.raises(DamagedIndexError, match="words are missing"),
    ):
        index.check()


def test_another_versions_file_is_refused(path: Path) -> None:
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("PRAGMA user_version = 9")
    with pytest.raises(DamagedIndexError, match=r"format 9, this version reads 1.*index rebuild"):
        LexicalIndex.open(path)


def test_no_index(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        LexicalIndex.open(tmp_path / "none")
    assert not list(tmp_path.iterdir())
