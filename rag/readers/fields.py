"""The fields of any source -> a record: what they are called, and what their values look like."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from rag.papers import MAX_ID_LENGTH, metadata_value
from rag.readers import values
from rag.readers.mapping import NEEDED, Sought, absent, listed, shown
from rag.readers.names import Names, names_of
from rag.text import visible
from rag.types import MetaValue, Record, Rejected, Source

# Names as `rag.readers.names.plain` makes them; the first that holds a usable value
# counts. Two letters are tags of RIS, PubMed, Ovid and Web of Science.
ABSTRACT = (
    "abstract", "abstracttext", "abstractnote", "paperabstract", "ab", "n2", "summary", "text",
)  # fmt: skip
TITLE = (
    "title", "papertitle", "primarytitle", "articletitle", "documenttitle", "ti", "t1",
    "displayname", "originaltitle",
)  # fmt: skip
# "ut" is Web of Science's number; its "id" are keywords. A DOI is metadata: several papers that
# one file lists can have the same, and the same paper has others elsewhere.
ID = (
    "ut", "utuniquewosid", "id", "paperid", "forum", "key", "citationkey", "citekey", "arxivid",
    "corpusid", "pmid", "eid", "accessionnumber", "an",
)  # fmt: skip
_AUTHORS = (
    "authors", "author", "authornames", "authorfullnames", "authorsfullnames", "firstauthors",
    "fau", "af", "au", "a1", "creators", "creator",
)  # fmt: skip
_YEAR = (
    "year", "publicationyear", "pubyear", "py", "date", "issued", "published", "publicationdate",
    "dateofpublication", "dp", "y1", "da", "publishedprint", "publishedonline", "updatedate",
)  # fmt: skip
_VENUE = (
    "venue", "booktitle", "journal", "journaltitle", "journalfull", "publicationtitle",
    "proceedingstitle", "containertitle", "conference", "conferencename", "sourcetitle",
    "publicationvenue", "secondarytitle", "jf", "jt", "jo", "t2", "bt", "so", "ja", "ta", "j2",
    "journalref", "eventtitle", "source", "publicationname", "journalbook",
)  # fmt: skip
_KEYWORDS = (
    "keywords", "keyword", "authorkeywords", "kw", "ot", "de", "tags", "subjects", "subject",
    "indexkeywords", "meshterms", "mh", "topics", "categories", "fieldsofstudy",
    "s2fieldsofstudy", "primaryarea", "manualtags", "automatictags", "keywordsplus",
)  # fmt: skip
_DOI = (
    "doi", "do", "di", "lid", "aid", "doilink", "url", "ur", "link", "m3", "openurllink", "id",
)  # fmt: skip
_ARXIV = ("arxiv", "arxivid", "eprint")
_SAYS_ARXIV = ("url", "ur", "link", "doi", "do", "journal", "note", "id")
# Only arXiv's own metadata have these.
_ARXIV_METADATA = ("authorsparsed", "categories", "submitter")
_URL = (
    "url", "urls", "ur", "link", "site", "openurllink", "openaccesspdf", "pdfurl", "pdf", "l1",
    "l2", "lk", "openalexurl",
)  # fmt: skip
_MILLISECONDS = ("pdate", "odate", "cdate", "tcdate")  # OpenReview

_T = TypeVar("_T")


def record_from(
    fields: Mapping[str, object],
    source: Source,
    line: int,
    columns: Mapping[str, str],
    identifier: str | None = None,
) -> Record | Rejected:
    """A record from fields under any source's names; without an abstract it is `Rejected`.

    Values are text, numbers or lists of texts; others are passed over. The metadata are `authors`
    (["Given Family", ...]), `year` (int), `venue`, `keywords` (list), `doi` (bare, lower case),
    `arxiv` (bare, without version) and `url`; other fields stay under their own names. `columns`
    says which field is which, in place of guessing: {"abstract": "Summary"}; a record without one
    named for its abstract, title or ID is rejected, other metadata may be missing; a `Sought` keeps
    which never came. `identifier` is the ID of a record that has none among its fields.

    >>> record_from({"TI": "On A", "AB": "We do A.", "PY": "2018//"}, Source("a.ris", 1), 1, {})
    ... # doctest: +NORMALIZE_WHITESPACE
    Record(source=Source(file='a.ris', position=1), abstract='We do A.', id=None, title='On A',
           metadata={'year': 2018, 'PY': '2018//'}, line=1)
    """
    names = names_of(tuple(fields))
    if isinstance(columns, Sought):
        columns.note(lambda column: names.spelled(column) is not None)
    unknown = [o for o in NEEDED if o in columns and names.spelled(columns[o]) is None]
    if unknown:
        reason = f"--map names the field {absent(columns, unknown)}, which is missing"
        return Rejected(source.file, source.position, f"{reason}; {_present(fields)}.", line)
    found = _Fields(fields, names, columns)
    abstract = found.take("abstract", ABSTRACT, values.text)
    # A field that the user names is taken for what it is said to be.
    own_id = found.take("id", ID, _identifier if "id" in columns else _own_identifier)
    own_id = _own_identifier(identifier) if own_id is None else own_id
    if abstract is None:
        reason = _no_abstract(fields, names, columns)
        return Rejected(source.file, source.position, reason, line, whole=True, id=own_id)
    return Record(
        source=source,
        abstract=abstract,
        id=own_id,
        title=found.take("title", TITLE, values.text),
        metadata=_metadata(found),
        line=line,
    )


class _Fields:
    """A record's fields; those whose value was taken as ours are remembered."""

    def __init__(
        self, fields: Mapping[str, object], names: Names, columns: Mapping[str, str]
    ) -> None:
        self.all, self._names, self._columns = fields, names, columns
        self.used: set[str] = set()

    def find(
        self, ours: str, wanted: tuple[str, ...], usable: Callable[[object], _T | None]
    ) -> tuple[str, _T] | None:
        """The first wanted field with a usable value: its name as it stands, and the value."""
        if ours in self._columns:
            named = self._names.spelled(self._columns[ours])
            present: tuple[str, ...] = () if named is None else (named,)
        else:
            present = self._names.present(wanted)
        for name in present:
            value = usable(self.all[name])
            if value is not None:
                return name, value
        return None

    def take(
        self, ours: str, wanted: tuple[str, ...], usable: Callable[[object], _T | None]
    ) -> _T | None:
        """The value that `find` finds; its field is then used up."""
        found = self.find(ours, wanted, usable)
        if found is None:
            return None
        self.used.add(found[0])
        return found[1]


