from __future__ import annotations

import itertools
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from doubles.embedder import WORDS, WordCountEmbedder

import rag.lexical.file
import rag.store.directory
import rag.store.store
from rag.errors import ConfigError, StoreError, UsageError
from rag.ingest import entries
from rag.rebuild import rebuild
from rag.store import Entry, Place, Store, fingerprint_of
from rag.store.catalog import Catalog
from rag.store.database import Database
from rag.store.schema import FileRead
from rag.store.vectors import ChromaVectors
from rag.types import Paper, Source

EMBEDDER = WordCountEmbedder()
FINGERPRINT = fingerprint_of(EMBEDDER)


def paper(paper_id: str, text: str, **other: object) -> Paper:
    source = Source("list.txt", 1)
    return Paper(paper_id, f"Title {paper_id}", text, text, (source,), **other)  # type: ignore[arg-type]


PAPERS = [
    paper("aaa", "A graph of a graph."),
    paper("bbb", "An image with noise. The image is a protein."),
    paper("ccc", "Language and reward.", metadata={"year": 2026, "authors": ["Ä. Ö"]}),
    paper("ddd", "A graph of a graph."),
]


def fill(path: Path, papers: Sequence[Paper] = PAPERS) -> Path:
    with Store.open(path, FINGERPRINT, write=True) as store:
        store.upsert(entries(papers, EMBEDDER))
    return path


def search(path: Path, text: str, papers: int = 3) -> list[tuple[str, float]]:
    with Store.open(path, FINGERPRINT) as store:
        return store.nearest(EMBEDDER.queries([text])[0], papers)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return fill(tmp_path / "store")


# Reading


def test_gives_back_what_was_stored(path: Path) -> None:
    with Store.open(path, None) as store:
        assert list(store.papers()) == PAPERS
        assert store.count() == (4, 4)
        assert store.fingerprint == FINGERPRINT
        chunks, vectors = store.chunks("bbb")
        assert [(c.start, c.end) for c in chunks] == [(0, len(PAPERS[1].text))]
        text = f"{PAPERS[1].title}. {PAPERS[1].text}"
        assert np.array_equal(vectors, EMBEDDER.documents([text]))


def test_finds_the_nearest_papers_with_ties_by_id(path: Path) -> None:
    # "graph": (1, ..., 1)/sqrt 2 against (2, ..., 1)/sqrt 5 is 3/sqrt 10.
    assert search(path, "graph", 2) == [
        ("aaa", pytest.approx(0.948683)),
        ("ddd", pytest.approx(0.948683)),
    ]
    assert search(path, "language")[0][0] == "ccc"


def test_finds_by_words(path: Path) -> None:
    with Store.open(path, FINGERPRINT) as store:
        assert [i for i, _ in store.lexical().rank("graphs", 5)] == ["aaa", "ddd"]
        assert store.lexical() is store.lexical()


def test_a_search_of_a_small_store_does_not_import_chromadb(path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; import numpy as np; from rag.store import Store\n"
        "with Store.open(Path(sys.argv[1]), None) as store:\n"
        "    store.nearest(np.eye(7, dtype=np.float32)[0], 3); store.lexical().rank('graph', 3)\n"
        "print([m for m in ('chromadb', 'torch', 'onnxruntime', 'openai') if m in sys.modules])"
    )
    command = [sys.executable, "-c", script, str(path)]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "[]\n"


@pytest.mark.parametrize("asked", ["ccc", "CCC", "alias"])
def test_a_paper_is_found_by_id_case_or_alias(path: Path, asked: str) -> None:
    with Store.open(path, FINGERPRINT, write=True) as store:
        store.upsert([], [Place("ccc", Source("other.jsonl", 4), "alias")])
        found = store.paper(asked)
    assert found.id == "ccc"
    assert found.sources == (Source("list.txt", 1), Source("other.jsonl", 4))


def test_an_unknown_id_names_the_closest(path: Path) -> None:
    with Store.open(path, None) as store:
        with pytest.raises(UsageError, match=r"no paper 'aab' in the store. Closest: aaa, bbb"):
            store.paper("aab")
        with pytest.raises(UsageError, match="Run `rag papers`"):
            store.paper("\x1b[31m" + "z" * 5000)


