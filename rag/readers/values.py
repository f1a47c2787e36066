"""What stands in a field, however its source writes it: names, years, keywords, identifiers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar
from urllib.parse import unquote

from rag.text import clean, visible

_T = TypeVar("_T")

# A list of texts as Python and JSON print it: "['a', 'b']".
_QUOTED = re.compile(r"""'((?:[^'\\]|\\.)*+)'|"((?:[^"\\]|\\.)*+)\"""", re.S)
_PRINTED = re.compile(rf"\[(?:(?:{_QUOTED.pattern})\s*+(?:,\s*+|(?=\])))++\]\Z", re.S)
_ESCAPED = re.compile(r"\\(['\"\\])")

# The longest texts looked at; a field of authors or keywords is never so long.
_MAX_LENGTH = 200_000

_YEAR = re.compile(r"(?<!\d)(?:1[5-9]|2[01])\d\d(?!\d)")
# https://www.doi.org/doi-handbook/HTML/doi-name-syntax.html; alone it may hold any sign, as in
# "10.1002/(SICI)1097-4571(1998)49:8<693::AID-ASI4>3.0.CO;2-O".
_BARE_DOI = re.compile(
    r"\s*(?:(?P<address>https?://(?:dx\.|www\.)?doi\.org/)|doi:?\s*)?(?P<doi>10\.\d[\d.]*/\S+)\s*\Z",
    re.I,
)
_DOI = re.compile(r"(?<![\w.])10\.\d{4,9}/[^\s\"'<>\[\]{}?&]+")
# In a link resolver's address: "...&id=doi:10.1000%2Fabc.1&..."
_ENCODED_DOI = re.compile(r"(?<![\w.])10\.\d{4,9}%2[fF][\w.~%-]+")
# "2301.01234", before April 2007 "hep-th/9901001".
# https://info.arxiv.org/help/arxiv_identifier.html
_ARXIV_ID = r"(\d{4}\.\d{4,5}|[a-z-]{2,12}(?:\.[A-Z]{2})?/\d{7})(?:v\d{1,3})?"
_BARE_ARXIV = re.compile(_ARXIV_ID + r"\Z")
_ARXIV = re.compile(
    r"(?:arxiv:\s*|arxiv\.org/(?:abs|pdf|html|ps)/|10\.48550/arxiv\.)" + _ARXIV_ID, re.I
)
_ADDRESS = re.compile(r"(?:https?|ftp)://[^\s\"<>]+|www\.[^\s\"<>]+\.[^\s\"<>]+", re.I)

_AND = re.compile(r"\s+(?:and|&)\s+|\s*\n\s*")
_INITIALS = re.compile(r"(?:[^\W\d_]\.[\s-]?){1,5}\Z")
_CAPITALS = re.compile(r"[A-Z]{1,3}\Z")
# What follows a comma without being a given name.
_SUFFIX = re.compile(r"(?:jr|sr|inc|ltd|llc|gmbh|corp|co|ph\.?d|m\.?d|esq|ii|iii|iv)\.?\Z", re.I)
_SUBJECT_CLASS = re.compile(r"[a-z-]{2,10}(?:\.[A-Za-z-]{2,10})?\Z")


def text(value: object) -> str | None:
    """A text as it stands; texts in a list are parted by line feeds."""
    if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
        value = "\n".join(value)
    return value if isinstance(value, str) and value.strip() else None


def line(value: object) -> str | None:
    """A text on one line; of a list the first."""
    if isinstance(value, list):
        value = next((part for part in value if isinstance(part, str) and part.strip()), None)
    shown = " ".join(visible(value).split()) if isinstance(value, str) else ""
    return shown or None


def year(value: object) -> int | None:
    """The first year from 1500 to 2199 in a date however written: "2014//", "Sept. 2010", 1798."""
    if isinstance(value, bool) or not isinstance(value, str | int | float | list):
        return None
    if isinstance(value, list):
        return _first(year, value)
    if isinstance(value, int | float):
        whole = int(value) if math.isfinite(value) and value == int(value) else 0
        return whole if 1500 <= whole < 2200 else None
    found = _YEAR.search(value)
    # "20240131" has no end where the year ends.
    compact = re.fullmatch(r"\s*(?P<year>(?:1[5-9]|2[01])\d\d)[01]\d(?:[0-3]\d)?\s*", value)
    return int(found[0]) if found else int(compact["year"]) if compact else None


