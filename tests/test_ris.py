from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.readers.ris import looks_like, records
from rag.types import Record, Rejected, Source

A = "We show that one thing follows from another."


def read(text: str, **columns: str) -> list[Record | Rejected]:
    return list(records(text.splitlines(keepends=True), "a.ris", columns))


def only(text: str) -> Record:
    [record] = read(text)
    assert isinstance(record, Record)
    return record


def outline(text: str) -> list[tuple[int, int, str | None]]:
    """Position, line, and the title or, in capitals, the kind of reason."""
    shown = []
    for one in read(text):
        if isinstance(one, Record):
            assert one.abstract == A
            shown.append((one.source.position, one.line, one.title))
        else:
            kind = next(k for k in ("No abstract", "Text outside") if one.reason.startswith(k))
            shown.append((one.position, one.line, kind.upper()))
    return shown


# Dialects


def test_zotero() -> None:
    record = only(
        "TY  - JOUR\nTI  - On Étés\nAU  - Müller, Anna\nAU  - de la Cruz, Juan\n"
        f"T2  - Journal of Health &amp; Place\nAB  - {A}\nDA  - 2021/02/01/\nPY  - 2021\n"
        "DO  - 10.1234/Ab.5\nVL  - 3\nSN  - 1234-5678\nUR  - https://x.org/a\n"
        "L2  - https://x.org/b\nL2  - https://x.org/c\nKW  - graphs\n"
        "KW  - Child, Preschool\nER  - \n"
    )
    assert record.source == Source("a.ris", 1)
    assert (record.line, record.title, record.abstract) == (1, "On Étés", A)
    assert record.metadata == {
        "authors": ["Anna Müller", "Juan de la Cruz"],
        "year": 2021,
        "venue": "Journal of Health & Place",
        "keywords": ["graphs", "Child, Preschool"],
        "doi": "10.1234/ab.5",
        "url": "https://x.org/a",
        "TY": "JOUR",
        "DA": "2021/02/01/",
        "VL": "3",
        "SN": "1234-5678",
        "L2": ["https://x.org/b", "https://x.org/c"],
    }


def test_ovid() -> None:
    record_1, record_2 = read(
        "1.\nTY  - JOUR\nID  - 2019-00001-001\nDO  - http://dx.doi.org/10.1234/x\nT1  - First.\n"
        f"A1  - Lee, Ann\nY1  - 2019//\nN2  - {A}\nKW  - *Graphs\nKW  - Nets\nJF  - J. of A\n"
        "ER  - \nNL  - J A\n\n"
        "Link to the Ovid Full Text or citation: https://x.org/login?a=b&c=d\n\n"
        f"2.\nTY  - JOUR\nID  - 2019-00002-001\nT1  - Second.\nN2  - {A}\nER  - \nNL  - J A\n"
    )
    assert isinstance(record_1, Record)
    assert (record_1.line, record_1.id, record_1.title) == (2, "2019-00001-001", "First.")
    assert record_1.metadata == {
        "authors": ["Ann Lee"],
        "year": 2019,
        "venue": "J. of A",
        "keywords": ["Graphs", "Nets"],
        "doi": "10.1234/x",
        "TY": "JOUR",
        "Y1": "2019//",
    }
    assert isinstance(record_2, Record)
    assert (record_2.source.position, record_2.line, record_2.title) == (2, 18, "Second.")


def test_proquest_and_its_two_numbers() -> None:
    record = only(f"TY  - JOUR\nT1  - T\nAN  - 2214991469; 51887\nAB  - {A}\nER  -\n")
    assert record.id == "2214991469"


def test_scopus_and_the_works_it_cites() -> None:
    record = only(
        f"TY  - JOUR\nTI  - T\nSN  - 12345678 (ISSN)\nAB  - {A}\nN1  - Export Date: 1 May 2020\n"
        "N1  - References: Lee, A., On A (2001) J. A, 1, pp. 2-3;\n"
        "Day, B., On B (2002) J. B\nUR  - https://www.scopus.com/x?eid=2&doi=10.1234%2fx\nER  -\n"
    )
    assert record.metadata["N1"] == "Export Date: 1 May 2020"
    assert record.metadata["SN"] == "12345678 (ISSN)"


def test_embase_and_endnote() -> None:
    first, second = read(
        f"TY  - JOUR\nID  - 17\nT1  - First\nA1  - Lee A.; Day B.\nPY  - 2020\nN2  - {A}\n"
        "AB  - \nKW  - one\ntwo words\nthree\nU2  - L2003\nER  - \n\n"
        f"TY  - CHAP\nID  - 18\nT1  - Second\nA2  - Ed, Itor\nAB  - {A}\nN2  - Some notes.\n"
        "KW  - a, b, c\nER  - \n"
    )
    assert isinstance(first, Record)
    # The file's own numbering is no ID: the next file has the same.
    assert (first.id, first.metadata["record number"]) == (None, "17")
    assert first.abstract == A
    assert first.metadata["authors"] == ["A. Lee", "B. Day"]
    assert first.metadata["keywords"] == ["one", "two words", "three"]
    assert isinstance(second, Record)
    assert second.abstract == A
    assert second.metadata["N2"] == "Some notes."
    assert second.metadata["authors"] == ["Itor Ed"]
    assert second.metadata["keywords"] == ["a", "b", "c"]


