from __future__ import annotations

import time
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.bibliography import bibtex as cited
from rag.papers import to_paper
from rag.readers.bibtex import looks_like, records
from rag.readers.bibtex_values import MAX_BIBTEX, people, readable
from rag.types import MetaValue, Paper, Record, Rejected, Source

ABSTRACT = "We show that one thing follows from another."
A = f"abstract = {{{ABSTRACT}}}"


def read(text: str, **columns: str) -> list[Record | Rejected]:
    return list(records(text.splitlines(keepends=True), "a.bib", columns))


def only(text: str) -> Record:
    [record] = read(text)
    assert isinstance(record, Record)
    return record


def meta(text: str) -> dict[str, MetaValue]:
    metadata = dict(only(text).metadata)
    del metadata["bibtex"], metadata["entrytype"]
    return metadata


def outline(found: Iterable[Record | Rejected]) -> list[tuple[int, int, str | None]]:
    """Position, line, and the ID or, in capitals, the kind of reason."""
    shown = []
    for one in found:
        if isinstance(one, Record):
            assert one.abstract.strip() == ABSTRACT
            shown.append((one.source.position, one.line, one.id))
        else:
            kind = next(k for k in ("No abstract", "never closed", "too many") if k in one.reason)
            shown.append((one.position, one.line, kind.upper()))
    return shown


def test_an_entry() -> None:
    [record] = read(
        "% made by hand\n"
        "@InProceedings{lee:26,\n"
        "  Title = {On {BERT} and 50\\% of {\\'E}t{\\'e}s},\n"
        "  AUTHOR = {Lee, Ann and Ludwig van Beethoven and others},\n"
        '  booktitle = "Proc.~of {ACL}", year = 2026, month = jan, pages = {1--9},\n'
        "  keywords = {graphs, state space},\n"
        "  doi = {10.1234/AB\\_c}, url = {\\url{https://x.org/~lee/a\\%20b}},\n"
        "  eprint = {2601.01234v2}, archiveprefix = {arXiv},\n"
        f"  {A}\n}}\n"
    )
    assert isinstance(record, Record)
    metadata = dict(record.metadata)
    assert str(metadata.pop("bibtex")).startswith("@inproceedings{lee:26,\n  title = {On {BERT}")
    assert metadata == {
        "authors": ["Ann Lee", "Ludwig van Beethoven"],
        "year": 2026,
        "venue": "Proc. of ACL",
        "keywords": ["graphs", "state space"],
        "doi": "10.1234/ab_c",
        "arxiv": "2601.01234",
        "url": "https://x.org/~lee/a%20b",
        "month": "January",
        "pages": "1–9",
        "archiveprefix": "arXiv",
        "eprint": "2601.01234v2",
        "entrytype": "inproceedings",
    }
    assert record.source == Source("a.bib", 1)
    assert (record.line, record.id, record.abstract) == (2, "lee:26", ABSTRACT)
    paper = to_paper(record)
    assert isinstance(paper, Paper)
    assert paper.title == "On BERT and 50% of Étés"