def test_vectors_that_cannot_be_compared_are_refused(path: Path) -> None:
    with Store.open(path, FINGERPRINT) as store:
        with pytest.raises(StoreError, match=r"7 dimensions.*gave 3.*rag index rebuild"):
            store.nearest(np.ones(3, dtype=np.float32), 3)
        with pytest.raises(UsageError, match="not a number"):
            store.nearest(np.full(7, np.nan, dtype=np.float32), 3)


def test_an_empty_store_finds_nothing(tmp_path: Path) -> None:
    path = fill(tmp_path / "store", [])
    assert search(path, "graph") == []
    with Store.open(path, None) as store:
        assert store.count() == (0, 0)
        assert store.lexical().rank("graph", 3) == []


# Exact and approximate search


def many() -> list[Paper]:
    """240 papers of two chunks, no two of which count the words alike."""
    counts = [c for c in itertools.product(range(3), repeat=6) if 3 <= sum(c) <= 8][:480]
    sentences = [
        " ".join(w for w, n in zip(WORDS, c, strict=True) for _ in range(n)).capitalize() + "."
        for c in counts
    ]
    texts = [
        " ".join([a, "Then.", "So.", b])
        for a, b in zip(sentences[::2], sentences[1::2], strict=True)
    ]
    return [Paper(f"p{i:03}", "", t, t, (Source("f", i),)) for i, t in enumerate(texts)]


def test_chroma_and_the_exact_scan_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = fill(tmp_path / "store", many())
    queries = EMBEDDER.queries(["graph image noise", "protein reward", "noise noise language"])
    with Store.open(path, FINGERPRINT) as store:
        assert store.count() == (240, 480)
        exact = [store.nearest(query, 20) for query in queries]
        assert store._exact is not None
    monkeypatch.setattr(rag.store.store, "EXACT_LIMIT", 100)
    with Store.open(path, FINGERPRINT) as store:
        assert [store.nearest(query, 20) for query in queries] == exact
        assert store._chroma is not None


def test_a_reader_through_chroma_sees_what_is_stored_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rag.store.store, "EXACT_LIMIT", 1)
    path = fill(tmp_path / "store", many())
    query = EMBEDDER.queries(["reward " * 9])[0]
    with Store.open(path, FINGERPRINT) as reader:
        assert reader.nearest(query, 1)[0][0] != "new"
        fill(path, [Paper("new", "", "Reward " * 9, "", (Source("g", 1),))])
        assert reader.nearest(query, 1) == [("new", 1.0)]


def test_a_changed_paper_leaves_no_old_vector_behind(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rag.store.store, "EXACT_LIMIT", 1)
    fill(path, [paper("ccc", "Only protein protein.")])
    assert search(path, "language")[0][0] != "ccc"
    assert search(path, "protein")[0] == ("ccc", pytest.approx(3 / np.sqrt(10), abs=1e-6))
    with Store.open(path, FINGERPRINT, write=True) as store:
        chroma = ChromaVectors(path / "chroma", store.catalog)
        assert chroma._collection.count() == 4
        chroma.close()


# Places


def test_a_file_read_again_moves_places_and_keeps_the_first_first(path: Path) -> None:
    def read_again(store: Store, name: str, run: int, **positions: int) -> None:
        there = [Place(i, Source(name, p), run=run) for i, p in positions.items()]
        store.upsert([], there)
        store.catalog.finish_file(FileRead(name, None, run=run))

    with Store.open(path, FINGERPRINT, write=True) as store:
        store.upsert([], [Place("aaa", Source("other.txt", 9))])
        read_again(store, "list.txt", 1, aaa=3, bbb=1, ccc=1)
        # ddd has left its only file and keeps its last place; so would aaa in a file of its own.
        assert store.paper("aaa").sources == (Source("list.txt", 3), Source("other.txt", 9))
        assert store.paper("ddd").sources == (Source("list.txt", 1),)
        assert store.catalog.left("list.txt") == ["ddd"]
        read_again(store, "other.txt", 2)
        assert store.paper("aaa").sources == (Source("list.txt", 3),)


