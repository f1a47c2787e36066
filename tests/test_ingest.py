from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from doubles.desk import GRAPH, IMAGE, PROTEIN, Desk, counts, record
from doubles.embedder import WordCountEmbedder
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag.errors import EndpointError
from rag.ingest import IngestSummary, ingest
from rag.matching import jaccard, merged
from rag.papers import derive_id
from rag.store import Store, fingerprint_of
from rag.store.catalog import Catalog
from rag.store.vectors import ChromaVectors
from rag.types import Paper, Source

SHARED = Path(__file__).parents[2] / "shared"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


# New and known


def test_adds_once_and_then_finds_everything_unchanged(desk: Desk) -> None:
    desk.write("a.jsonl", record(GRAPH, "g", title="Graphs", year=2026), record(IMAGE))
    first = desk.ingest("a.jsonl")
    assert first == IngestSummary(2, 0, 0, 0, (), 2, 2, 0)
    embedded = list(desk.embedder.embedded)
    assert f"Graphs. {GRAPH}" in embedded
    assert desk.ingest("a.jsonl") == IngestSummary(0, 0, 2, 0, (), 2, 2, 0)
    assert desk.embedder.embedded == embedded
    found = desk.papers()
    assert set(found) == {"g", derive_id(IMAGE)}
    assert found["g"].metadata == {"year": 2026}
    assert found["g"].sources == (Source("a.jsonl", 1),)
    assert found[derive_id(IMAGE)].title_derived


def test_derived_ids_survive_reordering_and_renaming(desk: Desk) -> None:
    desk.take("a.jsonl", record(GRAPH), record(IMAGE), record(PROTEIN))
    before = set(desk.papers())
    assert counts(desk.take("a.jsonl", record(PROTEIN), record(GRAPH), record(IMAGE)))[2] == 3
    assert desk.papers()[derive_id(GRAPH)].sources == (Source("a.jsonl", 2),)
    assert counts(desk.take("b.jsonl", record(PROTEIN), record(GRAPH)))[3] == 2
    assert set(desk.papers()) == before


