"""What comes out of every table of the shared odd inputs, file by file."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag.papers import to_paper
from rag.readers.tables import looks_like, records
from rag.types import Record, Rejected

ODD_INPUTS = Path(__file__).parents[2] / "shared" / "odd-inputs"
if not ODD_INPUTS.is_dir():
    pytest.skip(f"{ODD_INPUTS} is absent", allow_module_level=True)

NO_ABSTRACT = (
    "No column is known to hold the abstracts; the columns are "
    '"alternate_title2", "alternate_title3", "file_attachments2", "authors", "id", "issn", '
    '"keywords", "note", "number", "place_published", "title", "publication_year", .... '
    "Name it: --map abstract=COLUMN."
)
EMBASE = {
    "authors": ["K. Faraj", "L. Edwards", "A. Gupta", "B. Seifman"],
    "venue": "Journal of Endourology Case Reports",
    "year": 2017,
}
GENERIC = {
    "authors": ["Karlus Marxus", "Astrid Lindgren"],
    "keywords": ["Pippi Langstrumpf", "Nordwind", "Piraten"],
    "year": 2006,
    "url": "http://example_url.com",
}
CYST = (
    "Completely Isolated Retroperitoneal Enteric Duplication Cyst with Adenocarcinoma "
    "Transformation Managed with Robotic Radical Nephrectomy"
)
REFERENCE = "The title of the reference"

# File -> lines of its papers, lines of the rejected, and the last paper's title and metadata.
TABLE = {
    "embase.csv": ([2, 3, 4, 5, 6, 7], [], CYST, EMBASE),
    "embase_newpage.csv": ([2, 5, 8, 11, 14, 17], [], CYST, EMBASE),
    "generic.csv": ([2, 3], [], REFERENCE, GENERIC),
    "generic_column_names_with_spaces.csv": ([2, 3], [], REFERENCE, GENERIC),
    "generic_labels_no_abs.csv": ([], [2, 3, 4, 5, 6, 7], None, {}),
    "generic_partial_labels.csv": ([2, 3, 4, 5, 6, 7], [], REFERENCE, GENERIC),
    "generic_tab.csv": ([2, 3], [], REFERENCE, GENERIC),
    "generic_tab.tsv": ([2, 3], [], REFERENCE, GENERIC),
}


def test_every_table_is_listed() -> None:
    assert {path.name for path in ODD_INPUTS.iterdir() if path.suffix in (".csv", ".tsv")} == set(
        TABLE
    )


@pytest.mark.parametrize("name", TABLE)
def test_what_comes_out(name: str) -> None:
    papers, rejected, title, metadata = TABLE[name]
    with (ODD_INPUTS / name).open(encoding="utf-8") as lines:
        found = list(records(lines, name, {}))
    kept = [item for item in found if isinstance(item, Record)]
    others = [item for item in found if isinstance(item, Rejected)]
    assert [item.line for item in kept] == papers
    assert [item.source.position for item in kept] == list(range(1, len(papers) + 1))
    assert [(item.line, item.reason) for item in others] == [(n, NO_ABSTRACT) for n in rejected]
    assert not [item for item in kept if isinstance(to_paper(item), Rejected)]
    if kept:
        assert kept[-1].title == title
        assert metadata.items() <= dict(kept[-1].metadata).items()


@pytest.mark.parametrize("name", sorted(path.name for path in ODD_INPUTS.iterdir()))
def test_only_tables_look_like_tables(name: str) -> None:
    head = (ODD_INPUTS / name).read_text(encoding="utf-8", errors="replace")[:65_536]
    assert looks_like(head) == (name in TABLE)


@pytest.mark.parametrize("folder", ["papers", "reviews"])
def test_lists_of_abstracts_and_reviews_are_no_tables(folder: str) -> None:
    for path in (ODD_INPUTS.parent / folder).iterdir():
        assert not looks_like(path.read_text(encoding="utf-8")[:65_536]), path.name


def test_signs_beyond_ascii_are_right() -> None:
    with (ODD_INPUTS / "embase.csv").open(encoding="utf-8") as lines:
        texts = [item.abstract for item in records(lines, "", {}) if isinstance(item, Record)]
    assert [sum(text.count(sign) for text in texts) for sign in "×©"] == [5, 2]
