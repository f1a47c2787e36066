from __future__ import annotations

import csv
import io
import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.readers.tables import looks_like, records
from rag.types import Record, Rejected

# Over 200 characters: what a column of abstracts is known by where no name says so.
LONG = "A model of many words is trained on them, then it is tried on other words; it holds. " * 3


def lines_of(text: str) -> list[str]:
    """As a stream gives them: parted at line feeds only."""
    return list(io.StringIO(text.replace("\r\n", "\n").replace("\r", "\n"), newline="\n"))


def read(text: str, **columns: str) -> list[Record | Rejected]:
    return list(records(lines_of(text), "a.csv", columns))


def shown(text: str, **columns: str) -> list[tuple[int, str | None, str]]:
    """Line, title and abstract of papers; line, None and reason of the others."""
    return [
        (item.line, item.title, item.abstract)
        if isinstance(item, Record)
        else (item.line, None, item.reason)
        for item in read(text, **columns)
    ]


def the_paper(text: str) -> Record:
    assert looks_like(text)
    (paper,) = read(text)
    assert isinstance(paper, Record)
    return paper


def test_scopus() -> None:
    paper = the_paper(
        '"Authors","Author full names","Title","Year","Source title","DOI","Link","Abstract",'
        '"Author Keywords","EID"\n'
        '"Müller A.; Lee B.","Müller, Ann (1); Lee, Bo (2)","On ""edges""","2024","Graphs",'
        '"10.1000/AB.1","https://example.org/1","Edges are drawn.","edges; graphs","2-s2.0-1"\n'
    )
    assert (paper.title, paper.abstract) == ('On "edges"', "Edges are drawn.")
    assert paper.metadata["authors"] == ["A. Müller", "B. Lee"]
    assert paper.metadata["year"] == 2024
    assert paper.metadata["venue"] == "Graphs"
    assert paper.metadata["keywords"] == ["edges", "graphs"]
    assert paper.metadata["doi"] == "10.1000/ab.1"


def test_zotero() -> None:
    paper = the_paper(
        '"Key","Item Type","Publication Year","Author","Title","Publication Title","DOI","Url",'
        '"Abstract Note","Manual Tags"\n'
        '"AB12","conferencePaper","2023","Lee, Ann; Chen, Bo","On A","Proceedings of A","",'
        '"https://example.org/a","We do A.\nThen B, too.","a; b"\n'
    )
    assert (paper.id, paper.title) == ("AB12", "On A")
    assert paper.abstract == "We do A.\nThen B, too."
    assert paper.metadata["authors"] == ["Ann Lee", "Bo Chen"]
    assert paper.metadata["venue"] == "Proceedings of A"
    assert paper.metadata["url"] == "https://example.org/a"


def test_web_of_science_has_tabs_no_quoting_and_keywords_named_id() -> None:
    paper = the_paper(
        "PT\tAU\tTI\tSO\tDE\tID\tAB\tPY\tDI\tUT\t\n"
        'J\tLee, A; Chen, B\t"Deep" edges\tGRAPHS\tedges\tNODES\tWe say "no", and leave.\t2022\t'
        "10.1000/c\tWOS:0001\t\n"
    )
    assert (paper.id, paper.title) == ("WOS:0001", '"Deep" edges')
    assert paper.abstract == 'We say "no", and leave.'
    assert paper.metadata["year"] == 2022
    assert paper.metadata["keywords"] == ["edges"]
    assert paper.metadata["Keywords Plus"] == ["NODES"]


def test_embase_by_column() -> None:
    paper = the_paper(
        "Title,Author Names,Source,Abstract,Emtree Drug Index Terms (Major Focus),keywords\n"
        'On A,"Liu R., Adler D.G.",Cysts (2004) 102:4 (2-8). Date of Publication: 25 Aug 2004,'
        'We do A.,,"cyst (diagnosis, surgery), article"\n'
    )
    assert paper.metadata["authors"] == ["R. Liu", "D.G. Adler"]
    assert (paper.metadata["venue"], paper.metadata["year"]) == ("Cysts", 2004)
    assert paper.metadata["keywords"] == ["cyst (diagnosis, surgery)", "article"]