def year_in_name(value: object) -> int | None:
    """The year in a venue's name."""
    return year(value) if isinstance(value, str) else None


def year_of_milliseconds(value: object) -> int | None:
    """The year (UTC) of a time in milliseconds since 1970."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 7e12:
        return None
    return datetime.fromtimestamp(value / 1000, UTC).year


def doi(value: object) -> str | None:
    """A DOI, bare and in lower case, out of any text or address that holds one.

    >>> doi("https://doi.org/10.1000/ABC.1")
    '10.1000/abc.1'
    """
    if isinstance(value, list):
        return _first(doi, value)
    if not isinstance(value, str) or len(value) > _MAX_LENGTH:
        return None
    bare = _BARE_DOI.match(value)
    if bare:
        return visible(unquote(bare["doi"]) if bare["address"] else bare["doi"]).casefold()
    found = _DOI.search(value)
    encoded = None if found else _ENCODED_DOI.search(value)
    whole = found[0] if found else unquote(encoded[0]) if encoded else ""
    cut = visible(whole).rstrip(".,;:").casefold()
    if not cut:
        return None
    return cut.removesuffix(")") if cut.count(")") > cut.count("(") else cut


def is_doi(value: object) -> bool:
    """Whether a text is a DOI, bare or as an address."""
    return isinstance(value, str) and _BARE_DOI.match(value) is not None


def arxiv(value: object) -> str | None:
    """An arXiv ID without its version, out of a text that says that it is one.

    >>> arxiv("arXiv:2301.01234v2 [cs.CL]"), arxiv("http://arxiv.org/abs/hep-th/9901001")
    ('2301.01234', 'hep-th/9901001')
    """
    if isinstance(value, list):
        return _first(arxiv, value)
    found = _ARXIV.search(value[:_MAX_LENGTH]) if isinstance(value, str) else None
    return found[1] if found else None


def bare_arxiv(value: object) -> str | None:
    """An arXiv ID that stands alone, where the field's name says what it is."""
    found = _BARE_ARXIV.match(value.strip()) if isinstance(value, str) else None
    return found[1] if found else arxiv(value)


def url(value: object) -> str | None:
    """The first web address in a text."""
    if isinstance(value, list):
        return _first(url, value)
    found = _ADDRESS.search(value[:_MAX_LENGTH]) if isinstance(value, str) else None
    return visible(found[0]).strip() or None if found else None


def keywords(value: object) -> list[str] | None:
    """Keywords out of a list or a text that parts them by semicolons, commas or lines.

    >>> keywords("agents; web search;"), keywords("cs.CL cs.AI"), keywords("one, two")
    (['agents', 'web search'], ['cs.CL', 'cs.AI'], ['one', 'two'])
    """
    listed = _listed(value)
    if isinstance(listed, str):
        words = listed.split()
        dotted = any("." in word for word in words)
        if dotted and all(_SUBJECT_CLASS.match(word) for word in words):
            listed = words  # arXiv's subject classes
        else:
            mark = next((mark for mark in (";", "\n", "|", ",") if mark in listed), ";")
            listed = listed.split(mark)
    kept = dict.fromkeys(" ".join(visible(part).split()) for part in listed or ())
    return [keyword for keyword in kept if keyword] or None


def names(value: object) -> list[str] | None:
    """People as "Given Family", out of a list or a text in any of the usual ways of writing them.

    A listed name with a comma is "Family, Given". In a text, names are parted by semicolons,
    "and" or commas. Initials behind every name are put before it.

    >>> names("Lee, Ann and Chen, Bo"), names("Ann Lee, Bo Chen and Cy Day")
    (['Ann Lee', 'Bo Chen'], ['Ann Lee', 'Bo Chen', 'Cy Day'])
    >>> names("Liu R., Adler D.G."), names(["van Gogh, Vincent"])
    (['R. Liu', 'D.G. Adler'], ['Vincent van Gogh'])
    """
    listed = _listed(value)
    if isinstance(listed, str):
        listed = _parted(listed)
    shown = (" ".join(_readable(part).split()) for part in listed or ())
    written = [name for name in (_direct(part) for part in shown if part) if name]
    return _initials_first(written) or None


