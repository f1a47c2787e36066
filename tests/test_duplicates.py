from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from doubles.desk import GRAPH, IMAGE, PROTEIN, Desk, counts, record

import rag.ingest.run
from rag.ingest import Conflict
from rag.keys import Identifiers, identifiers, title_key
from rag.matching import is_near_identical, titles_agree
from rag.readers import read
from rag.store import Store, fingerprint_of
from rag.store.migration import is_current
from rag.types import Paper, Source

LONG = (
    "Sparse attention makes long documents affordable, yet it loses what two distant sentences "
    "say together. We route tokens through a learned hierarchy and keep both."
)
NEAR = LONG.replace("affordable", "cheap")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


# What identifies a paper


@pytest.mark.parametrize(
    ("paper_id", "metadata", "found"),
    [
        ("a", {"doi": "10.1/X"}, Identifiers()),
        ("a", {"DOI": "https://doi.org/10.1145/3.X"}, Identifiers("10.1145/3.x")),
        ("a", {"arXiv_ID": "arXiv:2301.00001v3"}, Identifiers(None, "2301.00001")),
        ("2301.00001v2", {}, Identifiers(None, "2301.00001")),
        ("10.1145/3.x", {}, Identifiers("10.1145/3.x")),
        ("2313.00001", {}, Identifiers()),
        ("a", {"arxiv": "cs.CL/0501001"}, Identifiers(None, "cs.cl/0501001")),
    ],
)
def test_identifiers(paper_id: str, metadata: dict[str, str], found: Identifiers) -> None:
    assert identifiers(paper_id, metadata) == found


def titled(title: str, text: str = LONG, derived: bool = False) -> Paper:
    return Paper("x", title, text, text, (), derived)


@pytest.mark.parametrize(
    ("one", "other", "agree"),
    [
        ("A Net for X.", "a net for x", True),
        ("Routing Tokens through Hierarchies", "Routing Token through Hierarchies", True),
        ("Overview of the Track 2024", "Overview of the Track 2025", False),
        ("Foundations of Sparse Attention I", "Foundations of Sparse Attention II", False),
        ("Sparse attention", "Dense retrieval", False),
    ],
)
def test_titles(one: str, other: str, agree: bool) -> None:
    assert titles_agree(titled(one), titled(other)) is agree
    assert (title_key(one) == title_key(other)) is (one.rstrip(".").casefold() == other.casefold())


def test_near_identical_needs_title_and_abstract() -> None:
    assert is_near_identical(titled("T one"), titled("T One", NEAR))
    assert not is_near_identical(titled("T one"), titled("Another", NEAR))
    assert not is_near_identical(titled("T one"), titled("T One", GRAPH))
    assert is_near_identical(titled("T one"), titled("label", NEAR, derived=True))
    figures = "It gains 3 points.", "It gains 4 points."
    one, other = (titled("", f"{LONG} {f}", derived=True) for f in figures)
    assert not is_near_identical(one, other)


# One paper from two sources


@pytest.mark.parametrize(
    "shared",
    [
        {"doi": "10.1145/1.2"},
        {"arxiv": "2301.00001"},
        {"title": "Routing Sparse Attention"},
        {},
    ],
    ids=["doi", "arxiv", "title", "abstract alone"],
)
def test_two_sources_of_one_paper_are_merged(desk: Desk, shared: dict[str, str]) -> None:
    desk.write("a.jsonl", record(LONG, "a", **shared, year=2025))
    desk.write("b.jsonl", record(IMAGE), record(NEAR, "b", **shared, venue="V"))
    first = desk.ingest("a.jsonl", "b.jsonl")
    assert (counts(first), first.conflicts) == ((2, 0, 0, 1, 0), ())
    paper = desk.papers()["a"]
    assert (paper.text, paper.sources) == (LONG, (Source("a.jsonl", 1), Source("b.jsonl", 2)))
    assert (paper.metadata["year"], paper.metadata["venue"]) == (2025, "V")
    with Store.open(desk.store, None) as store:
        assert store.paper("b").id == "a"
    for names in (("b.jsonl", "a.jsonl"), ("a.jsonl",), ("b.jsonl",)):
        for name in names:  # changed bytes, so that they are read again
            (desk.folder / name).write_text((desk.folder / name).read_text() + "\n")
        again = desk.ingest(*names)
        assert (again.added, again.updated, again.duplicates) == (0, 0, 0)
        assert desk.papers()["a"] == paper