def test_a_failed_batch_stores_nothing(path: Path) -> None:
    (good,) = entries([paper("eee", "Noise.")], EMBEDDER)
    bad = Entry(paper("fff", "Reward."), "hash", good.chunks, np.zeros((2, 7), dtype=np.float32))
    with Store.open(path, FINGERPRINT, write=True) as store:
        with pytest.raises(ValueError, match="zip"):
            store.upsert([good, bad])
        assert store.count() == (4, 4)


# What is missing, damaged, in use or full


def test_no_store_names_the_command(tmp_path: Path) -> None:
    for call in (lambda p: Store.open(p, None), lambda p: rebuild(p, EMBEDDER)):
        with pytest.raises(StoreError, match=r"no store at .*nowhere yet. Run `rag ingest PATH"):
            call(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()


def test_an_address_is_not_taken_for_a_directory() -> None:
    with pytest.raises(ConfigError, match="the address of a server, not a directory"):
        Store.open(Path("http://localhost:8000"), None)


def test_another_model_is_refused_until_a_rebuild(path: Path) -> None:
    other = WordCountEmbedder("other-model")
    for write in (False, True):
        with pytest.raises(StoreError, match=r"word-counts.*other-model.*rag index rebuild"):
            Store.open(path, fingerprint_of(other), write=write)
    assert rebuild(path, other).embedded == 4
    with pytest.raises(StoreError, match="rag index rebuild"):
        Store.open(path, FINGERPRINT)
    with Store.open(path, fingerprint_of(other)) as store:
        assert list(store.papers()) == PAPERS


def test_a_second_writer_is_told_who_writes(path: Path) -> None:
    script = (
        "import sys; from pathlib import Path\nfrom rag.store import Fingerprint, Store\n"
        "Store.open(Path(sys.argv[1]), Fingerprint(*sys.argv[2:]), write=True)"
    )
    fields = (FINGERPRINT.embedder, FINGERPRINT.chunking, FINGERPRINT.cleaning)
    command = [sys.executable, "-c", script, str(path), *fields]
    with Store.open(path, FINGERPRINT, write=True) as store:
        run = subprocess.run(command, check=False, capture_output=True, text=True)
        assert (
            f"StoreError: The index at {path} is being written by PID {os.getpid()}" in run.stderr
        )
        with pytest.raises(StoreError, match=f"written by PID {os.getpid()}"):
            rebuild(path, EMBEDDER)
        store.upsert(entries([paper("eee", "Noise.")], EMBEDDER))
    with Store.open(path, FINGERPRINT, write=True) as store:
        assert store.count() == (5, 5)


def test_a_reader_reads_on_while_another_writes(path: Path) -> None:
    with (
        Store.open(path, FINGERPRINT) as reader,
        Store.open(path, FINGERPRINT, write=True) as store,
    ):
        assert reader.count() == (4, 4)
        store.upsert(entries([paper("eee", "Noise noise noise.")], EMBEDDER))
        assert reader.count() == (5, 5)
        assert reader.nearest(EMBEDDER.queries(["noise"])[0], 1)[0][0] == "eee"
        assert [i for i, _ in reader.lexical().rank("noise", 1)] == ["eee"]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda p: (p / "store.json").unlink(), r"store.json is missing.*rag index rebuild"),
        (lambda p: (p / "store.json").write_text("{"), r"damaged.*rag index rebuild"),
        (lambda p: (p / "store.json").write_text('{"format": 9}'), "has format 9.*reads 1"),
        (lambda p: (p / "papers.sqlite").unlink(), "papers.sqlite.*Restore it from a backup"),
        (lambda p: (p / "papers.sqlite").write_text("x" * 9000), "Restore papers.sqlite from"),
        (lambda p: (p / "papers.sqlite").write_text(""), "Restore papers.sqlite from a backup"),
    ],
)
def test_damage_is_named_with_what_mends_it(path: Path, damage: object, message: str) -> None:
    damage(path)  # type: ignore[operator]
    with pytest.raises(StoreError, match=message):
        Store.open(path, FINGERPRINT)


