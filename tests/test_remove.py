from __future__ import annotations

from pathlib import Path

import pytest
from doubles.commands import GAMMA, RECORDS, Rag, failed, write
from doubles.desk import GRAPH, IMAGE, PROTEIN, Desk, counts, record

from rag.errors import UsageError
from rag.removal import Removal, plan, remove
from rag.store import Store
from rag.types import Source


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


# By ID and by source


def test_removing_papers_leaves_nothing_of_them(desk: Desk) -> None:
    desk.take("a.jsonl", record(GRAPH, "g"), record(IMAGE, "i"), record(PROTEIN, "p"))
    found = plan(desk.store, ["G", "p", "g"])
    assert [paper.id for paper in found.papers] == ["g", "p"]
    assert remove(desk.store, found) == 2
    assert set(desk.papers()) == {"i"}
    with Store.open(desk.store, None) as store:
        assert store.lexical().rank("graph protein", 3) == []
        assert [i for i, _ in store.nearest(desk.embedder.queries(["graph"])[0], 3)] == ["i"]
    assert len(desk.embedder.embedded) == 3


def test_removing_a_source_keeps_what_another_has(desk: Desk) -> None:
    desk.write("a.jsonl", record(GRAPH, "g"), record(IMAGE, "i"))
    desk.write("b.jsonl", record(IMAGE, "i"))
    desk.ingest("a.jsonl", "b.jsonl")
    by_path = plan(desk.store, [], str(desk.folder / "a.jsonl"))
    assert by_path == plan(desk.store, [], "a.jsonl")
    assert ([p.id for p in by_path.papers], by_path.source, by_path.kept) == (["g"], "a.jsonl", 1)
    assert remove(desk.store, by_path) == 1
    assert desk.papers()["i"].sources == (Source("b.jsonl", 1),)
    # What was removed comes back when its file is read again.
    assert counts(desk.ingest("a.jsonl"))[0] == 1


@pytest.mark.parametrize(
    ("ids", "source", "message"),
    [
        (["g", "x"], None, "There is no paper 'x'"),
        ([], "b.jsonl", r"No paper comes from a source 'b.jsonl'. Closest: a.jsonl"),
        ([], None, "Name papers by ID, or one source"),
        (["g"], "a.jsonl", "Name papers by ID, or one source"),
    ],
)
def test_what_is_not_there_removes_nothing(
    desk: Desk, ids: list[str], source: str | None, message: str
) -> None:
    desk.take("a.jsonl", record(GRAPH, "g"))
    with pytest.raises(UsageError, match=message):
        plan(desk.store, ids, source)
    assert set(desk.papers()) == {"g"}


def test_a_removal_that_finds_nothing_left(desk: Desk) -> None:
    desk.take("a.jsonl", record(GRAPH, "g"))
    found = plan(desk.store, ["g"])
    assert (remove(desk.store, found), remove(desk.store, found)) == (1, 0)
    assert remove(desk.store, Removal((), "a.jsonl")) == 0


# --sync


def test_sync_removes_what_has_left_its_file(desk: Desk) -> None:
    desk.write("a.jsonl", record(GRAPH, "g"), record(IMAGE, "i"), record(PROTEIN, "p"))
    desk.write("b.jsonl", record(IMAGE, "i"))
    desk.ingest("a.jsonl", "b.jsonl")
    summary = desk.take("a.jsonl", record(GRAPH, "g"))
    assert (summary.removed, summary.papers) == (0, 3)
    # Also where the file is not read again.
    summary = desk.ingest("a.jsonl", sync=True)
    assert (summary.removed, summary.unchanged, set(desk.papers())) == (1, 1, {"g", "i"})
    assert desk.papers()["i"].sources == (Source("b.jsonl", 1),)
    assert desk.ingest("a.jsonl", "b.jsonl", sync=True).removed == 0


def test_sync_embeds_nothing_again_that_moved_to_another_file(desk: Desk) -> None:
    desk.take("a.jsonl", record(GRAPH, "g"), record(IMAGE, "i"))
    desk.write("a.jsonl", record(GRAPH, "g"))
    desk.write("b.jsonl", record(IMAGE, "i"))
    summary = desk.ingest("a.jsonl", "b.jsonl", sync=True)
    assert (summary.removed, len(desk.embedder.embedded)) == (0, 2)
    assert desk.papers()["i"].sources == (Source("b.jsonl", 1),)


def test_sync_removes_a_paper_that_has_left_two_files(desk: Desk) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        desk.take(name, record(GRAPH, "g"), record(IMAGE, "i"))
    for name in ("a.jsonl", "b.jsonl"):
        desk.write(name, record(GRAPH, "g"))
    assert desk.ingest("a.jsonl", "b.jsonl", sync=True).removed == 1
    assert set(desk.papers()) == {"g"}


def test_sync_removes_what_only_a_file_had_that_is_gone_from_its_folder(desk: Desk) -> None:
    (desk.folder / "in").mkdir()
    desk.write("in/a.jsonl", record(GRAPH, "g"))
    gone = desk.write("in/b.jsonl", record(IMAGE, "i"), record(GRAPH, "g"))
    desk.ingest("in")
    gone.unlink()
    assert desk.ingest("in").removed == 0
    assert desk.ingest("in/a.jsonl", sync=True).removed == 0
    # The file itself is named, not its folder: a slip of the pen removes nothing.
    assert desk.ingest("in/a.jsonl", "in/b.jsonl", sync=True).removed == 0
    assert desk.ingest("in", sync=True).removed == 1
    assert desk.papers()["g"].sources == (Source("in/a.jsonl", 1),)


