"""What comes out of every real BibTeX and RIS export at hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from rag.papers import to_paper
from rag.readers import bibtex, ris
from rag.types import Paper, Record, Rejected

FOLDER = Path(__file__).parents[2] / "shared" / "odd-inputs"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"no development data at {FOLDER}")


@dataclass(frozen=True)
class Expected:
    """`ids` are IDs of the source's own; of `checked`, an ID, the title and the authors."""

    papers: int
    without_abstract: int = 0
    too_short: int = 0
    ids: int = 0
    checked: str | None = None
    title: str | None = None
    authors: tuple[str, ...] = ()


CESAR = "An amazing title"
TABLE = {
    "article_no_braces.bib": Expected(1, ids=1, checked="Cesar2013", title=CESAR,
        authors=("Jean Césarü",)),
    "article_start_with_bom.bib": Expected(1, ids=1, checked="Cesar2013", title=CESAR,
        authors=("Jean César",)),
    "article_with_special_characters.bib": Expected(1, ids=1, checked="Cesar2013", title=CESAR,
        authors=("Jean Césarü",)),
    "encoding.bib": Expected(1, ids=1, checked="Cesar_2013", title="An amazing title: à",
        authors=("Jean César",)),
    "crossref_cascading_cycle.bib": Expected(0, without_abstract=2),
    "biber-examples.bib": Expected(6, without_abstract=112, ids=6, checked="itzhaki",
        title="Some remarks on 't Hooft's S-matrix for black holes", authors=("Nissan Itzhaki",)),
    "jabref-97.bib": Expected(458, without_abstract=435, too_short=18, ids=458,
        checked="Certier_1964",
        title="Etude de l'effet Zeeman de la raie n = 1 de la série jaune de Cu2O à 20°K",
        authors=("M. Certier", "J. B. Grun", "S. Nikitine")),
    "_baseline.ris": Expected(98, without_abstract=2, ids=98, checked="035-192-389-389-527",
        title="Publications on Clinical Research in Otolaryngology–A Systematic Analysis of "
        "Leading Journals in 2010"),
    "baseline_zotero.ris": Expected(98, without_abstract=2,
        checked="10.1371/journal.pone.0235535",
        title="The effect of the CONSORT statement on the amount of \"unclear\" Risk of Bias "
        "reporting in Cochrane Systematic Reviews."),
    "baseline_reference_types.ris": Expected(0, without_abstract=61),
    "baseline_tag-notes_labels.ris": Expected(0, without_abstract=32),
    "baseline_tag_and_field_definitions.ris": Expected(0, too_short=1),
    "ovid_psycinfo.ris": Expected(6, ids=6, checked="2019-65183-001",
        title="The influence of self-criticism on depression symptoms among ambulatory patients "
        "with inflammatory bowel disease.",
        authors=("Ines A Trindade", "Chris Irons", "Claudia Ferreira", "Francisco Portela",
                 "Jose Pinto-Gouveia")),
    "proquest.ris": Expected(6, ids=6, checked="2236127104",
        title="Trajectories of posttraumatic stress disorders among children after the Wenchuan "
        "earthquake: a four-year longitudinal study",
        authors=("Yiming Liang", "Jin Cheng", "Yueyue Zhou", "Zhengkui Liu")),
    "pubmed_zotero.ris": Expected(6, checked="10.5114/pg.2018.81081",
        title="The importance of cognitive flexibility and flexibility in coping with stress for "
        "the quality of life in inflammatory bowel disease patients during biological therapy. "
        "A preliminary report."),
    "scopus.ris": Expected(6, checked="10.1080/19490976.2018.1562268",
        title="Exercise influence on the microbiome–gut–brain axis"),
    "ris_issue_1099.txt": Expected(7, checked="10.1007/978-3-030-58167-1_7",
        title="Validity Frame Driven Computational Design Synthesis for Complex Cyber-Physical "
        "Systems"),
}  # fmt: skip


def read(name: str) -> tuple[list[Paper], list[tuple[Rejected, str]]]:
    module = bibtex if name.endswith(".bib") else ris
    papers: list[Paper] = []
    rejected: list[tuple[Rejected, str]] = []
    with (FOLDER / name).open(encoding="utf-8-sig") as lines:
        for found in module.records(lines, name, {}):
            made = to_paper(found) if isinstance(found, Record) else found
            if isinstance(made, Paper):
                papers.append(made)
            else:
                rejected.append((made, "short" if isinstance(found, Record) else "read"))
    return papers, rejected


@pytest.mark.parametrize("name", TABLE)
def test_what_comes_out(name: str) -> None:
    expected = TABLE[name]
    papers, rejected = read(name)
    reasons = Counter(kind for _, kind in rejected)
    assert (len(papers), reasons["read"], reasons["short"]) == (
        expected.papers,
        expected.without_abstract,
        expected.too_short,
    )
    for one, kind in rejected:
        assert one.reason.startswith("No abstract: " if kind == "read" else "The abstract has ")
    assert len({paper.id for paper in papers}) == len(papers)
    assert list(marks(papers)) == []
    if expected.checked:
        [paper] = [p for p in papers if expected.checked in (p.id, p.metadata.get("doi"))]
        assert paper.title == expected.title
        if expected.authors:
            assert paper.metadata["authors"] == list(expected.authors)
    if expected.ids:
        assert sum(not paper.id.startswith("p-") for paper in papers) == expected.ids


def marks(papers: list[Paper]) -> Iterator[str]:
    """Markup that was left in titles and names; braces of crystals, "{111}", are the authors'."""
    for paper in papers:
        names = paper.metadata.get("authors", [])
        assert isinstance(names, list)
        for text in [paper.title, *names]:
            left = [mark for mark in ("\\", "$", "&amp;", "\ufffd") if mark in text]
            yield from (f"{mark} in {text}" for mark in left)


def test_every_file_is_in_the_table() -> None:
    here = {path.name for path in FOLDER.iterdir() if path.suffix in (".bib", ".ris", ".txt")}
    assert here == set(TABLE)


def test_lines_lead_to_the_records() -> None:
    lines = (FOLDER / "jabref-97.bib").read_text("utf-8").split("\n")
    papers, rejected = read("jabref-97.bib")
    with (FOLDER / "jabref-97.bib").open(encoding="utf-8") as file:
        found = list(bibtex.records(file, "jabref-97.bib", {}))
    assert len(papers) + len(rejected) == len(found)
    for record in found:
        start = lines[record.line - 1]
        assert start.startswith("@")
        if isinstance(record, Record):
            assert start.endswith(f"{{{record.id},")