def _first(read: Callable[[object], _T | None], parts: list[object]) -> _T | None:
    return next((found for part in parts if (found := read(part)) is not None), None)


def _listed(value: object) -> list[str] | str | None:
    """A list of texts, also one that was printed into a text: "['a', 'b']"."""
    if isinstance(value, list):
        return [part for part in value if isinstance(part, str)]
    if not isinstance(value, str) or len(value) > _MAX_LENGTH:
        return None
    stripped = value.strip()
    if _PRINTED.match(stripped):
        return [
            _ESCAPED.sub(r"\1", quoted or double) for quoted, double in _QUOTED.findall(stripped)
        ]
    return stripped


def _parted(names: str) -> list[str]:
    if ";" in names:
        return names.split(";")
    if "|" in names:
        return names.split("|")
    parts = [part for part in _AND.split(names) if part.strip()]
    if len(parts) > 1 and not any(_is_enumeration(part) for part in parts):
        return parts
    return [name for part in parts for name in _at_commas(part)]


def _is_enumeration(part: str) -> bool:
    """Whether commas part names ("Ann Lee, Bo Chen") and not a family from a given name."""
    pieces = [piece.split() for piece in part.split(",") if piece.strip()]
    if len(pieces) > 3:
        return True
    whole = all(len(piece) > 1 for piece in pieces)
    return len(pieces) > 1 and whole and not _INITIALS.match(part.rpartition(",")[2].strip())


def _at_commas(part: str) -> list[str]:
    pieces = [piece.strip() for piece in part.split(",") if piece.strip()]
    # "Smith, J., Doe, A.B."
    if len(pieces) % 2 == 0 and all(_INITIALS.match(piece) for piece in pieces[1::2]):
        return [f"{family}, {given}" for family, given in zip(*[iter(pieces)] * 2, strict=True)]
    return pieces if len(pieces) > 2 or _is_enumeration(part) else [part]


def _readable(name: str) -> str:
    """LaTeX accents and braces as characters."""
    return clean(name) if "\\" in name or "{" in name else visible(name)


def _direct(name: str) -> str:
    """Turns "Family, Given" and "Family, Jr, Given" into "Given Family Jr"."""
    parts = [part.strip() for part in name.strip(" ,").split(",")]
    if len(parts) == 1:
        return parts[0]
    # Exporters write so where no given name is known.
    parts[1:] = [part for part in parts[1:] if part != "null"]
    if len(parts) == 2 and not _SUFFIX.match(parts[1]):
        return f"{parts[1]} {parts[0]}".strip()
    if len(parts) == 3 and _SUFFIX.match(parts[1]):
        return f"{parts[2]} {parts[0]} {parts[1]}".strip()
    if len(parts) == 3 and _SUFFIX.match(parts[2]):
        return f"{parts[1]} {parts[0]} {parts[2]}".strip()
    return ", ".join(part for part in parts if part)


def _initials_first(written: list[str]) -> list[str]:
    """Turns "Liu R." or "Liu R" into "R. Liu" or "R Liu" where every name is written so."""
    for initials in (_INITIALS, _CAPITALS):
        if written and all(_ends_in(initials, name) for name in written):
            return [_turned(name, initials) for name in written]
    return written


def _ends_in(initials: re.Pattern[str], name: str) -> bool:
    family, _, last = name.rpartition(" ")
    return bool(family) and initials.match(last) is not None and len(family) > 2


def _turned(name: str, initials: re.Pattern[str]) -> str:
    words = name.split()
    first = len(words)
    while first > 1 and initials.match(words[first - 1]):
        first -= 1
    return " ".join(words[first:] + words[:first])
