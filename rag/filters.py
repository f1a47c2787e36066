"""Conditions on papers: `year=2024-2026 venue=neurips source=list.txt keyword="graph neural"`.

Different names must all hold; of several values of one name, one must.

>>> condition = parse('year=2025- keyword=graph keyword="state space"')
>>> str(condition)
'year=2025- keyword=graph keyword="state space"'
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath

from rag.errors import UsageError
from rag.types import MetaValue, Paper

NAMES = ("year", "venue", "source", "keyword")
EXAMPLE = "year=2024-2026 venue=neurips source=list.txt keyword=graph"

# Names under which sources keep what is asked for, without case and signs; that of our readers,
# which give the year as a number, comes first.
_YEAR = ("year", "date", "issued", "published", "publicationdate", "publicationyear")
_VENUE = ("venue", "booktitle", "journal", "journaltitle", "conference", "containertitle")
_KEYWORDS = ("keywords", "keyword", "tags", "subjects")

_RANGE = re.compile(r"(?P<first>\d{4})?\s*(?:(?P<dash>-|–|\.\.)\s*(?P<last>\d{4})?)?\Z")
_BOUND = re.compile(r"(?P<sign>[<>]=?)\s*(?P<year>\d{4})\Z")
_FOUR_DIGITS = re.compile(r"(?<!\d)(?:1[5-9]|2[01])\d\d(?!\d)")
_EARLIEST, _LATEST = 0, 9999


@dataclass(frozen=True, slots=True)
class Filter:
    """What a paper must be; empty, it lets every paper through.

    `years` are closed ranges. The other values are compared without case: part of the venue, part
    of a source's file name, and a keyword or a phrase of the title or the abstract.
    """

    years: tuple[tuple[int, int], ...] = ()
    venues: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.years or self.venues or self.sources or self.keywords)

    def __str__(self) -> str:
        given = [("year", _spelled(years)) for years in self.years]
        for name, values in zip(NAMES[1:], (self.venues, self.sources, self.keywords), strict=True):
            given += [(name, value) for value in values]
        return " ".join(f"{name}={_quoted(value)}" for name, value in given)

    def matches(self, paper: Paper) -> bool:
        """Whether the paper is all that is asked for."""
        return (
            (not self.years or self._in_years(paper))
            and (not self.venues or _any_in(self.venues, _values(paper, _VENUE)))
            and (not self.sources or _any_in(self.sources, _files(paper)))
            and (not self.keywords or self._has_keyword(paper))
        )

    def _in_years(self, paper: Paper) -> bool:
        own = paper.metadata.get("year")
        if isinstance(own, int):
            return any(first <= own <= last for first, last in self.years)
        found = (_FOUR_DIGITS.search(value) for value in _values(paper, _YEAR))
        year = next((int(match[0]) for match in found if match), None)
        return year is not None and any(first <= year <= last for first, last in self.years)

    def _has_keyword(self, paper: Paper) -> bool:
        texts = [*_values(paper, _KEYWORDS), paper.title, paper.text]
        return any(_phrase(keyword).search(text) for keyword in self.keywords for text in texts)


def parse(text: str) -> Filter:
    """The filter that a line of `name=value` says; values with blanks stand in quotes.

    Raises:
        UsageError: an unknown name, a value that is none, or an open quote.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"A quote is open in {text[:80]!r}. Close it.") from error
    given: dict[str, list[str]] = {name: [] for name in NAMES}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals and name.startswith("year") and name[4:5] in ("<", ">"):
            name, value = "year", name[4:]
        elif name.endswith(("<", ">")):  # year>=2024
            name, value = _compared(name, word), f"{name[-1]}={value}"
        given[_known(name.casefold(), word)] += _parts(name.casefold(), value.strip(), word)
    return Filter(
        tuple(_years(value) for value in given["year"]),
        *(tuple(dict.fromkeys(given[name])) for name in NAMES[1:]),
    )


def matching(condition: Filter, papers: Iterable[Paper]) -> frozenset[str]:
    """IDs of the papers that the filter lets through."""
    return frozenset(paper.id for paper in papers if condition.matches(paper))