def test_doi_and_arxiv_id_meet_in_a_third_source(desk: Desk) -> None:
    desk.take("a.jsonl", record(LONG, "a", arxiv="2301.00001"))
    desk.take("b.jsonl", record(NEAR, "b", doi="10.48550/arXiv.2301.00001"))
    desk.take("c.jsonl", record(f"{NEAR} And more.", "c", doi="10.48550/arxiv.2301.00001"))
    assert len(desk.papers()["a"].sources) == 3


def test_boilerplate_does_not_make_papers_alike(desk: Desk) -> None:
    start = "In this paper we present a new method for the well known task of"
    records = [
        record(f"{start} {' '.join(f'{w}{n}' for w in 'abcdefghijklmno')} and so on", title=f"T{n}")
        for n in range(60)
    ]
    assert desk.take("a.jsonl", *records).added == 60


# Versions


def test_a_correction_in_a_list_without_ids_keeps_the_paper_and_its_id(desk: Desk) -> None:
    desk.take("a.jsonl", record(LONG), record(IMAGE))
    (paper_id,) = {i for i, p in desk.papers().items() if p.text == LONG}
    assert counts(desk.take("a.jsonl", record(NEAR), record(IMAGE))) == (0, 1, 1, 0, 0)
    assert desk.papers()[paper_id].text == NEAR


def test_an_older_version_elsewhere_does_not_come_back(desk: Desk) -> None:
    desk.take("a.jsonl", record(GRAPH, "g", title="T"))
    desk.take("b.jsonl", record(PROTEIN, "g", title="T"))
    (desk.folder / "a.jsonl").write_text((desk.folder / "a.jsonl").read_text() + "\n")
    assert counts(desk.ingest("a.jsonl")) == (0, 0, 1, 0, 0)
    assert desk.papers()["g"].text == PROTEIN
    assert counts(desk.take("a.jsonl", record(IMAGE, "g", title="T"))) == (0, 1, 0, 0, 0)
    assert desk.papers()["g"].text == IMAGE


def test_a_changed_abstract_under_the_same_doi_is_an_update(desk: Desk) -> None:
    desk.take("a.jsonl", record(LONG, doi="10.1145/1.2", title="Routing"))
    (before,) = desk.papers()
    summary = desk.take("a.jsonl", record(f"{PROTEIN} {GRAPH}", doi="10.1145/1.2", title="Routing"))
    assert counts(summary) == (0, 1, 0, 0, 0)
    assert desk.papers()[before].text == f"{PROTEIN} {GRAPH}"


# Conflicts


def assert_stable(desk: Desk, name: str, records: int, conflicts: tuple[Conflict, ...]) -> None:
    """Read again, skipped or not, nothing changes and the same is reported."""
    papers = desk.papers()
    for addition in ("", "\n"):
        path = desk.folder / name
        path.write_text(path.read_text() + addition)
        again = desk.ingest(name)
        assert (counts(again), again.conflicts) == ((0, 0, records, 0, 0), conflicts)
        assert desk.papers() == papers


def test_one_id_for_two_papers_keeps_both(desk: Desk) -> None:
    desk.write("a.jsonl", record(GRAPH, "g", title="T"), record(IMAGE, "g", title="T"))
    first = desk.ingest("a.jsonl")
    assert counts(first) == (2, 0, 0, 0, 0)
    assert first.conflicts == (
        Conflict("ID g", "g~2", Source("a.jsonl", 2), 2, "g", Source("a.jsonl", 1)),
    )
    assert {i: p.text for i, p in desk.papers().items()} == {"g": GRAPH, "g~2": IMAGE}
    assert_stable(desk, "a.jsonl", 2, first.conflicts)
    # The second one is updated in its own right.
    assert counts(desk.take("a.jsonl", record(GRAPH, "g"), record(PROTEIN, "g")))[:2] == (0, 1)
    assert desk.papers()["g~2"].text == PROTEIN