@pytest.mark.parametrize("part", ["store.json", "chroma", "bm25"])
def test_a_rebuild_mends_everything_but_the_papers(
    path: Path, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rag.store.store, "EXACT_LIMIT", 1)
    for file in [p for p in (path / part).rglob("*") if p.is_file()] or [path / part]:
        file.write_bytes(b"damaged")
    with pytest.raises(StoreError, match="rag index rebuild"), Store.open(path, None) as store:
        store.nearest(EMBEDDER.queries(["graph"])[0], 1)
        store.lexical()
    before = len(EMBEDDER.embedded)
    summary = rebuild(path, EMBEDDER)
    assert (summary.papers, summary.chunks, summary.embedded) == (4, 4, 0)
    assert len(EMBEDDER.embedded) == before
    assert search(path, "graph", 1)[0][0] == "aaa"
    with Store.open(path, None) as store:
        assert store.lexical().rank("graph", 1)[0][0] == "aaa"


def test_lost_vectors_are_noticed_and_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rag.store.store, "EXACT_LIMIT", 1)
    path = fill(tmp_path / "store", many())
    shutil.rmtree(path / "chroma")
    with pytest.raises(StoreError, match=r"damaged or incomplete.*rag index rebuild"):
        search(path, "graph")
    fill(path, [])
    query = "graph image noise"
    assert len(search(path, query)) == 3


def test_papers_without_a_manifest_are_completed_by_the_next_writer(path: Path) -> None:
    (path / "store.json").unlink()
    fill(path, [])
    assert json.loads((path / "store.json").read_text())["format"] == 1
    assert len(search(path, "graph")) == 3


def test_a_full_disk_loses_nothing(path: Path) -> None:
    message = r"no space left.*continues where it stopped"
    with (
        pytest.raises(StoreError, match=message),
        Store.open(path, FINGERPRINT, write=True) as store,
    ):
        pages = store.catalog.rows("PRAGMA page_count")[0][0]
        store.catalog.run(f"PRAGMA max_page_count = {pages}")
        store.upsert(entries([paper("eee", "noise " * 60_000)], EMBEDDER))
    with Store.open(path, FINGERPRINT) as store:
        assert list(store.papers()) == PAPERS


def test_nothing_is_begun_without_space(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = SimpleNamespace(free=1024)
    monkeypatch.setattr(rag.store.directory.shutil, "disk_usage", lambda _: usage)
    with pytest.raises(StoreError, match="no space left"):
        Store.open(path, FINGERPRINT, write=True)
    assert len(search(path, "graph")) == 3


def test_a_path_that_cannot_be_a_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match=r"cannot be written.*--store DIR"):
        Store.open(tmp_path / "file" / "store", FINGERPRINT, write=True)