def test_embase_by_row() -> None:
    text = (
        '"TITLE","On A"\n"AUTHOR NAMES","Liu R.","Adler D.G."\n"ABSTRACT","We do A."\n\n'
        '"TITLE","On B"\n"ABSTRACT","We do\nB."\n"TITLE","On C"\n"ABSTRACT","We do C."\n'
    )
    assert looks_like(text)
    assert shown(text) == [
        (1, "On A", "We do A."),
        (5, "On B", "We do\nB."),
        (8, "On C", "We do C."),
    ]
    paper = read(text)[0]
    assert isinstance(paper, Record)
    assert paper.metadata["authors"] == ["R. Liu", "D.G. Adler"]


def test_pubmed_has_no_abstracts_and_says_so() -> None:
    text = 'PMID,Title,Authors,Journal/Book,Publication Year\n1,On A,"Lee A, Chen B",J,2020\n'
    assert looks_like(text)
    (rejected,) = read(text)
    assert rejected == Rejected(
        "a.csv",
        1,
        'No column is known to hold the abstracts; the columns are "PMID", "Title", "Authors", '
        '"Journal/Book", "Publication Year". Name it: --map abstract=COLUMN.',
        2,
    )


@pytest.mark.parametrize(
    "text",
    [
        "id;title;abstract\na1;On A;We do A, and B.\n",
        "id\ttitle\tabstract\na1\tOn A\tWe do A, and B.\n",
        "id|title|abstract\na1|On A|We do A, and B.\n",
        'id,title,abstract\na1,On A,"We do A, and B."\n',
        'id, title, abstract\na1, On A, "We do A, and B."\na2, On B, "We do B."\n',
        "ID ; Paper Title ;ABSTRACT \r\na1;On A;We do A, and B.\r\n",
        'sep=;\n"id";"title";"abstract"\n"a1";"On A";"We do A, and B."\n',
        '"Searched for: graphs"\n"5 results, 2026"\n\nid,title,abstract\na1,On A,"We do A, and B."',
        'id,title,abstract,,\na1,On A,"We do A, and B.",,\n\n,,,,\n',
        'id,title,abstract,abstract\na1,On A,"We do A, and B.",\n',
    ],
)
def test_every_way_to_write_a_table(text: str) -> None:
    assert looks_like(text)
    paper = read(text)[0]
    assert isinstance(paper, Record)
    assert (paper.id, paper.title, paper.abstract) == ("a1", "On A", "We do A, and B.")
    assert len(read(text)) == 1 + text.count("On B")


def test_blank_rows_and_repeated_headers_are_no_records() -> None:
    text = "title,abstract\nOn A,We do A.\n\n,\ntitle,abstract\nOn B,We do B.\n"
    assert shown(text) == [(2, "On A", "We do A."), (6, "On B", "We do B.")]
    assert [item.source.position for item in read(text) if isinstance(item, Record)] == [1, 2]


def test_cells_too_few_or_too_many() -> None:
    text = "title,abstract,year\nOn A,We do A.\nOn B,We do B,2020,x\nalone\nOn C,We do C.,2021,,\n"
    assert shown(text) == [
        (2, "On A", "We do A."),
        (
            3,
            None,
            "The row has 4 cells, the header 3: text that holds a comma or a line end must stand "
            "in quotes.",
        ),
        (
            4,
            None,
            "The row has 1 cell, the header 3: text that holds a comma or a line end must stand "
            "in quotes.",
        ),
        (5, "On C", "We do C."),
    ]


BROKEN = (
    "no row of the table: a quote is not closed, or closed too early. "
    'Double the quotes inside a cell ("") or export it again.'
)


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        # Never closed, and no other quote in the file.
        (
            '1,On A,"We do A.,2020\n2,On B,We do B.,2021\n',
            [(2, "On A", '"We do A.'), (3, "On B", "We do B.")],
        ),
        # Closed by the next row's quote.
        (
            '1,On A,"We do A, too.,2020\n2,On B,"We do B, too.",2021\n',
            [(2, None, f"Line 2 is {BROKEN}"), (3, "On B", "We do B, too.")],
        ),
        # The row after the broken one is several lines long.
        (
            '1,On A,"We do A, too.,2020\nstill A\n2,On B,"We do\nB.",2021\n',
            [(2, None, f"Lines 2 to 3 are {BROKEN}"), (4, "On B", "We do\nB.")],
        ),
        # Quotes that are not doubled, or have a backslash.
        (
            '1,On A,"We say "no", and leave.",2020\n2,On B,"Say \\"B\\", too.",2021\n',
            [(2, "On A", 'We say "no", and leave.'), (3, "On B", 'Say "B", too.')],
        ),
        ('1,On A,"We say "no"\nand leave.",2020\n', [(2, "On A", 'We say "no"\nand leave.')]),
        # The file is cut off.
        (
            '1,On A,We do A.,2020\n2,On B,"We do B\nand, of course,\nC, D, and',
            [(2, "On A", "We do A."), (3, None, f"Lines 3 to 5 are {BROKEN}")],
        ),
    ],
)
def test_a_stray_quote_costs_its_own_row(rows: str, found: list[object]) -> None:
    assert shown("id,title,abstract,year\n" + rows) == found