def test_an_id_that_is_listed_for_another_paper(desk: Desk) -> None:
    desk.write("a.jsonl", record(GRAPH, "g"), record(GRAPH, "h"), record(IMAGE, "h"))
    first = desk.ingest("a.jsonl")
    assert counts(first) == (2, 0, 0, 1, 0)
    assert [(c.paper_id, c.other_id) for c in first.conflicts] == [("h~2", "g")]
    assert_stable(desk, "a.jsonl", 3, first.conflicts)
    with Store.open(desk.store, None) as store:
        assert store.paper("h").text == GRAPH


def test_one_id_in_two_files_for_two_papers(desk: Desk) -> None:
    desk.take("a.jsonl", record(GRAPH, "g", title="Graphs"))
    (conflict,) = desk.take("b.jsonl", record(PROTEIN, "g", title="Proteins")).conflicts
    assert conflict.reason == (
        "ID g is already that of a.jsonl, record 1, a different paper (g). Both are kept, this "
        "one as g~2; if they are one paper, remove one with `rag remove ID`."
    )
    assert_stable(desk, "b.jsonl", 1, (conflict,))
    assert_stable(desk, "a.jsonl", 1, ())


def test_one_doi_for_two_papers_keeps_both(desk: Desk) -> None:
    one, other = ("10.1145/1.2", "A Front"), ("10.1145/1.2", "Another Matter")
    desk.take("a.jsonl", record(GRAPH, "g", doi=one[0], title=one[1]))
    first = desk.take("b.jsonl", record(PROTEIN, "p", doi=other[0], title=other[1]))
    assert counts(first) == (1, 0, 0, 0, 0)
    assert [(c.what, c.paper_id, c.other_id) for c in first.conflicts] == [
        ("DOI 10.1145/1.2", "p", "g")
    ]
    assert set(desk.papers()) == {"g", "p"}
    assert_stable(desk, "b.jsonl", 1, first.conflicts)
    assert_stable(desk, "a.jsonl", 1, ())


# Files


def test_a_file_by_its_own_path_and_by_its_folder_is_one_source(desk: Desk) -> None:
    (desk.folder / "in").mkdir()
    desk.write("in/a.jsonl", record(GRAPH, "g"))
    (desk.folder / "link.jsonl").symlink_to(desk.folder / "in" / "a.jsonl")
    assert desk.ingest("in/a.jsonl").added == 1
    for names in (("in",), ("in/a.jsonl", "in"), ("link.jsonl",), ("in/../in/a.jsonl",)):
        assert counts(desk.ingest(*names)) == (0, 0, 1, 0, 0)
    assert desk.papers()["g"].sources == (Source("a.jsonl", 1),)


def test_two_files_of_one_name_in_two_runs_are_two_sources(desk: Desk) -> None:
    for folder, abstract in (("x", GRAPH), ("y", IMAGE)):
        (desk.folder / folder).mkdir()
        desk.write(f"{folder}/a.jsonl", record(abstract, folder))
        desk.ingest(f"{folder}/a.jsonl")
    found = desk.papers()
    assert found["x"].sources == (Source("a.jsonl", 1),)
    long = (desk.folder / "y" / "a.jsonl").resolve().as_posix().lstrip("/")
    assert found["y"].sources == (Source(long, 1),)


def test_a_file_that_was_moved_is_still_the_same(desk: Desk) -> None:
    (desk.folder / "x").mkdir()
    desk.write("x/a.jsonl", record(GRAPH, "g"))
    desk.ingest("x/a.jsonl")
    (desk.folder / "x").rename(desk.folder / "y")
    assert counts(desk.ingest("y/a.jsonl")) == (0, 0, 1, 0, 0)
    assert desk.papers()["g"].sources == (Source("a.jsonl", 1),)