def test_a_read_only_directory_can_be_searched(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert search(path, "graph", 1)[0][0] == "aaa"
    assert not list(path.glob("*-shm"))


def test_a_quota_is_not_taken_for_damage(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource", reason="limits of file size need a Unix")
    with closing(Database(tmp_path / "t.sqlite", "rwc")) as database:
        database.run("CREATE TABLE t(x)")
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
        try:
            with pytest.raises(StoreError) as caught:
                database.run("INSERT INTO t VALUES (?)", (b"x" * 200_000,))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert str(caught.value) == (
        f"{tmp_path / 't.sqlite'} could not be read or written (disk I/O error). That is no sign "
        "of damage to what is stored: check the disk, its free space and your quota, then run it "
        "again."
    )


# Rebuilding


def test_a_failed_rebuild_keeps_the_old_store_and_goes_on_later(path: Path) -> None:
    class Failing(WordCountEmbedder):
        def documents(self, texts: Sequence[str]) -> np.ndarray:  # type: ignore[type-arg]
            raise StoreError("the endpoint is down")

    with pytest.raises(StoreError, match="endpoint is down"):
        rebuild(path, Failing("new-model"))
    assert search(path, "graph", 1)[0][0] == "aaa"
    new = WordCountEmbedder("new-model")
    assert rebuild(path, new).embedded == 4
    assert not list(path.glob("rebuild*"))


def test_a_rebuild_begins_again_where_its_own_file_is_damaged(path: Path) -> None:
    (path / "rebuild.sqlite").write_bytes(b"junk" * 3000)
    assert rebuild(path, EMBEDDER).papers == 4
    assert not list(path.glob("rebuild*"))


def test_a_rebuild_replaces_what_is_no_part_of_a_store(path: Path) -> None:
    (path / "store.json").write_bytes(b"\xff\xfe\x80")
    for part in ("chroma", "bm25"):
        shutil.rmtree(path / part)
        (path / part).write_bytes(b"x")
    assert rebuild(path, EMBEDDER).papers == 4
    assert (path / "chroma").is_dir()
    with Store.open(path, FINGERPRINT) as store:
        assert store.lexical().rank("reward", 1)[0][0] == "ccc"


def test_one_wrong_byte_in_the_word_index_is_noticed_and_mended_by_a_writer(path: Path) -> None:
    file = path / "bm25" / "words.sqlite"
    whole = file.read_bytes()
    place = whole.index(b'["aaa"')
    file.write_bytes(whole[: place + 2] + b"x" + whole[place + 3 :])
    with Store.open(path, None) as store, pytest.raises(StoreError, match="rag index rebuild"):
        store.lexical()
    fill(path, [])
    with Store.open(path, None) as store:
        assert [i for i, _ in store.lexical().rank("graphs", 5)] == ["aaa", "ddd"]


def test_a_word_index_that_may_not_be_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object, **__: object) -> None:
        error = sqlite3.OperationalError("unable to open database file")
        error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
        raise error

    with Store.open(path, None) as store:
        monkeypatch.setattr(rag.lexical.file.sqlite3, "connect", denied)
        with pytest.raises(StoreError, match="Check its permissions"):
            store.lexical()


def test_a_path_that_is_too_long_or_no_text(tmp_path: Path) -> None:
    long = tmp_path / ("a" * 300)
    with pytest.raises(StoreError, match=r"a cannot be read: File name too long\. Check the path"):
        Store.open(long, None)
    with pytest.raises(ConfigError, match=r"^The store's path 'st\\xe9' cannot be read as text"):
        Store.open(Path("st\udce9"), None)


def test_an_interrupted_rebuild_embeds_nothing_twice(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = WordCountEmbedder("new-model")

    def stop(self: Catalog, other: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Catalog, "replace_with", stop)
        with pytest.raises(KeyboardInterrupt):
            rebuild(path, new)
    assert len(new.embedded) == 4
    assert rebuild(path, new).embedded == 0
    assert len(new.embedded) == 4


def test_a_rebuild_killed_after_its_swap_is_finished_by_the_next_writer(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rag.store.store, "EXACT_LIMIT", 1)
    new = WordCountEmbedder("new-model")

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("rag.rebuild.write_manifest", stop)
        with pytest.raises(KeyboardInterrupt):
            rebuild(path, new)
    for write in (False, True):
        with Store.open(path, fingerprint_of(new), write=write) as store:
            assert list(store.papers()) == PAPERS
            assert store.nearest(EMBEDDER.queries(["graph"])[0], 1)[0][0] == "aaa"
            assert store.lexical().rank("graph", 1)[0][0] == "aaa"
    assert "new-model" in (path / "store.json").read_text()
    with Store.open(path, fingerprint_of(new)) as store:
        assert store.catalog.chroma_is_complete()


def test_a_rebuild_keeps_places_and_aliases(path: Path) -> None:
    with Store.open(path, FINGERPRINT, write=True) as store:
        store.upsert([], [Place("ccc", Source("other.jsonl", 4), "alias")])
        before = list(store.papers())
    rebuild(path, WordCountEmbedder("new-model"))
    with Store.open(path, None) as store:
        assert list(store.papers()) == before
        assert store.paper("alias").id == "ccc"


def test_sqlite_is_new_enough() -> None:
    assert sqlite3.sqlite_version_info >= (3, 35)  # RETURNING
