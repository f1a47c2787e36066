from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.readers import values
from rag.readers.fields import record_from
from rag.types import Record, Rejected, Source

SOURCE = Source("f", 3)


def record(fields: dict[str, object], columns: dict[str, str] | None = None) -> Record:
    found = record_from(fields, SOURCE, 7, columns or {})
    assert isinstance(found, Record)
    return found


@pytest.mark.parametrize(
    ("abstract", "title", "id_"),
    [
        ("abstract", "title", "id"),
        ("Abstract ", "TITLE", "Paper_ID"),
        ("abstractNote", "title", "citationKey"),
        ("AB", "TI", "UT"),
        ("N2", "T1", "AN"),
        ("Abstract Text", "Article Title", "paper-id"),
    ],
)
def test_the_usual_names(abstract: str, title: str, id_: str) -> None:
    assert record({abstract: "We do.", title: "T", id_: "a"}) == Record(
        SOURCE, "We do.", "a", "T", {}, 7
    )


def test_our_metadata_and_what_is_left() -> None:
    fields: dict[str, object] = {
        "AB": "We do.",
        "AU": ["Lee, Ann", "Chen, Bo"],
        "PY": "2018//",
        "JF": "Journal of A",
        "KW": ["one", "two"],
        "DO": "https://doi.org/10.1000/ABC.1",
        "UR": "https://arxiv.org/abs/1801.01234v3",
        "VL": 16,
        "empty": " ",
    }
    assert record(fields).metadata == {
        "authors": ["Ann Lee", "Bo Chen"],
        "venue": "Journal of A",
        "keywords": ["one", "two"],
        "year": 2018,
        "doi": "10.1000/abc.1",
        "arxiv": "1801.01234",
        "url": "https://arxiv.org/abs/1801.01234v3",
        "PY": "2018//",
        "VL": 16,
    }
    # Several papers of a file can have the same DOI.
    assert record(fields).id is None


def test_a_named_field_comes_before_every_guess() -> None:
    fields: dict[str, object] = {"abstract": "A", "Body": "B", "Jahr": "im Jahr 1999", "year": 2001}
    assert record(fields, {"abstract": "body", "year": "Jahr"}) == Record(
        SOURCE, "B", None, None, {"year": 1999, "abstract": "A", "Jahr": "im Jahr 1999"}, 7
    )
    # One that is not there may be missing, but not what a paper is made of.
    assert record(fields, {"doi": "nowhere"}).metadata["year"] == 2001


@pytest.mark.parametrize(
    "fields",
    [
        {"doi": "10.1000/A"},
        {"DO": "https://doi.org/10.1000/A"},
        {"id": "10.1000/A"},
        {"id": "https://doi.org/10.1000/A", "key": "x"},
    ],
)
def test_a_doi_is_no_id(fields: dict[str, object]) -> None:
    found = record({"abstract": "We do.", **fields})
    assert (found.id, found.metadata) == (fields.get("key"), {"doi": "10.1000/a"})


def test_a_doi_that_the_user_names_is_an_id() -> None:
    found = record({"abstract": "We do.", "doi": "10.1000/A"}, {"id": "doi"})
    assert (found.id, found.metadata["doi"]) == ("10.1000/A", "10.1000/a")


@pytest.mark.parametrize(
    ("name", "value", "key", "kept"),
    [
        ("Manual Tags", "a; b", "keywords", ["a", "b"]),
        ("Automatic Tags", "a; b", "keywords", ["a", "b"]),
        ("Keywords Plus", "A; B", "keywords", ["A", "B"]),
        ("Journal/Book", "J of A", "venue", "J of A"),
    ],
)
def test_names_of_exports(name: str, value: str, key: str, kept: object) -> None:
    assert record({"abstract": "We do.", name: value}).metadata == {key: kept}


def test_web_of_sciences_number_is_an_id() -> None:
    fields: dict[str, object] = {"Abstract": "We do.", "UT (Unique WOS ID)": "WOS:1", "ID": "NODES"}
    assert record(fields).id == "WOS:1"


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        (
            {"abstract": "Sumary", "id": "Nr"},
            '--map names the field "Sumary" for the abstract and "Nr" for the ID, which is '
            'missing; its fields are "Summary", "n".',
        ),
        ({"abstract": "n"}, 'No abstract: the field "n" is a number.'),
    ],
)
def test_a_named_field_that_gives_nothing(columns: dict[str, str], reason: str) -> None:
    fields: dict[str, object] = {"Summary": "We do.", "n": 5}
    whole = reason.startswith("No abstract")
    assert record_from(fields, SOURCE, 7, columns) == Rejected("f", 3, reason, 7, whole=whole)


