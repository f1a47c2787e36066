"""A paper as a reader cites it: one line of a bibliography, and BibTeX where enough is known."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rag.filters import by_plain_name
from rag.text import visible
from rag.types import Paper

# Names under which sources keep what a reference needs, without case and signs; the first counts,
# which is that of our readers.
_AUTHORS = ("authors", "author")
_YEAR = ("year", "date", "issued", "published", "publicationdate")
_VENUE = ("venue", "booktitle", "journal", "journaltitle", "conference", "containertitle")
_ADDRESS = ("url", "site", "link", "pdf")
_DOI = ("doi",)
_ARXIV = ("arxiv",)
_KIND = ("entrytype", "itemtype", "type", "typeofreference", "ty")
# What BibTeX, Zotero, CSL and RIS call an article of a journal.
_JOURNAL_KINDS = frozenset({"article", "journalarticle", "articlejournal", "jour"})
_BIBTEX = ("bibtex",)

_DIGITS = re.compile(r"(?<!\d)(?:1[5-9]|2[01])\d\d(?!\d)")
_SPECIAL = re.compile(r"[\\{}$&#%_~^]")
_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}


def reference(paper: Paper) -> str:
    """Authors, title, venue, year and address, as far as they are known; plain text.

    >>> reference(Paper("a", "On A", "", "", (), metadata={"authors": ["Ann", "Bo"], "year": 2026}))
    'Ann, Bo. On A. 2026.'
    """
    parts = [", ".join(authors(paper)), paper.title, _first(paper, _VENUE), year(paper)]
    parts.append(_address(paper))
    shown = (visible(part).rstrip(".") for part in parts if part)
    return " ".join(part if part.endswith(("…", "?", "!")) else f"{part}." for part in shown)


def bibtex(paper: Paper) -> str | None:
    """An entry under the paper's ID; None where authors, year or the title itself are not known.

    An entry that the source itself gave is taken as it stands.
    """
    own = _first(paper, _BIBTEX)
    if own.startswith("@"):
        return visible(own)
    if paper.title_derived or not authors(paper) or not year(paper):
        return None
    venue, doi, arxiv = (_first(paper, names) for names in (_VENUE, _DOI, _ARXIV))
    in_journal = re.sub(r"[\W_]", "", _first(paper, _KIND)).casefold() in _JOURNAL_KINDS
    fields = {
        "title": f"{{{_latex(paper.title)}}}",
        "author": " and ".join(map(_author, authors(paper))),
        "year": year(paper),
        "journal" if in_journal else "booktitle": _latex(venue),
        "doi": _latex(_bare_doi(doi)),
        "eprint": _latex(arxiv),
        "archiveprefix": "arXiv" if arxiv else "",
        "url": "" if doi else _first(paper, _ADDRESS),
    }
    lines = [f"  {name} = {{{visible(value)}}}" for name, value in fields.items() if value]
    kind = ("article" if in_journal else "inproceedings") if venue else "misc"
    return f"@{kind}{{{_key(paper.id)},\n" + ",\n".join(lines) + "\n}"


def authors(paper: Paper) -> list[str]:
    """The authors' names in order; sources part them by semicolons, "and" or commas."""
    value = _value(paper, _AUTHORS)
    if isinstance(value, list):
        return [name for name in value if name.strip()]
    text = str(value or "")
    parted = text.split(";") if ";" in text else re.split(r"\s+and\s+", text)
    if len(parted) == 1 and text.count(",") != 1:  # "Ann Lee, Bo Chen, Cy Day"; not "Lee, Ann"
        parted = text.split(",")
    return [name.strip() for name in parted if name.strip()]


def year(paper: Paper) -> str:
    """The year in four digits, or nothing."""
    found = _DIGITS.search(_first(paper, _YEAR))
    return found[0] if found else ""


def _address(paper: Paper) -> str:
    doi, arxiv = _first(paper, _DOI), _first(paper, _ARXIV)
    if doi:
        return f"https://doi.org/{_bare_doi(doi)}"
    return _first(paper, _ADDRESS) or (f"https://arxiv.org/abs/{arxiv}" if arxiv else "")


def _author(name: str) -> str:
    """A name for BibTeX; braces keep an "and" from parting it."""
    shown = _latex(name)
    return f"{{{shown}}}" if re.search(r"\sand\s", name, re.I) else shown


def _first(paper: Paper, wanted: Sequence[str]) -> str:
    value = _value(paper, wanted)
    shown: Iterable[object] = value if isinstance(value, list) else [value]
    return ", ".join(str(part) for part in shown if part is not None)


def _value(paper: Paper, wanted: Sequence[str]) -> object:
    named = by_plain_name(paper.metadata)
    return next((named[name] for name in wanted if name in named), None)


def _bare_doi(doi: str) -> str:
    return re.sub(r"\A(?:https?://(?:dx\.)?doi\.org/|doi:\s*)", "", doi.strip(), flags=re.I)


def _latex(text: str) -> str:
    return _SPECIAL.sub(lambda m: _LATEX.get(m[0], f"\\{m[0]}"), text)


def _key(paper_id: str) -> str:
    return re.sub(r"[^\w:./-]", "-", paper_id, flags=re.ASCII)
