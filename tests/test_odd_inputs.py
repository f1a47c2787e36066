"""What comes out of every real export at hand, file by file, as `rag.readers.read` gives it."""

from __future__ import annotations

import gzip
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from rag.papers import to_paper
from rag.readers import read, tables
from rag.types import Paper, Record, Rejected

SHARED = Path(__file__).parents[2] / "shared"
ODD_INPUTS = SHARED / "odd-inputs"
if not ODD_INPUTS.is_dir():
    pytest.skip(f"{ODD_INPUTS} is absent", allow_module_level=True)


@dataclass(frozen=True)
class Expected:
    """Papers and, by reason, rejected; how many papers have an ID of the source's own.

    `metadata` counts the papers with authors, year, venue, keywords and DOI. `last` is the last
    paper: its title, its authors, its year.
    """

    papers: int
    no_abstract: int = 0
    too_short: int = 0
    no_column: int = 0
    own_ids: int = 0
    metadata: tuple[int, int, int, int, int] = (0, 0, 0, 0, 0)
    last: tuple[str, list[str], int | None] | None = None


CESAR = (1, 1, 1, 1, 0)
GENERIC = ("The title of the reference", ["Karlus Marxus", "Astrid Lindgren"], 2006)
CYST = (
    "Completely Isolated Retroperitoneal Enteric Duplication Cyst with Adenocarcinoma "
    "Transformation Managed with Robotic Radical Nephrectomy",
    ["K. Faraj", "L. Edwards", "A. Gupta", "B. Seifman"],
    2017,
)
TABLE = {
    # BibTeX
    "article_no_braces.bib": Expected(1, own_ids=1, metadata=CESAR,
        last=("An amazing title", ["Jean Césarü"], 2013)),
    "article_start_with_bom.bib": Expected(1, own_ids=1, metadata=CESAR,
        last=("An amazing title", ["Jean César"], 2013)),
    "article_with_special_characters.bib": Expected(1, own_ids=1, metadata=CESAR,
        last=("An amazing title", ["Jean Césarü"], 2013)),
    "encoding.bib": Expected(1, own_ids=1, metadata=CESAR,
        last=("An amazing title: à", ["Jean César"], 2013)),
    "crossref_cascading_cycle.bib": Expected(0, no_abstract=2),
    "biber-examples.bib": Expected(6, no_abstract=112, own_ids=6, metadata=(6, 6, 2, 0, 2),
        last=("A title", ["AAA", "BBB", "CCC", "DDD", "EEE"], 2003)),
    "jabref-97.bib": Expected(458, no_abstract=435, too_short=18, own_ids=458,
        metadata=(458, 458, 455, 147, 432),
        last=("Direct observation of d-orbital holes and Cu–Cu bonding in Cu2O",
              ["J. M. Zuo", "M. Kim", "M. O'Keeffe", "J. C. H. Spence"], 1999)),
    # RIS
    "_baseline.ris": Expected(98, no_abstract=2, own_ids=98, metadata=(98, 98, 98, 68, 98),
        last=("The effect of intra-arterial angiotensin II on the hepatic tumor to non-tumor "
              "blood flow ratio for radioembolization: a systematic review",
              ["van den Hoven", "Maarten L. J. Smits", "Charlotte E.N.M. Rosenbaum",
               "L. Verkooijen", "M. A. A. J. van den Bosch", "Marnix G.E.H. Lam"], 2014)),
    "baseline_zotero.ris": Expected(98, no_abstract=2, metadata=(98, 98, 98, 68, 98),
        last=("Efficacy and safety of selective glucocorticoid receptor modulators in comparison "
              "to glucocorticoids in arthritis, a systematic review",
              ["M. Safy", "M. J. H. de Hair", "J. W. G. Jacobs", "Frank Buttgereit",
               "M. C. Kraan", "J.M. van Laar"], 2017)),
    "baseline_reference_types.ris": Expected(0, no_abstract=61),
    "baseline_tag-notes_labels.ris": Expected(0, no_abstract=32),
    "baseline_tag_and_field_definitions.ris": Expected(0, too_short=1),
    "ovid_psycinfo.ris": Expected(6, own_ids=6, metadata=(6, 6, 6, 3, 6),
        last=("Psychological outcomes of a cognitive behavioral therapy for youth with "
              "inflammatory bowel disease: Results of the happy-ibd randomized controlled trial at "
              "6- and 12-month follow-up.",
              ["Luuk Stapersma", "Gertrude van den Brink", "Jan van der Ende",
               "Eva M Szigethy", "Michael Groeneweg", "Frederieke H de Bruijne",
               "Manon H. J Hillegers", "Johanna C Escher", "Elisabeth M. W. J Utens"], 2019)),
    "proquest.ris": Expected(6, own_ids=6, metadata=(6, 6, 6, 6, 6),
        last=("Bayesian PTSD-trajectory analysis with informed priors based on a systematic "
              "literature search and expert elicitation",
              ["Rens van de Schoot", "Marit Sijbrandij", "Sarah Depaoli", "Sonja D Winter",
               "Miranda Olff", "Nancy E van Loey"], 2018)),
    "pubmed_zotero.ris": Expected(6, metadata=(6, 6, 6, 6, 6),
        last=("Efficacy and safety of Tripterygium wilfordii Hook F preparations for the treatment "
              "of Crohn disease: A systemic review and meta-analysis protocol.",
              ["Jianying Zhang", "Gang Han", "Zhenwei Yu"], 2019)),
    "scopus.ris": Expected(6, metadata=(6, 6, 6, 6, 6),
        last=("Role of brain imaging in disorders of brain-gut interaction: A Rome Working Team "
              "Report",
              ["E.A. Mayer", "J. Labus", "Q. Aziz", "I. Tracey", "L. Kilpatrick",
               "S. Elsenbruch", "P. Schweinhardt", "L. Van Oudenhove", "D. Borsook"], 2019)),
    "ris_issue_1099.txt": Expected(7, metadata=(7, 7, 5, 0, 4),
        last=("Influence of the motor load inertia and torque in the fault diagnosis of rotors in "
              "induction machines",
              ["J. Viola", "M. Strefezza", "J. Restrepo"], 2005)),
    # Tables
    "embase.csv": Expected(6, metadata=(6, 6, 6, 6, 6), last=CYST),
    "embase_newpage.csv": Expected(6, metadata=(6, 6, 6, 6, 6), last=CYST),
    "generic.csv": Expected(2, own_ids=2, metadata=(2, 2, 0, 2, 0), last=GENERIC),
    "generic_column_names_with_spaces.csv": Expected(2, own_ids=2, metadata=(2, 2, 0, 2, 0),
        last=GENERIC),
    "generic_labels_no_abs.csv": Expected(0, no_column=6),
    "generic_partial_labels.csv": Expected(6, own_ids=6, metadata=(6, 6, 0, 6, 0), last=GENERIC),
    "generic_tab.csv": Expected(2, own_ids=2, metadata=(2, 2, 0, 2, 0), last=GENERIC),
    "generic_tab.tsv": Expected(2, own_ids=2, metadata=(2, 2, 0, 2, 0), last=GENERIC),
    # Zotero and CSL
    "zotero-0.json": Expected(34, no_abstract=17, own_ids=34, metadata=(34, 33, 32, 8, 29),
        last=("An Introduction to Variable and Feature Selection",
              ["Isabelle Guyon", "Andre Elisseeff"], None)),
    "zotero-2.json": Expected(24, no_abstract=125, own_ids=6, metadata=(24, 24, 19, 12, 4),
        last=("The Ethics of Free Software", ["Bertrand Meyer"], 2000)),
    "zotero-4.json": Expected(19, no_abstract=1, own_ids=19, metadata=(19, 19, 16, 19, 0),
        last=("Lucretius II: An ethics of motion", ["Thomas Nail"], 2020)),
    "zotero-6.json": Expected(14, no_abstract=12, metadata=(14, 14, 14, 0, 12),
        last=("On the inadequacies of sociological definitions of sport", ["Klaus V. Meier"],
              1981)),
}  # fmt: skip
KINDS = {
    "no_abstract": "No abstract: the field ",
    "too_short": "The abstract has ",
    "no_column": "No column is known to hold the abstracts; the columns are ",
}
# Corpora and lists -> papers, rejected
COUNTED = {
    "papers/000_b091fd10ee383e67.txt": (19, 0),
    "papers/002_c7095ef948581e3e.txt": (19, 0),
    "papers/003_1f031bcbebd7ffba.txt": (19, 0),
    "papers/colm-2025.json": (418, 0),
    "retrieval/cranfield/corpus.jsonl": (1398, 2),
    "retrieval/neurips-2023/corpus.jsonl": (3395, 0),
    "retrieval/scifact/corpus.jsonl": (5183, 0),
}


