from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from doubles.commands import Rag
from doubles.desk import GRAPH, IMAGE, PROTEIN, Desk, counts, record
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag.export import latex, lines
from rag.ingest import ingest
from rag.labels import derive_label
from rag.readers import read
from rag.store import Place, Store
from rag.text import clean
from rag.types import Paper, Rejected

ODD = (
    r"We \emph{halve} 50% of A_1 & B's cost {here}, for $x^2 < 3$ and C# ~ D^2 *at once* — ``so''."
)
TEXT = "We halve 50% of A_1 & B's cost {x, y}, as \\n < 3 > 2 ~ C# *or* $5 ^ 2 — “so” 'it' `is`."


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    folder = tmp_path / "desk"
    folder.mkdir()
    return Desk(folder)


def exported(desk: Desk, form: str = "jsonl") -> str:
    with Store.open(desk.store, None) as store:
        return "".join(f"{line}\n" for line in lines(store, form))


def restored(desk: Desk, form: str = "jsonl") -> Desk:
    """A new store from the export of another, in a folder below."""
    path = desk.folder / "again"
    path.mkdir()
    again = Desk(path)
    name = f"export.{'bib' if form == 'bibtex' else 'jsonl'}"
    (path / name).write_text(exported(desk, form), encoding="utf-8")
    again.ingest(name)
    return again


def places(desk: Desk) -> dict[str, list[Place]]:
    with Store.open(desk.store, None) as store:
        found = {paper.id: store.catalog.places(paper.id) for paper in store.papers()}
    return {i: [replace(place, run=0) for place in of] for i, of in found.items()}


def test_what_is_exported_restores_the_store(desk: Desk) -> None:
    desk.write("a.jsonl", record(GRAPH), record(IMAGE, "i", title=r"$x^2$ \& Y", text="kept", n=1))
    desk.write("b.jsonl", record(PROTEIN, "i"), record(GRAPH, "g", doi="10.1145/1.2"))
    near = f"{IMAGE} Really."
    desk.write("c.jsonl", record(near, "other", title="x² & y"), record(ODD, "odd id, {1}"))
    desk.ingest("a.jsonl", "b.jsonl", "c.jsonl")
    again = restored(desk)
    assert again.papers() == desk.papers()
    assert places(again) == places(desk)
    # The files themselves are known again, and the export too.
    for name in ("a.jsonl", "b.jsonl", "c.jsonl"):
        (again.folder / name).write_text((desk.folder / name).read_text())
        assert counts(again.ingest(name))[:2] == (0, 0)
    assert counts(again.ingest("export.jsonl")) == (0, 0, 4, 0, 0)
    assert again.papers() == desk.papers()
    assert exported(again) == exported(desk)


def test_an_edited_export_is_an_update(desk: Desk) -> None:
    desk.take("a.jsonl", record(GRAPH, "g", year=2025), record(IMAGE, "i"))
    path = desk.folder / "e.jsonl"
    path.write_text(exported(desk).replace("every graph", "each protein").replace("2025", "2026"))
    assert counts(desk.ingest("e.jsonl")) == (0, 1, 1, 0, 0)
    assert desk.papers()["g"].text == GRAPH.replace("every graph", "each protein")
    assert desk.papers()["g"].metadata == {"year": 2026}


def test_each_line_says_what_it_is(desk: Desk) -> None:
    desk.take("a.jsonl", record(GRAPH), record(GRAPH, "g", year=2026))
    value = json.loads(exported(desk))
    paper_id = value.pop("id")
    assert value == {
        "citewise": 1,
        "title": derive_label(GRAPH),
        "title_derived": True,
        "abstract": GRAPH,
        "metadata": {"year": 2026},
        "other_ids": ["g"],
        "sources": [
            {"file": "a.jsonl", "position": 1},
            {"file": "a.jsonl", "position": 2, "id": "g"},
        ],
    }
    assert paper_id.startswith("p-")


@pytest.mark.parametrize(
    "line",
    [
        '{"citewise": 1, "id": "a"}',
        '{"citewise": 1, "id": 7, "title": "", "title_derived": false, "abstract": "", '
        '"metadata": {}, "sources": []}',
        '{"id": "a", "abstract": "We have no mark at all here."}',
        "{",
        "[" * 100_000,
        '{"citewise": 2}',
    ],
)
def test_a_broken_line_is_reported_and_the_rest_is_read(desk: Desk, line: str) -> None:
    desk.take("a.jsonl", record(GRAPH, "g"), record(IMAGE, "i"))
    whole = exported(desk).splitlines()
    path = desk.folder / "e.jsonl"
    path.write_text("\n".join([whole[0], line, whole[1]]))
    found = list(read(path, "e.jsonl"))
    assert [getattr(item, "id", None) for item in found] == ["g", None, "i"]
    assert isinstance(found[1], Rejected)
    assert (found[1].position, found[1].line) == (2, 2)


texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=40)
markup = st.sampled_from([GRAPH, IMAGE, PROTEIN, ODD, f"{GRAPH} {IMAGE}", f"{PROTEIN} $x_1$"])
records_ = st.fixed_dictionaries(
    {"abstract": markup | texts.map(lambda t: f"{GRAPH} {t}")},
    optional={
        "id": st.sampled_from(["x", "y"]) | texts,
        "title": st.sampled_from(["", "T", r"\emph{T} $x^2$"]) | texts,
        "doi": st.sampled_from(["10.1145/1", "10.1145/2"]),
        "venue": texts,
    },
)


@pytest.fixture
def without_chroma(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Store, "_finish_chroma", lambda self: None)


@settings(
    max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(files=st.lists(st.lists(records_, min_size=1, max_size=5), min_size=1, max_size=2))
def test_any_store_is_restored(
    tmp_path_factory: pytest.TempPathFactory,
    without_chroma: None,
    files: list[list[dict[str, object]]],
) -> None:
    desk = Desk(tmp_path_factory.mktemp("desk"))
    for number, records in enumerate(files):
        desk.take(f"{number}.jsonl", *records)
    again = restored(desk)
    assert again.papers() == desk.papers()
    assert places(again) == places(desk)


# BibTeX


def test_bibtex_restores_ids_titles_and_abstracts(desk: Desk) -> None:
    metadata = {"authors": ["Ann Lee", "Bo and Sons, Inc."], "year": 2026, "venue": "V & W"}
    more = {"doi": "10.1145/a_b", "arxiv": "2301.00001", "keywords": ["a", "b c"]}
    desk.take(
        "a.jsonl",
        record(TEXT, "odd:1", title="50% of {X}_1 & GPT-4", **metadata, **more),
        record(GRAPH),
        record(ODD, "q"),
    )
    before, after = desk.papers(), restored(desk, "bibtex").papers()
    assert said(after) == said(before)
    kept = after["odd:1"].metadata
    assert {name: kept[name] for name in (*more, "year", "venue")} == {
        **more,
        "year": 2026,
        "venue": "V & W",
    }


def said(papers: dict[str, Paper]) -> dict[str, tuple[str, str, bool]]:
    return {i: (p.title, p.text, p.title_derived) for i, p in papers.items()}


def test_keys_are_unique_and_can_be_read(desk: Desk) -> None:
    desk.take("a.jsonl", record(GRAPH, "a b"), record(IMAGE, "a,b"), record(PROTEIN, "{}"))
    assert set(restored(desk, "bibtex").papers()) == {"a-b", "a-b-2", "-"}


# Curly quotes are left out: one that is alone pairs with a straight one.
@given(st.text(st.characters(codec="utf-8", exclude_characters="“”"), max_size=60))
def test_escaped_text_is_cleaned_to_itself(text: str) -> None:
    text = clean(text)
    assert clean(latex(text)) == text


# The command


def test_export_prints_or_writes(filled: Rag) -> None:
    ran = filled("export")
    assert ran.code == 0
    assert [json.loads(line)["id"] for line in ran.out.splitlines()] == ["alpha", "beta", "gamma"]
    assert filled("export", "--out", "e.jsonl").err == "3 papers exported to e.jsonl.\n"
    assert Path("e.jsonl").read_text() == ran.out
    assert filled("export", "--out", "e.jsonl").code == 0  # over an export, not over anything else
    Path("mine.txt").write_text("mine")
    for out in ("mine.txt", "vectorstore"):
        refused = filled("export", "--out", out)
        assert (refused.code, refused.out) == (2, "")
    assert filled("export", "--out", "no/where").code == 1
    assert filled("export", "--format", "bibtex").out.count("@misc{") == 3
    failing = filled("export", "--format", "xml")
    assert (failing.code, failing.out) == (2, "")
    assert [p.name for p in Path().glob(".*.unfinished")] == []


def test_an_exported_store_is_ingested_by_the_command(filled: Rag) -> None:
    Path("e.jsonl").write_text(filled("export").out)
    assert filled("ingest", "e.jsonl", "--store", "other").code == 0
    assert filled("export", "--store", "other").out == filled("export").out


def test_two_stores_become_one(desk: Desk, tmp_path: Path) -> None:
    desk.take("a.jsonl", record(GRAPH, "g", doi="10.1145/1.2"))
    other = Desk(tmp_path)
    other.take("b.jsonl", record(f"{GRAPH} Indeed.", "h", doi="10.1145/1.2"))
    path = tmp_path / "e.jsonl"
    path.write_text(exported(desk))
    assert counts(ingest([path], other.store, other.embedder)) == (0, 0, 0, 1, 0)
    assert [source.file for source in other.papers()["h"].sources] == ["b.jsonl", "a.jsonl"]