def test_biblatex_fields() -> None:
    text = (
        "@article{a, title = {On A}, subtitle = {And {B}}, date = {2004-05/2004-07},"
        " journaltitle = {J. of A}, eprint = {math/0307200v3}, eprinttype = {arxiv},"
        f" annotation = {{A note on it that is no abstract at all.}}, {A}}}"
    )
    assert only(text).title == "On A: And B"
    assert meta(text) == {
        "year": 2004,
        "date": "2004-05/2004-07",
        "venue": "J. of A",
        "arxiv": "math/0307200",
        "subtitle": "And B",
        "eprint": "math/0307200v3",
        "eprinttype": "arxiv",
        "annotation": "A note on it that is no abstract at all.",
    }
    [rejected] = read("@book{b, title = {B}, annotation = {A note on it, and no abstract.}}")
    assert isinstance(rejected, Rejected)
    assert rejected.reason == (
        'No abstract: the field "abstract" is missing; its fields are "title", "annotation", "id".'
    )
    [mapped] = read(
        "@book{b, Annotation = {A note on it, and no abstract.}}", abstract="Annotation"
    )
    assert isinstance(mapped, Record)
    assert mapped.abstract == "A note on it, and no abstract."


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (r"{\"O}zg{\"u}r {\c{S}}im{\c s}ek", ["Özgür Şimşek"]),
        ("de la Vall{\\'e}e Poussin, Charles-Jean", ["Charles-Jean de la Vallée Poussin"]),
        ("{Barnes and Noble, Inc.} and {OpenAI}", ["Barnes and Noble Inc.", "OpenAI"]),
        ("King, Jr., Martin Luther", ["Martin Luther King Jr."]),
        ("A. Lee\n  and B.~Day and others", ["A. Lee", "B. Day"]),
        ("", []),
        ("Lee, {Ann", ["Ann Lee"]),
    ],
)
def test_names(written: str, expected: list[str]) -> None:
    assert people(written) == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (r"{\O}rsted, {N,O}-type \{a,b\} \'{e}", "Ørsted, N,O-type {a,b} é"),
        (r"{\L}{\'o}d{\'z} and {W}annier", "Łódź and Wannier"),
        ("Plain {W}ord, {a, {b}}", "Plain Word, a, b"),
        (r"H$_2$O, 10\% \& ``more''", "H2O, 10% & “more”"),
        (r"methodology\hyphen independent", "methodology-independent"),
    ],
)
def test_braces_and_latex(written: str, expected: str) -> None:
    assert readable(written) == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("a, {b, c}, d", ["a", "b, c", "d"]),
        ("a, b; c", ["a, b", "c"]),
        ("graph {N}ets", ["graph Nets"]),
    ],
)
def test_keywords(written: str, expected: list[str]) -> None:
    assert meta(f"@misc{{a, keyword = {{{written}}}, {A}}}") == {"keywords": expected}


def test_macros_and_concatenation() -> None:
    text = (
        '@string{acl = "Proc. of ACL"}\n@STRING(full = acl # ", " # 2010)\n'
        f'@misc{{a, booktitle = FULL # {{ B}}, month = "1~" # feb, note = nothing, {A}}}\n'
    )
    record = only(text)
    assert record.metadata["venue"] == "Proc. of ACL, 2010 B"
    assert record.metadata["month"] == "1 February"
    assert record.metadata["note"] == "nothing"
    assert record.line == 3
    # The definitions stay behind, so what they gave is written out; months every style knows.
    assert record.metadata["bibtex"] == (
        "@misc{a,\n  booktitle = {Proc. of ACL, 2010 B},\n  month = \"1~\" # feb,\n"
        "  note = {nothing}\n}"
    )  # fmt: skip


def test_macros_that_would_fill_memory() -> None:
    doubled = "".join(f"@string{{m{n} = m{n - 1} # m{n - 1}}}\n" for n in range(1, 60))
    text = f"@string{{m0 = {{ten chars.}}}}\n{doubled}@misc{{a, note = m59 # m59, {A}}}"
    assert len(str(only(text).metadata["note"])) < 30_000


def test_inherited_fields() -> None:
    found = read(
        f"@inproceedings{{a, crossref = {{P:1}}, title = {{T}}, {A}}}\n"
        "@proceedings{p:1, title = {Proc. of X}, xdata = {pub}, editor = {Lee, Ann},"
        f" abstract = {{Nothing that a paper inherits.}}}}\n"
        "@xdata{pub, publisher = {P}, date = {1999}}\n"
        f"@incollection{{b, crossref = {{p:1}}, booktitle = {{Own}}, year = 2000, {A}}}\n"
        f"@article{{c, crossref = {{gone}}, {A}}}\n"
        f"@misc{{d, xdata = {{pub, gone}}, {A}}}\n"
    )
    assert [(r.source.position if isinstance(r, Record) else r.position) for r in found] == [
        *(3, 2, 1, 4, 5, 6)
    ]
    metadata = {r.id: r.metadata for r in found if isinstance(r, Record)}
    assert metadata["a"]["venue"] == "Proc. of X"
    assert metadata["a"]["year"] == 1999
    assert metadata["a"]["editor"] == ["Ann Lee"]
    assert metadata["b"]["venue"] == "Own"
    assert metadata["b"]["year"] == 2000
    assert metadata["c"].get("year") is None
    assert metadata["d"]["publisher"] == "P"
    assert [r.reason for r in found if isinstance(r, Rejected)] == [
        "An @xdata entry holds fields for other entries; it is no paper."
    ]


