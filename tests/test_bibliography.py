from __future__ import annotations

from rag.bibliography import bibtex, reference
from rag.types import MetaValue, Paper

# As readers give them.
KNOWN: dict[str, MetaValue] = {"authors": ["Ann Lee", "Barnes and Noble"], "year": 2024}


def paper(**metadata: MetaValue) -> Paper:
    return Paper("a", "On A", "Text.", "Text.", (), metadata=KNOWN | metadata)


def test_what_readers_found_out_goes_before_what_the_source_says() -> None:
    both = paper(Year="1999", Authors="X. Y", venue="COLM", Venue="none", DOI="x", doi="10.1/a")
    assert reference(both) == "Ann Lee, Barnes and Noble. On A. COLM. 2024. https://doi.org/10.1/a."
    assert bibtex(both) == (
        "@inproceedings{a,\n"
        "  title = {{On A}},\n"
        "  author = {Ann Lee and {Barnes and Noble}},\n"
        "  year = {2024},\n"
        "  booktitle = {COLM},\n"
        "  doi = {10.1/a}\n}"
    )


def test_an_article_of_a_journal() -> None:
    for kind in ({"entrytype": "article"}, {"Item Type": "journalArticle"}, {"TY": "JOUR"}):
        entry = bibtex(paper(venue="Graphs", **kind))
        assert entry is not None
        assert entry.startswith("@article{a,\n")
        assert "  journal = {Graphs}\n}" in entry
    assert str(bibtex(paper(TY="JOUR"))).startswith("@misc{a,")


def test_a_preprint() -> None:
    preprint = paper(arxiv="2401.01234")
    assert reference(preprint) == (
        "Ann Lee, Barnes and Noble. On A. 2024. https://arxiv.org/abs/2401.01234."
    )
    assert str(bibtex(preprint)).endswith(
        "  year = {2024},\n  eprint = {2401.01234},\n  archiveprefix = {arXiv}\n}"
    )
    assert "https://example.org" in reference(paper(arxiv="1", url="https://example.org"))


def test_an_entry_of_the_source_stays_as_it_is() -> None:
    assert bibtex(paper(bibtex="@book{mine, title = {A}}")) == "@book{mine, title = {A}}"