def _metadata(found: _Fields) -> dict[str, MetaValue]:
    """Our metadata, then the fields that are not ours or say more than ours."""
    # One field can tell two things: an address the DOI, a journal's name the arXiv ID.
    doi, arxiv = found.find("doi", _DOI, values.doi), _arxiv(found)
    year, url = found.find("year", _YEAR, values.year), found.find("url", _URL, values.url)
    ours: dict[str, MetaValue | None] = {
        "authors": found.take("authors", _AUTHORS, values.names),
        "venue": found.take("venue", _VENUE, values.line),
        "keywords": found.take("keywords", _KEYWORDS, values.keywords),
        "year": year[1] if year else _guessed_year(found),
        "doi": doi[1] if doi else None,
        "arxiv": arxiv[1] if arxiv else None,
        "url": url[1] if url else None,
    }
    # Fields that hold nothing but what was taken from them.
    for entry in (year, doi, arxiv, url):
        if entry and str(found.all[entry[0]]).strip().casefold() == str(entry[1]).casefold():
            found.used.add(entry[0])
    if doi and values.is_doi(found.all[doi[0]]):
        found.used.add(doi[0])
    kept = (
        (name, metadata_value(value))
        for name, value in found.all.items()
        if name not in found.used and name not in ours
    )
    return {
        name: value for name, value in [*ours.items(), *kept] if value is not None and value != []
    }


def _guessed_year(found: _Fields) -> int | None:
    """The year in the venue's name ("NeurIPS 2023 poster"), or of a time in milliseconds."""
    named = found.find("", _VENUE, values.year_in_name)
    stamped = named or found.find("", _MILLISECONDS, values.year_of_milliseconds)
    return stamped[1] if stamped else None


def _arxiv(found: _Fields) -> tuple[str, str] | None:
    entry = found.find("arxiv", _ARXIV, values.bare_arxiv)
    entry = entry or found.find("", _SAYS_ARXIV, values.arxiv)
    if entry is None and found.find("", _ARXIV_METADATA, values.line):
        entry = found.find("", ("id",), values.bare_arxiv)
    return entry


def _identifier(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        identifier = visible(str(value)).strip()
    except ValueError:  # an integer of more digits than Python prints
        return None
    return identifier if 0 < len(identifier) <= MAX_ID_LENGTH else None


def _own_identifier(value: object) -> str | None:
    """An ID that is no DOI."""
    return None if values.is_doi(value) else _identifier(value)


def _no_abstract(fields: Mapping[str, object], names: Names, columns: Mapping[str, str]) -> str:
    if "abstract" in columns:
        present = names.spelled(columns["abstract"])
    else:
        present = next(iter(names.present(ABSTRACT)), None)
    if present is not None:
        value = fields[present]
        found = kind_of(value) if value and not isinstance(value, str) else "empty"
        return f"No abstract: the field {shown(present)} is {found}."
    return f'No abstract: the field "abstract" is missing; {_present(fields)}.'


def _present(fields: Mapping[str, object]) -> str:
    return f"its fields are {listed(fields)}"


def kind_of(value: object) -> str:
    """What a decoded JSON value is, as a message says it: "a list"."""
    if value is None:
        return "null"
    kinds = {bool: "true or false", str: "a text", list: "a list", dict: "an object"}
    return next((name for type_, name in kinds.items() if isinstance(value, type_)), "a number")
