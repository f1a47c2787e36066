"""Exports of conference sites, libraries and indexes, in the shapes that they come in."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.readers import json_records
from rag.readers.json_fields import flat_fields
from rag.readers.json_shape import Shape, shape_of_long
from rag.types import MetaValue, Record, Rejected


def read(document: object, indent: int | None = None) -> list[Record | Rejected]:
    text = json.dumps(document, indent=indent)
    blocks = (text[n : n + 50] for n in range(0, len(text), 50))
    return list(json_records.records(blocks, "f", {}))


def only(document: object) -> Record:
    [record] = read(document)
    assert isinstance(record, Record)
    return record


OPENREVIEW_2 = {
    "id": "q1",
    "forum": "q1",
    "cdate": 1_683_000_000_000,
    "content": {
        "title": {"value": "On A"},
        "abstract": {"value": "We do A."},
        "authors": {"value": ["Ann Lee", "Bo Chen"]},
        "keywords": {"value": ["agents", "web"]},
        "venue": {"value": "NeurIPS 2024 poster"},
        "pdf": {"value": "/pdf/a.pdf"},
    },
}
OPENREVIEW_1 = {
    "id": "q1",
    "forum": "q1",
    "cdate": 1_683_000_000_000,
    "content": {
        "title": "On A",
        "abstract": "We do A.",
        "authors": ["Ann Lee", "Bo Chen"],
        "keywords": ["agents", "web"],
        "venue": "NeurIPS 2024 poster",
        "pdf": "/pdf/a.pdf",
    },
}


@pytest.mark.parametrize("note", [OPENREVIEW_1, OPENREVIEW_2])
def test_openreview(note: dict[str, object]) -> None:
    for document in ([note], {"notes": [note], "count": 1}):
        record = only(document)
        assert (record.id, record.title, record.abstract) == ("q1", "On A", "We do A.")
        assert record.metadata == {
            "authors": ["Ann Lee", "Bo Chen"],
            "venue": "NeurIPS 2024 poster",
            "keywords": ["agents", "web"],
            "year": 2024,
            "forum": "q1",
            "cdate": 1_683_000_000_000,
            "pdf": "/pdf/a.pdf",
        }


ZOTERO = {
    "citationKey": "lee2020",
    "itemID": 7,
    "itemType": "journalArticle",
    "title": "On A",
    "abstractNote": "We do A.",
    "creators": [
        {"creatorType": "editor", "firstName": "Ed", "lastName": "Itor"},
        {"creatorType": "author", "firstName": "Ann", "lastName": "van der Lee"},
        {"creatorType": "author", "name": "The A Team"},
    ],
    "date": "2020-03-01",
    "publicationTitle": "Journal of A",
    "DOI": "10.1000/A",
    "tags": [{"tag": "agents"}, {"tag": "web", "type": 1}],
}
FROM_ZOTERO = {
    "authors": ["Ann van der Lee", "The A Team"],
    "venue": "Journal of A",
    "keywords": ["agents", "web"],
    "year": 2020,
    "doi": "10.1000/a",
    "itemType": "journalArticle",
    "date": "2020-03-01",
}


def test_zotero() -> None:
    without = {"itemType": "book", "title": "B", "creators": [{"name": "X"}]}
    library = {
        "config": {"id": "x"},
        "collections": {"c": {"items": [7]}},
        "items": [ZOTERO, without],
    }
    first, second = read(library, indent=2)
    assert isinstance(first, Record)
    assert (first.id, first.line, first.metadata) == ("lee2020", 13, {**FROM_ZOTERO, "itemID": 7})
    assert second == Rejected(
        "f",
        2,
        'No abstract: the field "abstract" is missing; its fields are "itemType", "title", '
        '"creators".',
        48,
        whole=True,
    )


def test_zotero_by_its_api_and_a_pinned_key() -> None:
    data = {name: value for name, value in ZOTERO.items() if name not in ("citationKey", "itemID")}
    record = only([{"key": "AB12", "data": data, "library": {"id": 1}, "version": 3}])
    assert (record.id, record.metadata) == ("AB12", {**FROM_ZOTERO, "version": 3})
    record = only([{**data, "extra": "PMID: 1\nCitation Key: lee2020a"}])
    assert record.id == "lee2020a"


def test_csl() -> None:
    record = only(
        [
            {
                "id": "lee2020",
                "type": "paper-conference",
                "title": "On A",
                "abstract": "We do A.",
                "author": [
                    {"family": "Lee", "given": "Ann"},
                    {"family": "Gogh", "given": "Vincent", "non-dropping-particle": "van"},
                    {"literal": "A Team"},
                ],
                "issued": {"date-parts": [["2020", 3, 1]]},
                "container-title": "Proceedings of A",
                "DOI": "10.1000/a",
                "URL": "https://a.org/1",
                "keyword": "agents, web",
            }
        ]
    )
    assert (record.id, record.title) == ("lee2020", "On A")
    assert record.metadata == {
        "authors": ["Ann Lee", "Vincent van Gogh", "A Team"],
        "venue": "Proceedings of A",
        "keywords": ["agents", "web"],
        "year": 2020,
        "doi": "10.1000/a",
        "url": "https://a.org/1",
        "type": "paper-conference",
        "issued": "2020-3-1",
    }


def test_arxiv_metadata_lines() -> None:
    entry = {
        "id": "0704.0001",
        "submitter": "Ann Lee",
        "authors": "C. Bal\\'azs, A. Lee and others",
        "title": "On A",
        "journal-ref": None,
        "doi": "10.1103/PhysRevD.1",
        "categories": "hep-ph cs.CL",
        "abstract": "  We do A.\nAnd B.\n",
        "update_date": "2008-11-26",
        "versions": [{"version": "v1", "created": "Mon, 2 Apr 2007 19:18:42 GMT"}],
        "authors_parsed": [["Balázs", "C.", ""], ["Lee", "A.", "Jr."]],
    }
    text = json.dumps(entry) + "\n" + json.dumps({**entry, "id": "hep-th/9901001"}) + "\n"
    first, second = json_records.records([text], "f", {})
    assert isinstance(first, Record)
    assert isinstance(second, Record)
    assert (first.id, first.line, second.id, second.line) == ("0704.0001", 1, "hep-th/9901001", 2)
    assert first.metadata == {
        "authors": ["C. Balázs", "A. Lee Jr."],
        "keywords": ["hep-ph", "cs.CL"],
        "year": 2008,
        "doi": "10.1103/physrevd.1",
        "arxiv": "0704.0001",
        "submitter": "Ann Lee",
        "update_date": "2008-11-26",
    }
    assert second.metadata["arxiv"] == "hep-th/9901001"


def test_semantic_scholar() -> None:
    paper = {
        "paperId": "f00",
        "externalIds": {"DOI": "10.1000/A", "ArXiv": "2301.01234", "CorpusId": 5},
        "title": "On A",
        "abstract": "We do A.",
        "venue": "",
        "journal": {"name": "Journal of A", "pages": "1-2"},
        "year": 2023,
        "authors": [{"authorId": "1", "name": "Ann Lee"}, {"authorId": None, "name": "Bo Chen"}],
        "openAccessPdf": {"url": "https://a.org/1.pdf", "status": "GREEN"},
        "fieldsOfStudy": ["Computer Science"],
    }
    first, second = read({"total": 2, "token": "t", "data": [paper, {**paper, "abstract": None}]})
    assert isinstance(first, Record)
    assert first.id == "f00"
    assert first.metadata == {
        "authors": ["Ann Lee", "Bo Chen"],
        "venue": "Journal of A",
        "keywords": ["Computer Science"],
        "year": 2023,
        "doi": "10.1000/a",
        "arxiv": "2301.01234",
        "url": "https://a.org/1.pdf",
        "corpusId": 5,
    }
    empty = 'No abstract: the field "abstract" is empty.'
    assert isinstance(second, Rejected)
    assert (second.position, second.reason, second.line) == (2, empty, 1)
    # Alone, its authors are no records.
    [alone] = read({**paper, "abstract": None})
    assert isinstance(alone, Rejected)
    assert alone.reason == empty


def test_records_below_an_envelope_of_envelopes() -> None:
    item = {"DOI": "10.1000/a", "title": ["On A"], "abstract": "<jats:p>We do A.</jats:p>"}
    record = only({"status": "ok", "message": {"total": 1, "items": [item]}})
    assert (record.id, record.title, record.metadata["doi"]) == (None, "On A", "10.1000/a")


def test_documents_that_follow_each_other() -> None:
    documents = [{"id": n, "abstract": f"We do {n}."} for n in (1, 2, 3)]
    text = "\n".join(json.dumps(document, indent=1) for document in documents)
    records = list(json_records.records([text], "f", {}))
    assert [(r.id, r.line) for r in records if isinstance(r, Record)] == [
        ("1", 1), ("2", 5), ("3", 9)
    ]  # fmt: skip
    broken = list(json_records.records([text.replace('"id": 2', '"id": oops')], "f", {}))
    assert [type(r) for r in broken] == [Record, Rejected, Record]


def test_lines_of_records_and_breaks_in_a_long_array() -> None:
    padding = "x" * 3_000
    documents: list[object] = [{"id": n, "abstract": f"We do {n}. {padding}"} for n in range(400)]
    text = "[\n" + ",\n".join(map(json.dumps, documents)) + "\n]"
    text = text.replace('"id": 300', '"id": oops')
    records = list(json_records.records(iter([text[:9], text[9:700_000], text[700_000:]]), "f", {}))
    assert [r.line for r in records] == [n + 2 for n in range(400)]
    assert [r.line for r in records if isinstance(r, Rejected)] == [302]
    [rejected] = [r for r in records if isinstance(r, Rejected)]
    assert "at line 302, column 8; reading goes on" in rejected.reason


def test_an_array_is_read_as_it_comes() -> None:
    given: list[int] = []

    def blocks() -> object:
        yield "["
        for n in range(100):
            given.append(n)
            yield json.dumps({"abstract": "x" * 100_000}) + ","
        yield "7]"

    outcomes = json_records.records(blocks(), "f", {})  # type: ignore[arg-type]
    assert isinstance(next(outcomes), Record)
    assert len(given) < 20
    assert len(list(outcomes)) == 100


@pytest.mark.parametrize(
    ("document", "shape"),
    [
        ({"n": 1, "config": {"a": []}, "items": [{"title": "T"}]}, Shape.LISTS),
        ({"a": {"abstract": "A", "authors": [{"name": "X"}]}}, Shape.KEYED),
    ],
)
def test_what_a_long_object_holds(
    document: dict[str, object], shape: Shape, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shape_of_long(json.dumps(document), 0) is shape
    monkeypatch.setattr(json_records, "WHOLE", 1)
    long = read({**document, "z": {}}) if shape is Shape.KEYED else read(document)
    monkeypatch.undo()
    assert long == (read({**document, "z": {}}) if shape is Shape.KEYED else read(document))


def test_fields_that_are_nested_in_unknown_ways_stay_out_of_the_way() -> None:
    odd: dict[str, object] = {
        "content": 5, "creators": [1, None], "externalIds": [], "authors_parsed": [[1], "x"],
        "issued": {"date-parts": [[None]]}, "tags": [{"x": 1}], "x": {"y": {}},
    }  # fmt: skip
    assert flat_fields({**odd, "abstract": "A"}) == {
        **odd, "abstract": "A", "creators": [], "issued": "",
    }  # fmt: skip


plain_values: st.SearchStrategy[MetaValue | None] = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6)
)
nested = st.recursive(
    plain_values,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["abstract", "title", "content", "value", "data", "author", "name", "family",
                 "date-parts", "authors_parsed", "creators", "externalIds", "tags", "extra"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)  # fmt: skip


@settings(max_examples=200)
@given(st.lists(nested, max_size=5), st.sampled_from([None, 1]))
def test_every_element_of_any_array_is_counted(values: list[object], indent: int | None) -> None:
    assert [
        p.source.position if isinstance(p, Record) else p.position for p in read(values, indent)
    ] == list(range(1, len(values) + 1))


@settings(max_examples=200)
@given(st.lists(nested, min_size=1, max_size=5))
def test_every_line_is_counted(values: list[object]) -> None:
    text = "\n".join(map(json.dumps, values))
    outcomes = list(json_records.records([text], "f", {}, lines=True))
    single_array = isinstance(values[0], list) and text.startswith(("[{", "[ {"))
    assert single_array or [o.line for o in outcomes] == list(range(1, len(values) + 1))


SAMPLES = [
    json.dumps([OPENREVIEW_2, {**ZOTERO, "citationKey": "b"}], indent=1),
    json.dumps({"config": {}, "items": [ZOTERO, {"title": "x"}]}),
    "\n".join(json.dumps({"id": n, "abstract": f"We do {n}."}) for n in range(4)),
    json.dumps({"a": {"abstract": "A"}, "b": {"abstract": "B"}}),
]


@settings(max_examples=400)
@given(
    st.sampled_from(SAMPLES),
    st.lists(
        st.tuples(
            st.integers(0, 900),
            st.integers(0, 60),
            st.text(st.sampled_from('{}[]",:\\ \n0aé\x00')) | st.just("[" * 3_000),
        ),
        min_size=1,
        max_size=4,
    ),
    st.booleans(),
)
def test_damaged_samples_never_crash(
    sample: str, damages: list[tuple[int, int, str]], lines: bool
) -> None:
    for at, cut, new in damages:
        sample = sample[:at] + new + sample[at + cut :]
    outcomes = list(json_records.records([sample], "f", {}, lines=lines))
    assert bool(outcomes) == bool(sample.strip())
    assert [o.source.position if isinstance(o, Record) else o.position for o in outcomes] == list(
        range(1, len(outcomes) + 1)
    )