def test_pubmed() -> None:
    first, second = read(
        "\nPMID- 31234567\nOWN - NLM\nDP  - 2019 Oct 3\nTI  - On lines that are\n      wrapped.\n"
        "LID - 10.1234/abc.56 [doi]\nAB  - We wrap, so\n      that RNA - or others - stay.\n"
        "      PTSD- related too.\nFAU - Müller, Anna\nAU  - Müller A\nJT  - Journal of A\n"
        "TA  - J A\nMH  - *Wrapping/methods\nOT  - lines\nAID - S1234 [pii]\n\n"
        f"PMID- 31234568\nTI  - Second.\nAB  - {A}\n"
    )
    assert isinstance(first, Record)
    assert (first.line, first.id, first.title) == (2, "31234567", "On lines that are wrapped.")
    assert first.abstract == "We wrap, so\nthat RNA - or others - stay.\nPTSD- related too."
    assert first.metadata["authors"] == ["Anna Müller"]
    assert first.metadata["venue"] == "Journal of A"
    assert first.metadata["year"] == 2019
    assert first.metadata["doi"] == "10.1234/abc.56"
    assert first.metadata["MH"] == ["Wrapping/methods"]
    assert isinstance(second, Record)
    assert (second.source.position, second.line, second.id) == (2, 19, "31234568")


@pytest.mark.parametrize(
    "text",
    [
        f"TY - JOUR\nTI - T\nAB - {A}\nER -\n",
        f"TY  - JOUR\r\nTI\t- T\r\nAB \t- {A}\r\nER\r\n",
        f"TY  -JOUR\nTI  -T\nAB  -{A}\nER  -",
        f"  TY  - JOUR\n  TI  - T\n  AB  - {A}\n  ER  -\n",
        f"TI  - T\nAB  - {A}\nER  - \n",
        f"TI  - T\nAB  - {A}\n",
    ],
)
def test_blanks_and_missing_frames(text: str) -> None:
    record = only(text)
    assert (record.title, record.abstract, record.line) == ("T", A, 1)


def test_lines_that_only_look_like_tags() -> None:
    record = only(
        "TY  - JOUR\nAB  - We weigh images by\nT1- and T2-weighting, or by\nT1 - as some do.\n"
        "\nMR  imaging - too.\nER  - \n"
    )
    assert record.abstract == (
        "We weigh images by\nT1- and T2-weighting, or by\nT1 - as some do.\n\nMR  imaging - too."
    )
    assert record.title is None


# Records cut apart


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # ER is missing; so is TY
        (f"TY  - JOUR\nTI  - a\nAB  - {A}\nTY  - JOUR\nTI  - b\nAB  - {A}\n",
         [(1, 1, "a"), (2, 4, "b")]),
        (f"TI  - a\nAB  - {A}\nER  -\nTI  - b\nAB  - {A}\nER  -\n", [(1, 1, "a"), (2, 4, "b")]),
        (f"TI  - a\nAB  - {A}\n\nTI  - b\nAB  - {A}\n", [(1, 1, "a"), (2, 4, "b")]),
        (f"TY  - X\nTI  - a\nAB  - {A}\nER  -\nTI  - b\nAB  - {A}\nTY  - X\nTI  - c\nAB  - {A}\n",
         [(1, 1, "a"), (2, 5, "b"), (3, 7, "c")]),
        # ER with a text, as a list of all tags has it, ends nothing
        (f"TY  - X\nTI  - a\nER  - End\nAB  - {A}\nER  -\nER  -\n", [(1, 1, "a")]),
        # Text between records
        (f"Some words that are of no use here.\nTY  - X\nTI  - a\nAB  - {A}\nER  -\n"
         "\nAgain there are words of no use.\nMore of them.\n\n<2>\n"
         f"TY  - X\nTI  - b\nAB  - {A}\nER  -\nProvider: Some One\n",
         [(1, 1, "TEXT OUTSIDE"), (2, 2, "a"), (3, 7, "TEXT OUTSIDE"), (4, 11, "b")]),
        (f"TY  - X\nTI  - a\nAB  - {A}\nER  -\nNL  - J\n\nWords that are of no use here.\n",
         [(1, 1, "a"), (2, 7, "TEXT OUTSIDE")]),
        # No abstract
        ("TY  -\nER  -\n\nTY  - GEN\nTI  - a\nER  -\n",
         [(1, 1, "NO ABSTRACT"), (2, 4, "NO ABSTRACT")]),
        (f"AU  - Lee\nPY  - 2000\nJO  - J\nER  -\nTY  - X\nTI  - a\nAB  - {A}\n",
         [(1, 1, "NO ABSTRACT"), (2, 5, "a")]),
        ("", []),
        ("Nothing here.\n", []),
    ],
)  # fmt: skip
def test_cutting(text: str, expected: list[tuple[int, int, str | None]]) -> None:
    assert outline(text) == expected


