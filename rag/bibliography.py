"""A paper as a reader cites it: one line of a bibliography, and BibTeX where enough is known."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rag.text import visible
from rag.types import Paper

# Names under which sources keep what a reference needs, without case and signs; the first counts.
_AUTHORS = ("authors", "author")
_YEAR = ("year", "date", "issued", "published", "publicationdate")
_VENUE = ("venue", "booktitle", "journal", "journaltitle", "conference", "containertitle")
_ADDRESS = ("url", "site", "link", "pdf")
_DOI = ("doi",)
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
    doi = _first(paper, _DOI)
    parts.append(f"https://doi.org/{_bare_doi(doi)}" if doi else _first(paper, _ADDRESS))
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
    venue, doi = _first(paper, _VENUE), _first(paper, _DOI)
    fields = {
        "title": f"{{{_latex(paper.title)}}}",
        "author": " and ".join(_latex(name) for name in authors(paper)),
        "year": year(paper),
        "booktitle": _latex(venue),
        "doi": _latex(_bare_doi(doi)),
        "url": "" if doi else _first(paper, _ADDRESS),
    }
    lines = [f"  {name} = {{{visible(value)}}}" for name, value in fields.items() if value]
    kind = "inproceedings" if venue else "misc"
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


def _first(paper: Paper, wanted: Sequence[str]) -> str:
    value = _value(paper, wanted)
    shown: Iterable[object] = value if isinstance(value, list) else [value]
    return ", ".join(str(part) for part in shown if part is not None)


def _value(paper: Paper, wanted: Sequence[str]) -> object:
    named = {re.sub(r"[\W_]", "", key).casefold(): value for key, value in paper.metadata.items()}
    return next((named[name] for name in wanted if name in named), None)


def _bare_doi(doi: str) -> str:
    return re.sub(r"\A(?:https?://(?:dx\.)?doi\.org/|doi:\s*)", "", doi.strip(), flags=re.I)


def _latex(text: str) -> str:
    return _SPECIAL.sub(lambda m: _LATEX.get(m[0], f"\\{m[0]}"), text)


def _key(paper_id: str) -> str:
    return re.sub(r"[^\w:./-]", "-", paper_id, flags=re.ASCII)
