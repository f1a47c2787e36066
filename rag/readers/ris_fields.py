"""A record's tagged lines -> its fields, alike for all dialects of RIS."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class Tagged:
    """A tag and its lines: the one it stands in, and those that continue it."""

    name: str
    lines: list[str] = field(default_factory=list)


# Names and keywords: each value one, never joined.
_PEOPLE = frozenset("AU A1 A2 A3 A4 ED FAU AF".split())
_KEYWORDS = frozenset("KW MH OT DE".split())
_TEXTS = frozenset("AB N2".split())
# Reference managers number the records of a file; other files have the same numbers.
_RUNNING_NUMBER = re.compile(r"#?\d{1,5}\Z")
_REFERENCES = re.compile(r"(?:references|cited references)\s*:", re.I)
_DOI_ADDRESS = re.compile(r"\A(?:https?://(?:dx\.)?doi\.org/|doi:\s*)", re.I)
_IDENTIFIERS = ("ID", "AN")


def fields_of(tags: Sequence[Tagged]) -> dict[str, object]:
    """Values by tag: texts, and lists where a tag occurs several times or holds several.

    The abstract's lines stay lines. A list of cited works is left out, since it is not about this
    paper. An ID that only numbers the records of the file is called "record number".
    """
    gathered: dict[str, list[Tagged]] = {}
    for tag in tags:
        gathered.setdefault(tag.name, []).append(tag)
    fields: dict[str, object] = {}
    for name, found in gathered.items():
        value = _value(name, found)
        if value:
            fields[name] = value
    for name in _IDENTIFIERS:
        _identify(fields, name)
    if "AN" in fields:
        fields.setdefault("ID", fields["AN"])
    if isinstance(doi := fields.get("DO"), str):
        fields["DO"] = _DOI_ADDRESS.sub("", doi)
    if not fields.keys() & {"AU", "A1", "FAU"} and "A2" in fields:
        fields["A1"] = fields.pop("A2")
    return fields


def _value(name: str, found: Sequence[Tagged]) -> str | list[str]:
    if name in _KEYWORDS:
        return _keywords(found)
    if name in _PEOPLE:
        return _people(found)
    values = [text for tag in found if (text := "\n".join(tag.lines).strip())]
    if name in _TEXTS:
        return "\n".join(dict.fromkeys(values))
    values = [value for value in dict.fromkeys(map(_readable, values)) if not _is_cited(value)]
    return values if len(values) > 1 else "".join(values)


def _keywords(found: Sequence[Tagged]) -> list[str]:
    """One a tag, one a line (EndNote), or several between semicolons or commas."""
    lines = [line for tag in found for line in tag.lines if line.strip()]
    separator = ";" if any(";" in line for line in lines) else ""
    if not separator and len(lines) == 1 and lines[0].count(",") > 1:
        separator = ","
    parts = [part for line in lines for part in (line.split(separator) if separator else [line])]
    # Ovid marks the main ones with a star.
    shown = (_readable(part).strip("* ") for part in parts)
    return list(dict.fromkeys(keyword for keyword in shown if keyword))


def _people(found: Sequence[Tagged]) -> list[str]:
    lines = [_readable(" ".join(tag.lines)) for tag in found]
    return [name for line in lines for part in line.split(";") if (name := part.strip(" ,"))]


def _identify(fields: dict[str, object], name: str) -> None:
    value = fields.get(name)
    if isinstance(value, list):
        value = value[0]
    if not isinstance(value, str):
        return
    # ProQuest gives its own number, then the database's.
    first = value.split(";")[0].strip() if name == "AN" else value.strip()
    if _RUNNING_NUMBER.match(first):
        del fields[name]
        fields["record number"] = first
    elif first:
        fields[name] = first


def _is_cited(value: str) -> bool:
    return _REFERENCES.match(value) is not None


def _readable(text: str) -> str:
    return " ".join((html.unescape(text) if "&" in text else text).split())