@pytest.mark.parametrize("content", ["", '{"id": "g", "abst', '{"id": "g"}\n', "\x00\x01\x02" * 99])
def test_a_file_with_errors_removes_nothing(desk: Desk, content: str) -> None:
    desk.take("a.jsonl", record(GRAPH, "g"), record(IMAGE, "i"))
    whole = (desk.folder / "a.jsonl").read_text().splitlines(keepends=True)[1]
    for kept in ("", whole):
        (desk.folder / "a.jsonl").write_text(kept + content if content else "")
        for _ in range(2):
            summary = desk.ingest("a.jsonl", sync=True)
            assert (summary.removed, set(desk.papers())) == (0, {"g", "i"})
    if summary.notes:
        assert summary.notes == (
            "a.jsonl no longer lists 1 papers, but has records that were rejected: none was "
            "removed. Mend the file, or use `rag remove ID...`.",
        )


def test_records_without_an_abstract_do_not_keep_what_has_left(desk: Desk) -> None:
    desk.take("a.jsonl", record(GRAPH, "g"), record(IMAGE, "i"), record(PROTEIN, "p"))
    lacking = ({"id": "news", "title": "No abstract"}, record("Withdrawn.", "p"))
    desk.write("a.jsonl", record(GRAPH, "g"), *lacking)
    summary = desk.ingest("a.jsonl", sync=True)
    # The paper that is still listed, without its abstract, stays.
    assert (summary.removed, len(summary.rejected), summary.notes) == (1, 2, ())
    assert set(desk.papers()) == {"g", "p"}
    assert desk.ingest("a.jsonl", sync=True).removed == 0
    assert set(desk.papers()) == {"g", "p"}


def test_an_empty_folder_removes_nothing(desk: Desk) -> None:
    (desk.folder / "in").mkdir()
    desk.write("in/a.jsonl", record(GRAPH, "g")).rename(desk.folder / "in" / "b.jsonl")
    desk.ingest("in")
    (desk.folder / "in" / "b.jsonl").unlink()
    assert desk.ingest("in", sync=True).removed == 0


# The commands


def test_remove_says_what_it_removes(filled: Rag) -> None:
    ran = filled("remove", "beta", "gamma")
    assert (ran.code, ran.out) == (0, "2 removed from vectorstore.\n")
    assert ran.err.splitlines()[1] == "  gamma  GammaNet: Images"
    failed(filled("remove", "alfa"), 2, "There is no paper 'alfa' in the store. Closest: alpha.")
    ran = filled("remove", "--source", "papers.jsonl", "--json")
    assert ran.json == {"removed": ["alpha"], "source": "papers.jsonl", "kept": 0}
    assert ran.err.startswith("Source papers.jsonl: 1 papers are in no other.\n")
    assert filled("papers", "--json").json == []


def test_on_a_terminal_it_asks(filled: Rag, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag.cli.papers._is_terminal", lambda: True)
    ran = filled("remove", "beta", stdin=b"n\n")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.endswith("Nothing was removed.\n")
    assert filled("remove", "beta", stdin=b"y\n").code == 0
    assert filled("remove", "gamma", "--yes").code == 0
    assert [paper["paper_id"] for paper in filled("papers", "--json").json] == ["alpha"]


def test_sync_and_map_on_the_command_line(rag: Rag) -> None:
    rag("ingest", write("papers.jsonl", *RECORDS))
    ran = rag("ingest", write("papers.jsonl", RECORDS[0]), "--sync")
    assert ran.out.startswith("0 added, 0 updated, 1 unchanged, 0 duplicates, 2 removed, 0 rej")
    Path("other.csv").write_text(f'Name,What,Number\nx1,"{GAMMA}",7\n')
    ran = rag("ingest", "other.csv", "--map", "abstract=What", "--map", "ID=Name")
    assert ran.code == 0, ran.err
    assert rag("show", "x1", "--json").json["text"] == GAMMA


@pytest.mark.parametrize("wrong", ["abstract", "abstract=", "colour=x", "id=a"])
def test_a_mapping_that_is_none_is_refused(rag: Rag, wrong: str) -> None:
    ran = rag("ingest", write("papers.jsonl", *RECORDS), "--map", "id=a", "--map", wrong)
    assert ran.code == 2
    assert ran.err.startswith(f"--map '{wrong}': is ")


def test_standard_input_is_a_source(rag: Rag) -> None:
    content = write("papers.jsonl", *RECORDS).read_bytes()
    assert (
        rag(
            "ingest",
            "-",
            stdin=content,
        ).code
        == 0
    )
    assert rag("show", "beta", "--json").json["sources"] == [{"file": "stdin", "position": 2}]
    again = rag("ingest", "-", "--sync", "--json", stdin=content.splitlines()[0]).json
    assert (again["unchanged"], again["removed"], again["papers"]) == (1, 0, 3)