def test_a_quote_left_open_swallows_no_rows_unseen() -> None:
    rows = [f"{n},On {n},We do {n}.,2020\n" for n in range(1, 31)]
    rows[4] = '5,On 5,"We do 5.,2020\n'
    rows[24] = '25,On 25,We do 25.",2020\n'  # closes what row 5 opened, with the right width
    found = shown("id,title,abstract,year\n" + "".join(rows))
    assert [title for _, title, _ in found] == [f"On {n}" for n in range(1, 31)]


def test_a_table_quoted_in_an_abstract_is_part_of_it() -> None:
    abstract = "We list:\na,b,c,d\ne,f,g,h\nThat is all."
    assert shown(f'id,title,abstract,year\n1,On A,"{abstract}",2020\n') == [(2, "On A", abstract)]


def test_a_long_cell_is_read_whole() -> None:
    csv.field_size_limit(131_072)
    for abstract in ("word " * 100_000, "word\n" * 100_000):
        text = f'title,abstract\nOn A,"{abstract}"\nOn B,We do B.\n'
        assert shown(text) == [
            (2, "On A", abstract),
            (3 + abstract.count("\n"), "On B", "We do B."),
        ]


def test_a_quote_open_for_a_million_characters_is_given_up() -> None:
    rows = "".join(f"On {n},{LONG.strip()},x\n" for n in range(6_000))
    found = shown(f'title,abstract,note\nOn A,"We do A.,x\n{rows}')
    assert len(found) == 6_001
    assert [title for _, title, _ in found[:3]] == ["On A", None, None]  # commas are not quoted
    quoted = rows.replace(LONG.strip(), "w " * 120)
    assert len(shown(f'title,abstract,note\nOn A,"We, do A.,x\n{quoted}')) == 6_001


def test_null_characters_do_no_harm() -> None:
    assert shown("title,abstract\nOn\0 A,We do\0 A.\n") == [(2, "On\0 A", "We do\0 A.")]


def test_one_unnamed_column_of_long_texts_holds_the_abstracts() -> None:
    text = f'Nr;Kurzfassung;Jahr\n1;"{LONG}";2020\n2;"{LONG}";2021\n'
    assert looks_like(text)
    assert shown(text) == [(2, None, LONG), (3, None, LONG)]
    assert len(read(text.split("\n", 1)[1])) == 2  # no header at all


def test_of_two_long_columns_neither_is_taken_unless_named() -> None:
    text = f'Nr;Kurzfassung;Volltext\n1;"{LONG}";"{LONG} 1"\n2;"{LONG}";"{LONG} 2"\n'
    reason = (
        "No column is known to hold the abstracts; the columns are "
        '"Nr", "Kurzfassung", "Volltext". Name it: --map abstract=COLUMN.'
    )
    assert shown(text) == [(2, None, reason), (3, None, reason)]
    assert shown(text, abstract="Volltext") == [(2, None, f"{LONG} 1"), (3, None, f"{LONG} 2")]
    assert shown(text, abstract="Volltext", title="Nr")[0] == (2, "1", f"{LONG} 1")
    headless = text.split("\n", 1)[1]
    assert shown(headless, abstract="column 3")[1] == (2, None, f"{LONG} 2")


def test_a_table_of_one_column() -> None:
    text = 'Abstract\n"We do A, and\nB."\nWe do C, and D.\n'
    assert shown(text) == [(2, None, "We do A, and\nB."), (4, None, "We do C, and D.")]