def test_a_derived_id_that_is_taken_gets_longer(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def short(text: str, length: int = 7) -> str:
        return derive_id("the same", length) if length == 7 else derive_id(text, length)

    monkeypatch.setattr("rag.papers.derive_id", short)
    monkeypatch.setattr("rag.ingest.known.derive_id", short)
    monkeypatch.setattr("rag.ingest.resolve.derive_id", short)
    desk.take("a.jsonl", record(GRAPH), record(IMAGE))
    assert set(desk.papers()) == {derive_id("the same"), derive_id(IMAGE, 8)}
    assert counts(desk.ingest("a.jsonl")) == (0, 0, 2, 0, 0)


def test_many_records_are_committed_in_batches(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag.ingest.run.BATCH", 32)
    records = [record(f"Paper number {i} is about graph {i} and image {i}.") for i in range(100)]
    desk.write("a.jsonl", *records)
    seen: list[tuple[int, int | None]] = []
    summary = ingest(
        [desk.folder / "a.jsonl"], desk.store, desk.embedder, lambda *args: seen.append(args)
    )
    assert (summary.added, summary.papers) == (100, 100)
    # The file is one block, so all of its bytes were read before the first record.
    assert seen == [(32, 32), (64, 64), (96, 96), (100, 100)]


# The same abstract again


def test_an_abstract_in_two_files_is_one_paper_with_two_sources(desk: Desk) -> None:
    desk.write("a.jsonl", record(GRAPH))
    desk.write("b.jsonl", record(IMAGE), record(f"  {GRAPH}\n"))
    assert counts(desk.ingest("a.jsonl", "b.jsonl")) == (2, 0, 0, 1, 0)
    sources = (Source("a.jsonl", 1), Source("b.jsonl", 2))
    assert desk.papers()[derive_id(GRAPH)].sources == sources
    assert counts(desk.ingest("a.jsonl", "b.jsonl")) == (0, 0, 3, 0, 0)
    assert len(desk.embedder.embedded) == 2


def test_an_abstract_twice_in_one_file(desk: Desk) -> None:
    assert counts(desk.take("a.jsonl", record(GRAPH), record(GRAPH))) == (1, 0, 0, 1, 0)
    assert counts(desk.ingest("a.jsonl")) == (0, 0, 2, 0, 0)
    assert counts(desk.take("a.jsonl", record(GRAPH), record(IMAGE), record(GRAPH)))[:4] == (
        1,
        0,
        2,
        0,
    )
    sources = (Source("a.jsonl", 1), Source("a.jsonl", 3))
    assert desk.papers()[derive_id(GRAPH)].sources == sources


def test_a_record_with_an_id_joins_the_paper_with_a_derived_one(desk: Desk) -> None:
    desk.take("list.jsonl", record(GRAPH))
    desk.write("full.jsonl", record(GRAPH, "g1", title="Graphs at Last", year=2026))
    assert counts(desk.ingest("full.jsonl")) == (0, 0, 0, 1, 0)
    found = desk.papers()[derive_id(GRAPH)]
    assert (found.title, found.title_derived, found.metadata) == (
        "Graphs at Last",
        False,
        {"year": 2026},
    )
    assert desk.embedder.embedded[-1] == f"Graphs at Last. {GRAPH}"
    with Store.open(desk.store, None) as store:
        assert store.paper("g1") == found
    assert counts(desk.ingest("list.jsonl", "full.jsonl")) == (0, 0, 2, 0, 0)
    assert desk.papers()[derive_id(GRAPH)] == found


def test_two_lists_with_different_metadata_do_not_overwrite_each_other(desk: Desk) -> None:
    desk.write("a.jsonl", record(GRAPH, "g", title="One", year=2025))
    desk.write("b.jsonl", record(GRAPH, "h", title="Two", year=2026, venue="V"))
    desk.ingest("a.jsonl", "b.jsonl")
    assert desk.papers()["g"].metadata == {"year": 2025, "venue": "V"}
    assert desk.papers()["g"].title == "One"
    for names in (("a.jsonl",), ("b.jsonl",), ("b.jsonl", "a.jsonl")):
        assert counts(desk.ingest(*names)) == (0, 0, len(names), 0, 0)


# Changes


def test_changed_metadata_updates_without_embedding(desk: Desk) -> None:
    desk.take("a.jsonl", record(GRAPH, "g", title="Graphs", year=2025))
    assert counts(desk.take("a.jsonl", record(GRAPH, "g", title="Graphs", year=2026)))[1] == 1
    assert desk.papers()["g"].metadata == {"year": 2026}
    assert len(desk.embedder.embedded) == 1


def test_a_changed_title_is_embedded_again(desk: Desk) -> None:
    desk.take("a.jsonl", record(GRAPH, "g", title="Graphs"))
    assert counts(desk.take("a.jsonl", record(GRAPH, "g", title="Networks")))[1] == 1
    assert desk.embedder.embedded[1:] == [f"Networks. {GRAPH}"]


def test_a_changed_abstract_under_its_id_is_an_update(desk: Desk) -> None:
    desk.take("a.jsonl", record(GRAPH, "g", title="T"))
    assert counts(desk.take("a.jsonl", record(PROTEIN, "g", title="T"))) == (0, 1, 0, 0, 0)
    found = desk.papers()["g"]
    assert (found.text, found.original, found.sources) == (
        PROTEIN,
        PROTEIN,
        (Source("a.jsonl", 1),),
    )
    with Store.open(desk.store, fingerprint_of(desk.embedder)) as store:
        assert store.count() == (1, 1)
        query = desk.embedder.queries(["protein reward"])[0]
        assert store.nearest(query, 1) == [("g", pytest.approx(1.0))]
        assert store.lexical().rank("graph", 1) == []


@pytest.mark.parametrize(
    ("abstract", "title", "updated"),
    [
        (GRAPH.replace("every", "each"), "Another", True),
        (PROTEIN, "gRAPHS", True),
        (PROTEIN, "Another", False),
    ],
)
def test_one_id_in_two_files_is_an_update_or_a_conflict(
    desk: Desk, abstract: str, title: str, updated: bool
) -> None:
    desk.take("a.jsonl", record(GRAPH, "g", title="Graphs"))
    summary = desk.take("b.jsonl", record(abstract, "g", title=title))
    assert counts(summary) == (int(not updated), int(updated), 0, 0, 0)
    assert desk.papers()["g"].text == (abstract if updated else GRAPH)
    assert len(summary.conflicts) == int(not updated)


def test_text_that_two_papers_exchange_in_one_run(desk: Desk) -> None:
    desk.take("a.jsonl", record(GRAPH, "g"), record(IMAGE, "i"))
    summary = desk.take("a.jsonl", record(PROTEIN, "g"), record(GRAPH, "j"))
    assert counts(summary) == (1, 1, 0, 0, 0)
    assert {i: p.text for i, p in desk.papers().items()} == {"g": PROTEIN, "i": IMAGE, "j": GRAPH}


# What cannot be taken


def test_bad_records_and_paths_are_reported_and_the_rest_goes_on(desk: Desk) -> None:
    desk.write("a.jsonl", record(""), record(GRAPH), record("Withdrawn."))
    (desk.folder / "b.jsonl").write_bytes(b"\x00\x01\x02\xff" * 99)
    (desk.folder / "c.jsonl").write_text("")
    desk.write("d.jsonl", record(IMAGE))
    summary = desk.ingest("missing", "a.jsonl", "b.jsonl", "c.jsonl", "d.jsonl")
    assert (summary.added, summary.unreadable) == (2, 3)
    assert sorted((Path(r.source).name, r.position) for r in summary.rejected) == [
        ("a.jsonl", 1),
        ("a.jsonl", 3),
        ("b.jsonl", 0),
        ("c.jsonl", 0),
        ("missing", 0),
    ]


def test_nothing_readable_makes_no_store(desk: Desk) -> None:
    assert desk.ingest("missing").unreadable == 1
    assert not desk.store.exists()


def test_a_path_without_any_paper_counts_as_unreadable(desk: Desk) -> None:
    assert desk.take("a.jsonl", record("")).unreadable == 1


def test_files_of_the_same_name_are_told_apart(desk: Desk) -> None:
    for folder, abstract in (("x", GRAPH), ("y", IMAGE)):
        (desk.folder / folder).mkdir()
        desk.write(f"{folder}/list.jsonl", record(abstract))
    assert desk.ingest("x/list.jsonl", "y/list.jsonl", "x").added == 2
    files = {paper.sources[0].file for paper in desk.papers().values()}
    assert len(files) == 2


@pytest.mark.skipif(not (SHARED / "papers").is_dir(), reason="../shared/papers is not here")
def test_the_lists_of_papers(desk: Desk) -> None:
    lists = sorted((SHARED / "papers").glob("*.txt"))
    first = ingest(lists, desk.store, desk.embedder)
    assert counts(first) == (56, 0, 0, 1, 0)
    assert first.papers == 56
    assert counts(ingest(lists[::-1], desk.store, desk.embedder)) == (0, 0, 57, 0, 0)


# Invariants


abstracts = st.sampled_from(
    [GRAPH, IMAGE, PROTEIN, GRAPH.upper(), f"{IMAGE} It is fast.", "Short."]
)
records_ = st.builds(
    record, abstracts, st.sampled_from([None, "x", "y"]), title=st.sampled_from(["", "T", "U"])
)


@pytest.fixture
def without_chroma(monkeypatch: pytest.MonkeyPatch) -> None:
    # It only follows the catalog, and takes most of the time of a small ingest.
    monkeypatch.setattr(Store, "_finish_chroma", lambda self: None)


@settings(
    max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(files=st.lists(st.lists(records_, min_size=1, max_size=5), min_size=1, max_size=3))
def test_no_record_is_lost_and_a_second_run_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory,
    without_chroma: None,
    files: list[list[dict[str, object]]],
) -> None:
    desk = Desk(tmp_path_factory.mktemp("desk"))
    names = [f"{number}.jsonl" for number in range(len(files))]
    for name, records in zip(names, files, strict=True):
        desk.write(name, *records)
    first = desk.ingest(*names)
    assert sum(counts(first)) == sum(map(len, files))
    embedded, before = len(desk.embedder.embedded), desk.papers() if first.papers else {}
    second = desk.ingest(*names)
    assert sum(counts(second)) == sum(map(len, files))
    assert (second.added, second.updated, second.duplicates) == (0, 0, 0)
    assert second.rejected == first.rejected
    assert len(desk.embedder.embedded) == embedded
    assert (desk.papers() if second.papers else {}) == before


# Interruptions


def test_a_failing_model_keeps_what_was_committed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag.ingest.run.BATCH", 32)

    class Failing(WordCountEmbedder):
        def documents(self, texts: Sequence[str]) -> np.ndarray:  # type: ignore[type-arg]
            if self.embedded:
                raise EndpointError("the server is gone")
            return super().documents(texts)

    records = [record(f"Paper number {i} is about graph {i} and image {i}.") for i in range(50)]
    path = desk.write("a.jsonl", *records)
    failing = Failing()
    with pytest.raises(EndpointError):
        ingest([path], desk.store, failing)
    with Store.open(desk.store, fingerprint_of(failing)) as store:
        assert store.count()[0] == len(failing.embedded) == 32
        assert len(store.lexical()) == 32
    assert counts(desk.ingest("a.jsonl")) == (18, 0, 32, 0, 0)
    assert len(desk.embedder.embedded) == 18


# Kills this very process at the nth time that one of the steps of a write is reached.
KILLED = """
    import os, pathlib, signal, sys
    sys.path.insert(0, {tests!r})
    import rag.ingest
    import rag.ingest.run, rag.lexical.file, rag.store.catalog, rag.store.store, rag.store.vectors
    from doubles.embedder import WordCountEmbedder

    def dying(function, nth, after):
        calls = 0
        def wrapper(*args, **kwargs):
            nonlocal calls
            calls += 1
            if calls == nth and not after:
                os.kill(os.getpid(), signal.SIGKILL)
            result = function(*args, **kwargs)
            if calls == nth:
                os.kill(os.getpid(), signal.SIGKILL)
            return result
        return wrapper

    owner, name, nth, after = {step!r}
    owner = eval(owner)
    setattr(owner, name, dying(getattr(owner, name), nth, after))
    embedder = WordCountEmbedder()
    paths = [pathlib.Path(p) for p in {paths!r}]
    rag.ingest.ingest(paths, pathlib.Path({store!r}), embedder)
"""

STEPS = [
    ("rag.store.catalog.Catalog", "set_meta", 2, False),  # half a schema
    ("rag.store.store", "write_manifest", 1, False),  # a catalog, not yet marked as a store
    ("rag.store.catalog.Catalog", "_write_chunks", 40, False),  # in the middle of a batch
    ("rag.store.catalog.Catalog", "write", 2, True),  # papers committed, Chroma untouched
    ("rag.store.vectors.ChromaVectors", "_create", 1, True),  # an empty collection
    ("rag.store.vectors.ChromaVectors", "_mark", 2, False),  # vectors in Chroma, not flagged
    ("rag.store.store.LexicalIndex", "match", 1, True),  # words indexed, vectors not yet mapped
    ("rag.lexical.file.IndexFile", "set_state", 1, False),  # words in the midst of a transaction
]


def kill(desk: Desk, paths: Sequence[Path], step: tuple[str, str, int, bool]) -> None:
    script = textwrap.dedent(KILLED).format(
        tests=str(Path(__file__).parent),
        step=step,
        paths=[str(p) for p in paths],
        store=str(desk.store),
    )
    # Small batches, so that there is a moment between two of them.
    small = "rag.ingest.run.BATCH = 32\nrag.store.vectors._TAKEN_AT_ONCE = 30\n"
    script = script.replace("embedder = W", f"{small}embedder = W")
    run = subprocess.run(
        [sys.executable, "-c", script], check=False, capture_output=True, text=True
    )
    assert run.returncode == -signal.SIGKILL, run.stderr


def distinct(amount: int) -> list[dict[str, object]]:
    """Abstracts whose vectors all differ, so that each must find itself."""
    words = ("graph", "image", "language", "protein", "reward", "noise")
    found = []
    for numbers in itertools.islice(itertools.product(range(1, 4), repeat=6), amount):
        parts = [" ".join([w] * n) for w, n in zip(words, numbers, strict=True)]
        found.append(record(f"About {' and '.join(parts)} we say {len(found)} things."))
    return found


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
@pytest.mark.parametrize("step", STEPS, ids=lambda step: f"{step[1]}-{step[2]}")
def test_a_killed_ingest_loses_and_doubles_nothing(
    desk: Desk, step: tuple[str, str, int, bool]
) -> None:
    path = desk.write("a.jsonl", *distinct(70))
    kill(desk, [path], step)

    stored = 0
    if (desk.store / "papers.sqlite").exists() and (desk.store / "store.json").exists():
        # What a reader meets before anything is mended is whole papers, found both ways.
        with Store.open(desk.store, fingerprint_of(desk.embedder)) as store:
            stored = store.count()[0]
            assert len(store.lexical()) == stored
    summary = desk.ingest("a.jsonl")
    assert counts(summary) == (70 - stored, 0, stored, 0, 0)
    assert len(desk.embedder.embedded) == 70 - stored
    assert_whole(desk, 70)


def assert_whole(desk: Desk, papers: int) -> None:
    with Store.open(desk.store, fingerprint_of(desk.embedder)) as store:
        assert store.count() == (papers, papers)
        assert len(store.lexical()) == papers
        chroma = ChromaVectors(desk.store / "chroma", store.catalog)
        assert chroma._collection.count() == papers
        for paper in store.papers():
            (vector,) = store.chunks(paper.id)[1]
            assert store.nearest(vector, 1) == chroma.nearest(vector, 1)
            assert store.nearest(vector, 1)[0][0] == paper.id
        chroma.close()
        assert store.catalog.chroma_is_complete()
    assert len(list((desk.store / "bm25").glob("*.sqlite"))) == 1


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_a_killed_update_leaves_the_old_or_the_new_paper(desk: Desk) -> None:
    desk.take("a.jsonl", *({**r, "id": f"p{i}"} for i, r in enumerate(distinct(40))))
    changed = [{**r, "id": f"p{i}"} for i, r in enumerate(distinct(80)[40:])]
    path = desk.write("a.jsonl", *changed)
    kill(desk, [path], ("rag.store.catalog.Catalog", "write", 1, True))
    before = len(desk.embedder.embedded)
    assert counts(desk.ingest("a.jsonl")) == (0, 8, 32, 0, 0)
    assert len(desk.embedder.embedded) == before + 8
    assert_whole(desk, 40)


# The pure parts


def test_jaccard() -> None:
    assert jaccard("a b", "B c") == 1 / 3
    assert jaccard("", " ") == 0.0


def test_merged_never_changes_id_text_or_places() -> None:
    one = Paper("a", "L", "t", "o", (Source("f", 1),), True, {"year": 1})
    two = Paper("b", "T", "u", "v", (Source("g", 2),), False, {"year": 2, "venue": "V"})
    kept = Paper("a", "T", "t", "o", (Source("f", 1),), False, {"year": 1, "venue": "V"})
    assert merged(one, two, leads=False) == kept
    assert merged(two, one, leads=True).metadata == {"year": 1, "venue": "V"}
    assert merged(two, one, leads=True).title == "T"


def test_a_catalog_says_what_it_takes_over(tmp_path: Path) -> None:
    fingerprint = fingerprint_of(WordCountEmbedder())
    one = Catalog.open_or_create(tmp_path / "one.sqlite", fingerprint)
    assert one.state == Catalog.open(tmp_path / "one.sqlite").state
    one.touch()
    assert one.state.endswith("-1")
