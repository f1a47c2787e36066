from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from doubles.embedder import WORDS, WordCountEmbedder
from hypothesis import given, settings
from hypothesis import strategies as st

import rag.lexical.writer
import rag.store.exact
import rag.store.mapped
import rag.store.store
from rag.errors import StoreError
from rag.ingest import entries
from rag.lexical import tokens
from rag.store import Store, fingerprint_of
from rag.store.exact import ExactVectors, nearest_among
from rag.store.mapped import MappedVectors
from rag.types import Paper, Source

EMBEDDER = WordCountEmbedder()
FINGERPRINT = fingerprint_of(EMBEDDER)
QUERIES = EMBEDDER.queries(["graph image noise", "protein reward", "noise noise language"])


def paper(number: int) -> Paper:
    """Of up to two chunks; no two of the first 216 count the words alike."""
    counts = (number % 6, number // 6 % 6, number // 36 % 6, 1)
    text = " ".join(" ".join([w] * n) for w, n in zip(WORDS, counts, strict=False) if n)
    return Paper(f"p{number:03}", "", text, text, (Source("f", number),))


def fill(path: Path, papers: Sequence[Paper], removed: Sequence[str] = ()) -> Path:
    with Store.open(path, FINGERPRINT, write=True) as store:
        store.upsert(entries(papers, EMBEDDER))
        if removed:
            store.catalog.remove(removed)
    return path


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a large store: vectors in a file, read and gathered a few at a time."""
    monkeypatch.setattr(rag.store.store, "EXACT_LIMIT", 1)
    monkeypatch.setattr(rag.store.store, "FEW", 2)
    monkeypatch.setattr(rag.store.mapped, "_AT_ONCE", 7)
    monkeypatch.setattr(rag.store.exact, "_GATHERED", 5)
    monkeypatch.setattr(rag.store.exact, "_READ_AT_ONCE", 9)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return fill(tmp_path / "store", [paper(n) for n in range(60)])


def file_of(path: Path) -> Path:
    (file,) = (path / "vectors").glob("*.f32")
    return file


def test_the_file_follows_what_comes_changes_and_goes(path: Path) -> None:
    size = file_of(path).stat().st_size
    changed = Paper("p007", "", "noise noise", "", (Source("f", 7),))
    fill(path, [changed, *(paper(n) for n in range(60, 70))], ["p001", "p064"])
    added = (file_of(path).stat().st_size - size) // (4 * 7)
    with Store.open(path, None) as store:
        mapped = MappedVectors(path / "vectors", store.catalog)
        mapped.check()
        # The one that was stored and removed in the same run never came to the file.
        assert added == len(mapped.keys) - size // (4 * 7) == 10
        by_file = ExactVectors(store.catalog, mapped)
        in_memory = ExactVectors(store.catalog)
        for query in QUERIES:
            assert by_file.nearest(query, 99) == in_memory.nearest(query, 99)
            assert len(in_memory.nearest(query, 99)) == 68


@settings(deadline=None)  # the first call fills the store
@given(st.sets(st.integers(0, 70)), st.integers(0, 2), st.integers(1, 80))
def test_among_any_papers_it_is_the_nearest_of_all_without_the_others(
    tmp_path_factory: pytest.TempPathFactory, numbers: set[int], query: int, papers: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "shared-store"
    if not path.exists():
        fill(path, [paper(n) for n in range(60)])
    among = frozenset(f"p{n:03}" for n in numbers)
    with Store.open(path, FINGERPRINT) as store:
        vector = QUERIES[query]
        whole = ExactVectors(store.catalog).nearest(vector, 60)
        right = [(i, cosine) for i, cosine in whole if i in among][:papers]
        for found in (
            store.nearest(vector, papers, among),
            store.nearest(vector, papers, sorted(among)),
            nearest_among(store.catalog, among, vector, papers),
        ):
            # Sums in another order may fall on the other side of a rounding, and so of a tie.
            assert [c for _, c in found] == [pytest.approx(c, abs=1.1e-6) for _, c in right]
            assert {i for i, _ in found} <= among
            assert found == sorted(found, key=lambda row: (-row[1], row[0]))


def test_what_the_file_lacks_is_read_from_the_catalog(path: Path) -> None:
    with Store.open(path, None) as store:
        whole = ExactVectors(store.catalog).nearest(QUERIES[0], 60)
    file = file_of(path)
    everything = frozenset(i for i, _ in whole)
    keys = file.with_suffix(".keys")
    keys.write_bytes(keys.read_bytes()[:-83])  # ten keys, and a part of one
    for content in (file.read_bytes(), file.read_bytes()[: 30 * 4 * 7 + 5], b""):
        file.write_bytes(content)
        with Store.open(path, None) as store:
            assert store.nearest(QUERIES[0], 60, everything) == whole
    fill(path, [])
    with Store.open(path, None) as store:
        MappedVectors(path / "vectors", store.catalog).check()
        assert len(MappedVectors(path / "vectors", store.catalog).keys) == store.count()[1]


def test_a_wrong_vector_is_noticed_and_mended(path: Path) -> None:
    file = file_of(path)
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 64]))
    everything = frozenset(f"p{n:03}" for n in range(60))
    with Store.open(path, None) as store, pytest.raises(StoreError, match="rag index rebuild"):
        store.nearest(QUERIES[0], 1, everything)
    fill(path, [])
    assert file_of(path).read_bytes() == whole


def test_a_check_notices_any_wrong_vector(path: Path) -> None:
    file = file_of(path)
    whole = file.read_bytes()
    with Store.open(path, None) as store:
        for row in range(len(whole) // (4 * 7)):
            content = bytearray(whole)
            content[row * 4 * 7] ^= 1
            file.write_bytes(content)
            with pytest.raises(StoreError, match="damaged"):
                MappedVectors(path / "vectors", store.catalog).check()


def test_a_file_of_mostly_what_is_gone_is_made_anew(path: Path) -> None:
    fill(path, [], [f"p{n:03}" for n in range(45)])
    fill(path, [paper(100)])
    with Store.open(path, None) as store:
        assert len(MappedVectors(path / "vectors", store.catalog).keys) == store.count()[1]


def test_a_small_store_has_no_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rag.store.store, "EXACT_LIMIT", 1_000)
    fill(path, [])
    assert not (path / "vectors").exists()


def test_only_what_changed_is_indexed_by_words(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    monkeypatch.setattr(
        rag.lexical.writer, "tokens", lambda text: read.append(text.strip()) or tokens(text)
    )
    monkeypatch.setattr(rag.store.words, "_texts", None)  # that all papers are read would raise
    changed = Paper("p007", "", "noise noise", "", (Source("f", 7),))
    fill(path, [changed, Paper("new", "", "zebra", "", (Source("f", 8),))], ["p001"])
    assert sorted(read) == ["noise noise", "zebra"]
    with Store.open(path, None) as store:
        assert len(store.lexical()) == 60
        assert store.lexical().rank("zebra", 1)[0][0] == "new"


def test_words_of_an_interrupted_run_are_indexed_by_the_next(path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), Store.open(path, FINGERPRINT, write=True) as store:
        store.upsert(entries([Paper("new", "", "zebra", "", (Source("f", 8),))], EMBEDDER))
        raise KeyboardInterrupt
    with Store.open(path, None) as store:
        assert store.lexical().rank("zebra", 1)[0][0] == "new"
    fill(path, [])
    with Store.open(path, None) as store:
        assert store.lexical().rank("zebra", 1)[0][0] == "new"
        assert store.lexical().state == store.catalog.state