def test_what_is_no_table_is_rejected_whole() -> None:
    (rejected,) = read(
        "Some words that say, at length, nothing.\nMore of them, alas; few | none.\n"
    )
    assert (rejected.source, getattr(rejected, "position", None)) == ("a.csv", 0)
    assert read("") == [] == read("\n\n")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "word",
        "Abstracts of 2026\n\nWe do A, and B.\n\nWe do C, and D.\n",
        "Title, abstract\nWe do A, and B.\nWe do C, D, and E.\n",
        "We show, for example, that A holds.\nWe show, in turn, that B holds.\n" * 20,
        "One, two; three.\n" * 50,
        "| id | title | abstract |\n|---|---|---|\n| 1 | On A | We do A. |\n",
        "id | title | abstract\n--- | --- | ---\n1 | On A | We do A.\n",
        "# Papers\n\n- **On A**, 2026: We do A.\n- **On B**, 2026: We do B.\n",
        '{"id": 1, "title": "On A", "abstract": "We do A."}\n' * 3,
        "TY  - JOUR\nTI  - On A, B\nAB  - We do A, and B.\nER  - \n",
        "@article{a,\n  title = {On A},\n  author = {Lee, Ann},\n  abstract = {We do A, B.}\n}\n",
        "PMID- 1\nTI  - On A, and B\nAB  - We do A,\n      and B.\n",
        "title,abstract\n",
        "def f(id, title, abstract):\n    return Paper(id, title, abstract)\n",
        "10,000 words\n20,000 words\n30,000 words\n",
    ],
)
def test_what_does_not_look_like_a_table(text: str) -> None:
    assert not looks_like(text)


def test_the_head_may_be_cut_anywhere() -> None:
    text = "id,title,abstract\n" + "".join(f'{n},"On {n}","{LONG}"\n' for n in range(300))
    assert all(looks_like(text[: 1_000 + cut]) for cut in range(300))


CELLS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\r")
    | st.sampled_from(",;\t|\"\n'\\ "),
    max_size=30,
)
WORDS = st.text("abcxyzÄé0123", min_size=1, max_size=10)
# Numbers could be those of the rows.
IDS = WORDS.map("a{}".format)


@given(
    st.lists(st.tuples(IDS, CELLS, WORDS, CELLS, CELLS), min_size=1, max_size=6),
    st.sampled_from([",", ";", "\t", "|"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    st.sampled_from(["\n", "\r\n"]),
)
@settings(max_examples=300, deadline=None)
def test_what_a_writer_writes_is_read(
    rows: list[tuple[str, ...]], delimiter: str, quoting: int, end: str
) -> None:
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter, quoting=quoting, lineterminator=end)  # type: ignore[arg-type]
    writer.writerow(("id", "note", "title", "abstract", "comment"))
    writer.writerows(rows)
    found = read(out.getvalue())
    assert len(found) == len(rows)
    for (identifier, _, title, abstract, _), item in zip(rows, found, strict=True):
        if isinstance(item, Rejected):
            assert not abstract.strip(), item.reason
        else:
            assert (item.id, item.title, item.abstract) == (identifier, title, abstract)


SAMPLE = (
    "Preamble, of no use\nid,title,abstract,year\n"
    + "".join(f'{n},"On ""{n}"", or","We do {n}, and\nmore; of it|.",2020\n' for n in range(8))
).encode()


@given(st.lists(st.tuples(st.integers(0, len(SAMPLE)), st.integers(0, 255), st.integers(0, 3))))
@settings(max_examples=200, deadline=None)
def test_damage_neither_crashes_nor_hangs(damage: list[tuple[int, int, int]]) -> None:
    data = bytearray(SAMPLE)
    for at, byte, removed in damage:
        data[at : at + removed] = bytes([byte])
    text = data.decode("utf-8", "replace")
    begun = time.monotonic()
    looks_like(text)
    found = read(text)
    assert time.monotonic() - begun < 2
    positions = [
        item.source.position if isinstance(item, Record) else item.position for item in found
    ]
    assert positions in ([0], list(range(1, len(found) + 1)))
    lines = [item.line for item in found]
    assert lines == sorted(lines)


def test_stray_quotes_in_every_row_take_no_longer_than_others() -> None:
    generator = random.Random(7)
    words = "graph edge node model of the with".split()
    rows = []
    for n in range(3_000):
        abstract = " ".join(generator.choices(words, k=40))
        rows.append(f'{n},On {n},"{abstract},2020\n')
    begun = time.monotonic()
    assert len(shown("id,title,abstract,year\n" + "".join(rows))) == 3_000
    assert time.monotonic() - begun < 10


def test_many_keywords_take_no_time() -> None:
    for keywords in ("a," * 50_000, "(," * 50_000, "(a, b), " * 10_000):
        begun = time.monotonic()
        (paper,) = read(f'title,abstract,keywords\nOn A,We do A.,"{keywords}"\n')
        assert isinstance(paper, Record)
        assert time.monotonic() - begun < 2
