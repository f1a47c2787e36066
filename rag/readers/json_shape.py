"""Whether a JSON object is a record, or what in it are the records."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from enum import Enum, auto

from rag.readers.fields import ABSTRACT, TITLE
from rag.readers.json_fields import flat_fields
from rag.readers.names import plain
from rag.readers.values import text

# Characters of an object that are looked at whole; a single record is never as long.
WHOLE = 16_777_216

_NEXT_NAME = re.compile(r"[\s,]*(?=\")")
_COLON = re.compile(r"\s*:\s*")
_OBJECT_IN_ARRAY = re.compile(r"\[\s*\{")


class Shape(Enum):
    """What an object is: `{"abstract": ...}`, `{"notes": [...]}`, `{"ID": {...}}`.

    NESTED is `{"message": {"items": [...]}}`.
    """

    RECORD = auto()
    LISTS = auto()
    KEYED = auto()
    NESTED = auto()


def shape_of(document: object, columns: Mapping[str, str]) -> Shape:
    """The shape of a decoded object; `columns` as for `record_from`."""
    if not isinstance(document, Mapping) or _has_abstract(document, columns):
        return Shape.RECORD
    lists = [part for part in document.values() if _holds_objects(part)]
    if lists:
        # The authors of a paper without an abstract are no papers.
        is_paper = _has_field(document, TITLE)
        listed = [entry for entries in lists for entry in entries if isinstance(entry, Mapping)]
        papers = any(_has_field(entry, (*TITLE, *ABSTRACT)) for entry in listed)
        return Shape.RECORD if is_paper and not papers else Shape.LISTS
    objects = [part for part in document.values() if isinstance(part, Mapping)]
    if not objects:
        return Shape.RECORD
    if any(_has_abstract(part, columns) for part in objects):
        return Shape.KEYED
    nested = any(_holds_objects(part) for inner in objects for part in inner.values())
    return Shape.NESTED if nested else Shape.KEYED


def shape_of_long(beginning: str, at: int) -> Shape:
    """The shape of an object at `at` of which only the beginning is known; it is no record."""
    decode = json.JSONDecoder().raw_decode
    at += 1
    while name := _NEXT_NAME.match(beginning, at):
        try:
            _, at = decode(beginning, name.end())
            colon = _COLON.match(beginning, at)
            if colon is None:
                break
            if _OBJECT_IN_ARRAY.match(beginning, colon.end()):
                return Shape.LISTS
            _, at = decode(beginning, colon.end())
        except (ValueError, RecursionError):
            break
    return Shape.KEYED


def _has_abstract(document: Mapping[str, object], columns: Mapping[str, str]) -> bool:
    wanted = (plain(columns["abstract"]),) if "abstract" in columns else ABSTRACT
    return any(
        plain(name) in wanted and text(value) for name, value in flat_fields(document).items()
    )


def _has_field(document: Mapping[str, object], wanted: Iterable[str]) -> bool:
    return any(plain(name) in wanted for name in flat_fields(document))


def _holds_objects(value: object) -> bool:
    return isinstance(value, list) and any(isinstance(part, Mapping) for part in value)