def test_an_unchanged_file_is_not_read_again(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[str] = []

    def counted(path: Path, name: str, *others: Any) -> object:
        reads.append(name)
        return read(path, name, *others)

    monkeypatch.setattr(rag.ingest.run, "read", counted)
    desk.write("a.jsonl", record(GRAPH, "g"), record("Short."), record(IMAGE, "g"))
    first = desk.ingest("a.jsonl")
    again = desk.ingest("a.jsonl")
    assert (counts(again), reads) == ((0, 0, 2, 0, 1), ["a.jsonl"])
    assert (again.rejected, again.conflicts) == (first.rejected, first.conflicts)
    # Not where a paper is missing, nor where it is read in another way.
    with Store.open(desk.store, fingerprint_of(desk.embedder), write=True) as store:
        store.catalog.remove(["g"])
    assert counts(desk.ingest("a.jsonl"))[0] == 1
    assert set(desk.papers()) == {"g", "g~2"}
    desk.ingest("a.jsonl", columns={"abstract": "abstract"})
    monkeypatch.setattr("rag.ingest.files.READING_VERSION", 99)
    desk.ingest("a.jsonl")
    assert len(reads) == 4


# A store of the first format


OLD_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE papers (
    pk INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, title TEXT NOT NULL,
    title_derived INTEGER NOT NULL, text TEXT NOT NULL, original TEXT NOT NULL,
    metadata TEXT NOT NULL, content_hash TEXT NOT NULL);
CREATE INDEX papers_by_content ON papers (content_hash);
CREATE TABLE sources (
    pk INTEGER PRIMARY KEY, paper_pk INTEGER NOT NULL REFERENCES papers ON DELETE CASCADE,
    file TEXT NOT NULL, position INTEGER NOT NULL, record_id TEXT,
    UNIQUE (paper_pk, file, position));
CREATE INDEX sources_by_file ON sources (file);
CREATE INDEX sources_by_record_id ON sources (record_id);
"""


def make_old(path: Path) -> None:
    """Take from a store what the first format did not have, as its own schema had it."""
    with closing(sqlite3.connect(path / "papers.sqlite")) as new:
        new.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        new.execute("PRAGMA journal_mode = DELETE")
        papers = new.execute(
            "SELECT pk, id, title, title_derived, text, original, metadata, content_hash "
            "FROM papers"
        ).fetchall()
        places = new.execute("SELECT pk, paper_pk, file, position, record_id FROM sources")
        places = places.fetchall()
        new.executescript(
            "PRAGMA foreign_keys = OFF; DROP TABLE files; DROP TABLE papers; DROP TABLE sources; "
            "DELETE FROM meta WHERE key = 'run';"
        )
        new.executescript(OLD_SCHEMA.split("\n", 2)[2])
        new.executemany("INSERT INTO papers VALUES (?, ?, ?, ?, ?, ?, ?, ?)", papers)
        new.executemany("INSERT INTO sources VALUES (?, ?, ?, ?, ?)", places)
        new.commit()


def test_a_store_of_the_first_format_is_read_as_it_is_and_then_goes_on(desk: Desk) -> None:
    desk.write("a.jsonl", record(LONG, "a", doi="10.1145/1.2"), record(GRAPH), record(GRAPH, "g"))
    desk.ingest("a.jsonl")
    papers = desk.papers()
    make_old(desk.store)
    file = desk.store / "papers.sqlite"
    content = file.read_bytes()
    assert desk.papers() == papers
    with Store.open(desk.store, None) as store:
        assert not is_current(store.catalog)
        assert store.paper("g").text == GRAPH
        assert [place.record_id for place in store.catalog.places(store.paper("g").id)] == [
            None,
            "g",
        ]
    assert file.read_bytes() == content
    assert counts(desk.ingest("a.jsonl")) == (0, 0, 3, 0, 0)
    assert desk.papers() == papers
    assert counts(desk.take("b.jsonl", record(NEAR, doi="10.1145/1.2"))) == (0, 0, 0, 1, 0)
    assert len(desk.embedder.embedded) == 2


def test_an_old_and_a_new_store_have_the_same_columns(desk: Desk, tmp_path: Path) -> None:
    desk.take("a.jsonl", record(GRAPH))
    shutil.copytree(desk.store, tmp_path / "old")
    make_old(tmp_path / "old")
    old = Desk(tmp_path / "x")
    old.store = tmp_path / "old"
    with Store.open(old.store, fingerprint_of(old.embedder), write=True) as migrated:
        for table in ("papers", "sources", "files"):
            sql = f"SELECT name FROM pragma_table_info('{table}')"
            with Store.open(desk.store, None) as fresh:
                assert migrated.catalog.rows(sql) == fresh.catalog.rows(sql)
    assert json.loads((old.store / "store.json").read_text())["format"] == 1