def test_circles_and_long_chains_end() -> None:
    circle = (
        f"@book{{a, crossref = {{b}}, {A}}}\n@book{{b, crossref = {{c}}, publisher = {{P}}, {A}}}\n"
        f"@book{{c, crossref = {{a}}, year = 1999, {A}}}\n@book{{d, crossref = {{d}}, {A}}}\n"
    )
    found = read(circle)
    assert sorted(outline(found)) == [(1, 1, "a"), (2, 2, "b"), (3, 3, "c"), (4, 4, "d")]
    years = {r.id: r.metadata.get("year") for r in found if isinstance(r, Record)}
    assert years == {"a": 1999, "b": 1999, "c": 1999, "d": None}
    chain = "".join(f"@book{{k{n}, crossref = {{k{n + 1}}}, {A}}}\n" for n in range(500))
    assert len(read(chain)) == 500


# Damage


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Read in spite of it
        (f"@misc(a, title = {{T}}, {A})", [(1, 1, "a")]),
        (f"@misc{{a, title = {{T}}, {A}}}@misc{{b, {A}}} @misc{{c, {A}}}",
         [(1, 1, "a"), (2, 1, "b"), (3, 1, "c")]),
        (f"@misc{{a,\n{A}\n}}@misc{{b,\n{A}\n}}\n", [(1, 1, "a"), (2, 3, "b")]),
        (f"@misc\n{{a,\n{A}\n}}\n@ misc {{b, {A}}}\n", [(1, 1, "a"), (2, 5, "b")]),
        (f"@phd-thesis{{a, {A}}}\n", [(1, 1, "a")]),
        (f"@misc{{a, title = {{T}}, {A},\n\n@misc{{b, {A}}}", [(1, 1, "a"), (2, 3, "b")]),
        (f"@misc{{a,\n title = {{T}}}},\n year = {{1}}}},\n {A}\n}}\n@misc{{b, {A}}}",
         [(1, 1, "a"), (2, 6, "b")]),
        (f"@misc{{a, title = {{T}}\n {A}}}", [(1, 1, "a")]),
        (f"@misc{{a\n title = {{T}},\n {A}}}", [(1, 1, "a")]),
        (f"@misc{{, title = {{T}}, {A}}}\n@misc{{title = {{T}}, {A}}}",
         [(1, 1, None), (2, 2, None)]),
        (f"@misc{{a,\n % note = {{x, y,\n {A}}}", [(1, 1, "a")]),
        (f"@misc{{a,\n file = {{C:\\dir\\}},\n {A}}}", [(1, 1, "a")]),
        (f'@misc{{a, title = "The "great" thing", {A}}}', [(1, 1, "a")]),
        (f"@misc{{a, title = {{T}}, title = {{U}}, {A}}}\n@misc{{a, {A}}}",
         [(1, 1, "a"), (2, 2, "a")]),
        # Reported
        (f"@misc{{a,\n title = {{T,\n {A}\n}}\n\n@misc{{b, {A}}}",
         [(1, 1, "NEVER CLOSED"), (2, 6, "b")]),
        (f"@misc{{b, {A}}}\n@misc{{a, abstract = {{We show th",
         [(1, 1, "b"), (2, 2, "NEVER CLOSED")]),
        (f'@string{{x = "X"\n@misc{{a, {A}}}', [(1, 1, "NEVER CLOSED"), (2, 2, "a")]),
        ("@misc{a}\n@misc{b,}\n@misc{}", [(n, n, "NO ABSTRACT") for n in (1, 2, 3)]),
        ("@misc{a, x = 1" + "}, x = 1" * 9 + "}", [(1, 1, "TOO MANY")]),
        # No records
        (f"@preamble{{ {{x}} }}\n@comment{{jabref {{ x\n@misc{{a, {A}}}", [(1, 3, "a")]),
        (f"% @misc{{z,\n% {A}\n% }}\n@misc{{a, {A}}}\n% @misc{{z, {A}}}\n@misc{{b, {A}}}",
         [(1, 4, "a"), (2, 6, "b")]),
        (f"Mail me@home (Bob)\n@misc{{a, {A}}}\nor you@x.y {{hi}}", [(1, 2, "a")]),
        ("Only text, @ home\n", []),
        ("", []),
    ],
)  # fmt: skip
def test_recovery(text: str, expected: list[tuple[int, int, str | None]]) -> None:
    assert outline(read(text)) == expected


def test_an_at_sign_that_begins_a_line_of_an_abstract() -> None:
    text = "@misc{a,\n abstract = {We do it as in\n@foo (bar) and\n@cite{x} is it.}}\n@misc{b}"
    record, rejected = read(text)
    assert isinstance(record, Record)
    assert record.abstract == "We do it as in\n@foo (bar) and\n@citex is it."
    assert isinstance(rejected, Rejected)
    assert rejected.line == 5