def outcomes(path: Path) -> list[Record | Rejected]:
    return list(read(path, "f"))


@cache
def sorted_out(path: Path) -> tuple[tuple[Paper, ...], tuple[Rejected, ...]]:
    found = [to_paper(one) if isinstance(one, Record) else one for one in outcomes(path)]
    return (
        tuple(one for one in found if isinstance(one, Paper)),
        tuple(one for one in found if isinstance(one, Rejected)),
    )


def test_every_file_is_in_the_table() -> None:
    assert {path.name for path in ODD_INPUTS.iterdir()} == set(TABLE)
    assert len(TABLE) == 29


@pytest.mark.parametrize("name", TABLE)
def test_what_comes_out(name: str) -> None:
    expected = TABLE[name]
    papers, rejected = sorted_out(ODD_INPUTS / name)
    reasons = Counter(
        next((kind for kind, start in KINDS.items() if one.reason.startswith(start)), one.reason)
        for one in rejected
    )
    assert len(papers) == expected.papers
    assert reasons == Counter({kind: n for kind in KINDS if (n := getattr(expected, kind))})
    assert sum(not paper.id.startswith("p-") for paper in papers) == expected.own_ids
    names = ("authors", "year", "venue", "keywords", "doi")
    assert tuple(sum(n in p.metadata for p in papers) for n in names) == expected.metadata
    if expected.last:
        last = papers[-1]
        shown = (last.title, last.metadata["authors"], last.metadata.get("year"))
        assert shown == expected.last