def test_an_abstract_in_parts_one_of_them_twice() -> None:
    record = only(
        "TY  - X\nAB  - First part.\nAB  - Second part,\n\nafter a blank line.\nAB  - First part.\n"
    )
    assert record.abstract == "First part.\nSecond part,\n\nafter a blank line."


def test_fields_named_by_the_user() -> None:
    record = read(f"TY  - X\nN1  - {A}\nLB  - k1\nER  -\n", abstract="N1", id="LB")[0]
    assert isinstance(record, Record)
    assert (record.abstract, record.id) == (A, "k1")


def test_reasons() -> None:
    assert read("TY  - X\nTI  - a\nER  -\n\nSome words that are of no use here.\n") == [
        Rejected(
            "a.ris",
            1,
            'No abstract: the field "abstract" is missing; its fields are "TY", "TI".',
            1,
            whole=True,
        ),
        Rejected(
            "a.ris",
            2,
            "Text outside any record: 'Some words that are of no use here.'. "
            "A record begins with a TY line.",
            5,
        ),
    ]


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("1.\nTY  - JOUR\n", True),
        ("\nPMID- 31234567\nOWN - NLM\n", True),
        ("TI  - a\nAU  - b\nAB  - c\n", True),
        ("AB  - c\n", False),
        ("TYPE  - a\nWe do TY  - b.\n", False),
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
        {"TY": st.just("JOUR"), "TI": words, "PY": st.integers(1900, 2030), "N1": words},
        optional={"AB": st.lists(words, min_size=1, max_size=3)},
    ),
    max_size=6,
)


@given(entries, st.booleans(), st.sampled_from(["\n", "\n\n", "\n\n3.\n\n"]))
def test_every_record_comes_out(fields: list[dict[str, object]], ended: bool, between: str) -> None:
    text = ""
    for entry in fields:
        for tag in sorted(entry, key="TY TI PY N1 AB".split().index):
            value = entry[tag]
            lines = value if isinstance(value, list) else [str(value)]
            text += f"{tag}  - " + "\n".join(lines) + "\n"
        text += f"ER  - {between}" if ended else "\n"
    found = read(text)
    assert len(found) == len(fields)
    for one, entry in zip(found, fields, strict=True):
        assert isinstance(one, Record) == ("AB" in entry)
        if isinstance(one, Record):
            abstract = entry["AB"]
            assert isinstance(abstract, list)
            assert (one.title, one.abstract.strip()) == (entry["TI"], "\n".join(abstract))
            assert (one.metadata["year"], one.metadata["N1"]) == (entry["PY"], entry["N1"])


SAMPLE = (
    f"1.\nTY  - JOUR\nTI  - a\nAU  - Lee, Ann\nAB  - {A}\nand more.\nKW  - x\nER  - \nNL  - J\n\n"
    f"PMID- 1234567\nTI  - b\n      c\nAB  - {A}\n\nTI  - d\nAB  - {A}\nER  -\n"
)


@settings(max_examples=300, deadline=2000)
@given(st.data())
def test_damaged_text_neither_crashes_nor_hangs(data: st.DataObject) -> None:
    text = SAMPLE
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(0, len(text)))
        cut = data.draw(st.integers(0, 12))
        new = data.draw(
            st.sampled_from(["", "\n", "TY  - ", "\nER", "  - ", "AB", "\t", "- ", "\0"])
        )
        text = text[:at] + new * data.draw(st.integers(1, 30)) + text[at + cut :]
    found = read(text)
    positions = [r.source.position if isinstance(r, Record) else r.position for r in found]
    assert positions == list(range(1, len(found) + 1))
    assert all(1 <= one.line <= len(text.splitlines()) for one in found)


@pytest.mark.parametrize("unit", ["-", " ", "\n", "TY  - ", "\nTY  - ", "\nAB", "\nNL  - ", "1\n"])
def test_a_run_of_one_thing_takes_no_time(unit: str) -> None:
    text = f"TY  - X\nAB  - {A}\nER  -\n{unit * 20_000}\nTY  - X\nTI  - b\nAB  - {A}\n"
    start = time.perf_counter()
    found = read(text)
    assert time.perf_counter() - start < 2
    last = found[-1]
    assert isinstance(last, Record)
    assert (last.title, last.abstract) == ("b", A)