def by_plain_name(metadata: Mapping[str, MetaValue]) -> dict[str, MetaValue]:
    """Values by name without case and signs; of names that meet, one spelled so, or the first.

    >>> by_plain_name({"Year": "in 2024", "year": 2024, "Pub-Year": 1, "PubYear": 2})
    {'year': 2024, 'pubyear': 1}
    """
    named: dict[str, MetaValue] = {}
    for key, value in metadata.items():
        name = re.sub(r"[\W_]", "", key).casefold()
        if name == key or name not in named:
            named[name] = value
    return named


def _compared(name: str, word: str) -> str:
    """The name before "<" or ">", which years alone have."""
    known = _known(name[:-1].casefold(), word)
    if known != "year":
        raise UsageError(f"{word[:60]!r} compares what has no order. Write {known}=...")
    return known


def _known(name: str, word: str) -> str:
    if name in NAMES:
        return name
    close = difflib.get_close_matches(name, NAMES, n=1, cutoff=0.5)
    meant = f" Is {close[0]}=... meant?" if close else ""
    raise UsageError(f"{word[:60]!r} is no condition.{meant} Conditions look like this: {EXAMPLE}")


def _parts(name: str, value: str, word: str) -> list[str]:
    """Values parted by commas; a venue or a file name may hold one itself."""
    parts = [part.strip() for part in value.split(",")] if name in ("year", "keyword") else [value]
    if not all(parts):
        raise UsageError(f"{word[:60]!r} names no value. Conditions look like this: {EXAMPLE}")
    if name == "keyword" and not all(any(c.isalnum() for c in part) for part in parts):
        raise UsageError(f"{word[:60]!r}: a keyword needs a letter or a digit.")
    return parts


def _years(value: str) -> tuple[int, int]:
    bound = _BOUND.match(value)
    if bound:
        year, inclusive = int(bound["year"]), bound["sign"].endswith("=")
        if bound["sign"].startswith(">"):
            return (year if inclusive else year + 1, _LATEST)
        return (_EARLIEST, year if inclusive else year - 1)
    match = _RANGE.match(value)
    if match is None or not (match["first"] or match["last"]):
        raise UsageError(f"{value[:40]!r} is no year. Write 2025, 2023-2025, 2023- or -2025.")
    first = int(match["first"]) if match["first"] else _EARLIEST
    if not match["dash"]:
        return first, first
    last = int(match["last"]) if match["last"] else _LATEST
    if first > last:
        raise UsageError(f"{value} ends before it begins. Write {last}-{first}.")
    return first, last


def _spelled(years: tuple[int, int]) -> str:
    first, last = years
    if first == last:
        return str(first)
    return f"{first if first > _EARLIEST else ''}-{last if last < _LATEST else ''}"


def _quoted(value: str) -> str:
    if re.fullmatch(r"[^\s\"'\\]+", value):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _values(paper: Paper, wanted: tuple[str, ...]) -> Iterator[str]:
    """The metadata under any of these names, as texts, in the order of the names."""
    named = by_plain_name(paper.metadata)
    for name in wanted:
        if name in named:
            yield from _texts(named[name])


def _texts(value: MetaValue) -> list[str]:
    return [str(part) for part in value] if isinstance(value, list) else [str(value)]


def _files(paper: Paper) -> list[str]:
    return [PurePath(source.file.replace("\\", "/")).name for source in paper.sources]


def _any_in(wanted: tuple[str, ...], texts: Iterable[str]) -> bool:
    folded = [text.casefold() for text in texts]
    return any(value.casefold() in text for value in wanted for text in folded)


def _phrase(keyword: str) -> re.Pattern[str]:
    """The keyword as whole words, also as a plural; any blank or hyphen between them."""
    words = r"[\s-]+".join(re.escape(word) for word in re.split(r"[\s-]+", keyword) if word)
    return re.compile(rf"(?<![^\W_]){words}s?(?![^\W_])", re.IGNORECASE)