def test_the_reason_names_the_entry() -> None:
    [rejected] = read("\n@article{lee26,\n title = {T")
    assert rejected == Rejected(
        "a.bib",
        1,
        "@article lee26 cannot be read: it is never closed, so a brace or a quotation mark is "
        "missing. Mend it in the file.",
        2,
    )


def test_the_entry_is_kept_for_bibliographies() -> None:
    long = ",".join(f"f{n} = {{{'x' * 900}}}" for n in range(20))
    record = only(f"@misc{{a, title = {{T}}, author = {{Lee, Ann}}, {long}, {A}}}")
    paper = to_paper(record)
    assert isinstance(paper, Paper)
    entry = cited(paper)
    assert entry is not None
    assert entry.startswith("@misc{a,   title = {T},   author = {Lee, Ann},   f")
    assert ABSTRACT not in entry
    assert MAX_BIBTEX - 1000 < len(entry) <= MAX_BIBTEX


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("@article{a,\n title = {T}", True),
        ("% Encoding: UTF8\n\n  @Comment{x}\n", True),
        ("@BOOK{circ1,\n  DATE = {1911}", True),
        ("}@misc{a, x = 1}", False),
        ("We mail bob@x.org {a, b}.\n\n@bob, c = d", False),
        ('{"bibtex": "@article{a, title = {T}}"}', False),
        ("", False),
    ],
)
def test_detection(head: str, expected: bool) -> None:
    assert looks_like(head) is expected


# Invariants

words = st.text(st.sampled_from("abcdeéßλ日 "), min_size=1, max_size=20).map(
    lambda text: " ".join(text.split()) or "x"
)
entries = st.lists(
    st.fixed_dictionaries(
        {"title": words, "note": words, "year": st.integers(1900, 2030)},
        optional={"abstract": words},
    ),
    max_size=6,
)


@given(entries, st.sampled_from(["{}", '""']), st.sampled_from(["{}", "()"]))
def test_every_entry_comes_out(fields: list[dict[str, object]], quotes: str, outer: str) -> None:
    text = "".join(
        f"@misc{outer[0]}k{n},\n"
        + ",\n".join(f" {name} = {quotes[0]}{value}{quotes[1]}" for name, value in entry.items())
        + f"\n{outer[1]}\n\n"
        for n, entry in enumerate(fields)
    )
    found = read(text)
    assert len(found) == len(fields)
    for n, (one, entry) in enumerate(zip(found, fields, strict=True)):
        assert isinstance(one, Record) == ("abstract" in entry)
        if isinstance(one, Record):
            assert (one.id, one.title, one.abstract) == (
                f"k{n}", entry["title"], entry["abstract"],
            )  # fmt: skip
            assert (one.metadata["year"], one.metadata["note"]) == (entry["year"], entry["note"])


SAMPLE = (
    '@string{acl = "ACL"}\n% a note\n@inproceedings{a,\n  title = {On {A} and \\"o},\n'
    f"  booktitle = acl # { {1} },\n  crossref = {{p}},\n  {A},\n}}\n\n"
    f'@proceedings(p, title = "P", year = 1999)\n@comment{{x}}\n@misc{{b, {A}}}\n'
)


@settings(max_examples=300, deadline=2000)
@given(st.data())
def test_damaged_text_neither_crashes_nor_hangs(data: st.DataObject) -> None:
    text = SAMPLE
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(0, len(text)))
        cut = data.draw(st.integers(0, 12))
        new = data.draw(st.sampled_from(["", "{", "}", '"', "@", ",", "=", "#", "\\", "\n@misc{"]))
        text = text[:at] + new * data.draw(st.integers(1, 30)) + text[at + cut :]
    found = read(text)
    positions = [r.source.position if isinstance(r, Record) else r.position for r in found]
    assert sorted(positions) == list(range(1, len(found) + 1))
    assert all(1 <= one.line <= text.count("\n") + 1 for one in found)


@pytest.mark.parametrize("unit", ["{", "}", "@", "@a{", "\n", "\n@a (b", "#", '"', "a = ", "\\{"])
def test_a_run_of_one_thing_takes_no_time(unit: str) -> None:
    text = f"@misc{{a, {A}, x = {{{unit * 5_000}\n@misc{{b, {A}}}\n"
    start = time.perf_counter()
    found = read(text)
    assert time.perf_counter() - start < 2
    last = found[-1]
    assert isinstance(last, Record)
    assert last.id == "b"