@pytest.mark.parametrize(
    ("written", "names"),
    [
        ("Lee, Ann and Chen, Bo", ["Ann Lee", "Bo Chen"]),
        ("Knuth, Donald E. and Leslie Lamport", ["Donald E. Knuth", "Leslie Lamport"]),
        ("Ann Lee, Bo Chen and Cy Day", ["Ann Lee", "Bo Chen", "Cy Day"]),
        ("Ann Lee, Bo Chen", ["Ann Lee", "Bo Chen"]),
        ("Lee, Ann; Chen, Bo", ["Ann Lee", "Bo Chen"]),
        ("Lee, Ann", ["Ann Lee"]),
        ("de la Cruz, Juan", ["Juan de la Cruz"]),
        ("Liu R., Adler D.G.", ["R. Liu", "D.G. Adler"]),
        ("Smith, J., Doe, A.B.", ["J. Smith", "A.B. Doe"]),
        ("Liu R, Adler DG", ["R Liu", "DG Adler"]),
        (r"C. Bal\'azs, E. L. Berger", ["C. Balázs", "E. L. Berger"]),
        ("['Marx, Karl', 'Lindgren, Astrid']", ["Karl Marx", "Astrid Lindgren"]),
        (r'''["Marx, Karl", "O'Neil, \"Ed\""]''', ["Karl Marx", '"Ed" O\'Neil']),
        (["Berg, null"], ["Berg"]),
        (["ACME, Inc.", "King, Jr., Martin", "Müller, Max"],
         ["ACME, Inc.", "Martin King Jr.", "Max Müller"]),
        ([], None),
        (" ; ", None),
        (5, None),
    ],
)  # fmt: skip
def test_names_however_they_are_written(written: object, names: list[str] | None) -> None:
    assert values.names(written) == names


@pytest.mark.parametrize(
    ("written", "year"),
    [
        (2018, 2018), (2018.0, 2018), ("2014//", 2014), ("September 2010", 2010), ("1798", 1798),
        ("20240131", 2024), (["n.d.", "2001-02"], 2001), ("12018", None), (3, None), (True, None),
        (float("nan"), None), ("in press", None), (None, None),
    ],
)  # fmt: skip
def test_years(written: object, year: int | None) -> None:
    assert values.year(written) == year


def test_the_year_of_a_venue_or_a_time_in_milliseconds() -> None:
    assert record({"abstract": "A", "venue": "ICLR 2024", "cdate": 1_690_000_000_000}).metadata == {
        "venue": "ICLR 2024",
        "year": 2024,
        "cdate": 1_690_000_000_000,
    }
    assert record({"abstract": "A", "pdate": 1_690_000_000_000}).metadata["year"] == 2023


@pytest.mark.parametrize(
    ("written", "doi"),
    [
        ("10.1000/ABC", "10.1000/abc"),
        ("doi: 10.1000/a.b", "10.1000/a.b"),
        ("http://dx.doi.org/10.1000/a%28b%29", "10.1000/a(b)"),
        ("10.1002/(SICI)1(98)4:8<6::AID>3.0.CO;2-O", "10.1002/(sici)1(98)4:8<6::aid>3.0.co;2-o"),
        ("S0140 [pii]; 10.1016/j.x.2 [doi]", "10.1016/j.x.2"),
        ("(see https://x.org/doi/10.1145/1.2?download=true)", "10.1145/1.2"),
        ("(doi 10.1145/1.2).", "10.1145/1.2"),
        ("http://a.org/?sid=X&id=doi:10.1002%2Fab.20%28x%29&title=On+A", "10.1002/ab.20(x)"),
        ("http://a.org/?doi=10.1234%2fx&eid=2", "10.1234/x"),
        ("none", None),
        (10.1, None),
    ],
)  # fmt: skip
def test_dois(written: object, doi: str | None) -> None:
    assert values.doi(written) == doi


def test_arxiv_ids() -> None:
    assert values.arxiv("https://arxiv.org/pdf/2301.01234v2.pdf") == "2301.01234"
    assert values.arxiv("arXiv preprint arXiv:hep-th/9901001") == "hep-th/9901001"
    assert values.arxiv("2301.01234") is None
    assert values.bare_arxiv("2301.01234v2") == "2301.01234"
    assert values.bare_arxiv("hal-01234") is None


def test_keywords_that_commas_semicolons_or_spaces_part() -> None:
    assert values.keywords("a, b; c, d; a, b") == ["a, b", "c, d"]
    assert values.keywords("graph networks") == ["graph networks"]
    assert values.keywords("cs.CL stat.ML") == ["cs.CL", "stat.ML"]
    assert values.keywords(["b", "", 1, "a"]) == ["b", "a"]


field_values = st.one_of(
    st.text(max_size=40), st.integers(), st.floats(), st.none(), st.booleans(),
    st.lists(st.text(max_size=20), max_size=3), st.lists(st.integers(), max_size=2),
    st.from_regex(r"[A-Z][a-z]*, [A-Z]\.( and|;|,) ?[A-Za-z .,]*", fullmatch=True),
)  # fmt: skip


@given(
    st.dictionaries(
        st.sampled_from(
            ["abstract", "title", "id", "AU", "author", "year", "date", "doi", "url", "tags", "x"]
        ),
        field_values,
    ),
    st.dictionaries(st.sampled_from(["abstract", "title", "year", "doi"]), st.text(max_size=5)),
)
def test_any_fields_are_a_record_or_rejected(
    fields: dict[str, object], columns: dict[str, str]
) -> None:
    outcome = record_from(fields, SOURCE, 7, columns)
    assert outcome.line == 7
    if isinstance(outcome, Record):
        kinds = {"authors": list, "keywords": list, "year": int, "doi": str, "arxiv": str}
        kinds |= {"url": str, "venue": str}
        assert outcome.abstract.strip()
        assert all(
            isinstance(value, kinds.get(name, object)) for name, value in outcome.metadata.items()
        )
    else:
        assert outcome.position == 3
        assert "abstract" in outcome.reason or "--map" in outcome.reason
