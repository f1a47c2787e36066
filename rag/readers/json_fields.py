"""The fields of one JSON record, however nested, as texts, numbers and lists of texts.

OpenReview (both versions), Zotero, CSL, Semantic Scholar, Crossref and arXiv metadata are known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

# Objects that hold the record's fields: OpenReview's `content`, the Zotero API's `data`.
_INNER = ("content", "data")
# What an object in a list of keywords, journals or links is about.
_SAYING = (
    "value", "name", "tag", "term", "keyword", "category", "label", "display_name", "literal",
    "text", "raw", "title", "url", "URL",
)  # fmt: skip
_FAMILY = ("family", "lastName", "last", "last_name", "surname")
_GIVEN = ("given", "firstName", "first", "first_name", "forename")
_WHOLE_NAME = ("literal", "name", "fullname", "fullName", "full_name", "display_name", "username")
_CITATION_KEY = re.compile(r"^citation key:\s*(\S+)", re.M | re.I)
_IDS = {"arxiv": "arxiv", "doi": "doi", "pubmed": "pmid", "corpusid": "corpusId"}


def flat_fields(value: Mapping[str, object]) -> dict[str, object]:
    """A record's fields with plain values under their own names; what is too nested stays so.

    >>> flat_fields({"id": 1, "content": {"title": {"value": "T"}}, "author": [{"name": "A"}]})
    {'id': 1, 'author': ['A'], 'title': 'T'}
    """
    merged = dict(value)
    for name in _INNER:
        inner = value.get(name)
        if isinstance(inner, Mapping) and "value" not in inner:
            del merged[name]
            merged |= inner
    fields = {name: _plain(field) for name, field in merged.items()}
    _add_identifiers(fields, merged.get("externalIds"))
    creators = merged.get("creators")
    if isinstance(creators, list):
        fields["creators"] = _people(_authors_among(creators))
    if "citationKey" not in fields and (key := _cited_as(merged.get("extra"))):
        fields["citationKey"] = key
    parsed = merged.get("authors_parsed")
    if isinstance(parsed, list) and (people := [n for p in parsed if (n := _parsed(p))]):
        fields |= {"authors": people}
        del fields["authors_parsed"]
    return fields


def _plain(value: object) -> object:
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        parts = value.get("date-parts")
        if isinstance(parts, list):
            first = parts[0] if parts and isinstance(parts[0], list) else []
            return "-".join(str(part) for part in first if isinstance(part, str | int))
        if "value" in value:  # OpenReview, version 2
            return _plain(value["value"])
        return _said(value) or value
    if isinstance(value, list) and value and all(isinstance(part, Mapping) for part in value):
        return _people(value) or value
    return value


def _people(entries: list[object]) -> list[str]:
    """The names or terms in a list of objects; commas stand only between family and given name."""
    said = (_person(entry) or _said(entry) for entry in entries if isinstance(entry, Mapping))
    return [text for text in said if text]


def _person(entry: Mapping[str, object]) -> str:
    """A "Family, Given" or whole name."""
    inner = entry.get("author")
    if isinstance(inner, Mapping):
        return _person(inner)
    particle, suffix = _text(entry, ("non-dropping-particle",)), _text(entry, ("suffix",))
    family, given = _text(entry, _FAMILY), _text(entry, _GIVEN)
    if family:
        whole = f"{particle} {family}".strip()
        return ", ".join(part for part in (whole, suffix, given) if part)
    return _text(entry, _WHOLE_NAME) or given


def _said(entry: Mapping[str, object]) -> str:
    return _text(entry, _SAYING)


def _text(entry: Mapping[str, object], names: tuple[str, ...]) -> str:
    found = (entry[name] for name in names if name in entry)
    return next((value for value in found if isinstance(value, str) and value.strip()), "")


def _authors_among(creators: list[object]) -> list[object]:
    """Zotero's creators that are authors; a volume without any is its editors'."""
    authors = [c for c in creators if isinstance(c, Mapping) and c.get("creatorType") == "author"]
    return list(authors) or creators


def _cited_as(extra: object) -> str | None:
    """The citation key that Zotero's users pin in the field for everything else."""
    text = "\n".join(map(str, extra)) if isinstance(extra, list) else extra
    found = _CITATION_KEY.search(text) if isinstance(text, str) else None
    return found[1] if found else None


def _parsed(parts: object) -> str:
    """From [family, given, suffix, affiliation, ...] of arXiv to "Family, Suffix, Given"."""
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        return ""
    family, given, suffix = [*parts, "", "", ""][:3]
    return ", ".join(part for part in (family, suffix, given) if part.strip())


def _add_identifiers(fields: dict[str, object], external: object) -> None:
    if not isinstance(external, Mapping):
        return
    fields.pop("externalIds", None)
    for name, value in external.items():
        if isinstance(value, str | int) and name.lower() in _IDS:
            fields.setdefault(_IDS[name.lower()], value)