@pytest.mark.parametrize("name", TABLE)
def test_no_doi_is_an_id(name: str) -> None:
    for paper in sorted_out(ODD_INPUTS / name)[0]:
        assert paper.id.casefold() != paper.metadata.get("doi")


@pytest.mark.parametrize("name", TABLE)
def test_it_is_the_same_when_packed_or_named_otherwise(tmp_path: Path, name: str) -> None:
    data = (ODD_INPUTS / name).read_bytes()
    expected = outcomes(ODD_INPUTS / name)
    for other in (f"{name}.gz", "packed", f"{Path(name).stem}.txt", "no-ending"):
        is_packed = other.endswith(".gz") or other == "packed"
        (tmp_path / other).write_bytes(gzip.compress(data) if is_packed else data)
        assert outcomes(tmp_path / other) == expected


@pytest.mark.parametrize("name", TABLE)
def test_every_record_has_a_position_and_a_line(name: str) -> None:
    found = outcomes(ODD_INPUTS / name)
    places = [one.source.position if isinstance(one, Record) else one.position for one in found]
    assert sorted(places) == list(range(1, len(found) + 1))
    assert all(one.line > 0 for one in found)


def test_lines_lead_to_the_records() -> None:
    lines = (ODD_INPUTS / "jabref-97.bib").read_text("utf-8").split("\n")
    for record in outcomes(ODD_INPUTS / "jabref-97.bib"):
        start = lines[record.line - 1]
        assert start.startswith("@")
        if isinstance(record, Record):
            assert start.endswith(f"{{{record.id},")


@pytest.mark.parametrize("name", TABLE)
def test_no_markup_is_left_in_titles_and_names(name: str) -> None:
    # Braces of crystals, "{111}", are the authors'.
    marks = ("\\", "$", "&amp;", "\ufffd", "Ã", "â€")
    for paper in sorted_out(ODD_INPUTS / name)[0]:
        authors = paper.metadata.get("authors", [])
        assert isinstance(authors, list)
        for text in [paper.title, *authors]:
            assert not [mark for mark in marks if mark in text], text


def test_signs_beyond_ascii_are_right() -> None:
    texts = [paper.text for paper in sorted_out(ODD_INPUTS / "embase.csv")[0]]
    assert [sum(text.count(sign) for text in texts) for sign in "×©"] == [5, 2]


@pytest.mark.parametrize("name", TABLE)
def test_only_tables_look_like_tables(name: str) -> None:
    head = (ODD_INPUTS / name).read_text(encoding="utf-8", errors="replace")[:65_536]
    assert tables.looks_like(head) == name.endswith((".csv", ".tsv"))


@pytest.mark.parametrize("folder", ["papers", "reviews"])
def test_lists_of_abstracts_and_reviews_are_no_tables(folder: str) -> None:
    for path in (SHARED / folder).iterdir():
        assert not tables.looks_like(path.read_text(encoding="utf-8")[:65_536]), path.name


@pytest.mark.parametrize("name", COUNTED)
def test_lists_and_corpora_are_read_whole(name: str) -> None:
    if not (SHARED / name).exists():
        pytest.skip(f"{SHARED / name} is absent")
    papers, rejected = sorted_out(SHARED / name)
    assert (len(papers), len(rejected)) == COUNTED[name]
    assert len({paper.id for paper in papers}) == len(papers)


def test_the_two_of_cranfield_are_named() -> None:
    path = SHARED / "retrieval" / "cranfield" / "corpus.jsonl"
    if not path.exists():
        pytest.skip(f"{path} is absent")
    empty = 'No abstract: the field "abstract" is empty.'
    rejected = sorted_out(path)[1]
    assert [(r.position, r.line, r.reason) for r in rejected] == [
        (471, 471, empty), (995, 995, empty),
    ]  # fmt: skip
