"""The user's `--map`, and which of the fields it names a file has."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping

from rag.text import visible

# What a paper is made of: where the user names one of these, every record must have it.
NEEDED = ("abstract", "title", "id")

# Our metadata as a message calls them; the others by their own name.
_LABELS = {"id": "ID", "doi": "DOI", "arxiv": "arXiv ID", "url": "URL"}
_MOST_NAMES_SHOWN = 12


class Sought(dict[str, str]):
    """Our field -> the source's; `missing` are those of ours that no record has had yet."""

    def __init__(self, columns: Mapping[str, str]) -> None:
        super().__init__(columns)
        self.missing = set(columns)

    def note(self, has: Callable[[str], bool]) -> None:
        """Strike out what a record has."""
        if self.missing:
            self.missing = {ours for ours in self.missing if not has(self[ours])}


def absent(columns: Mapping[str, str], missing: Iterable[str]) -> str:
    """Those of `columns` that are `missing`, as the middle of a sentence.

    >>> absent({"doi": "Dio", "id": "Nr"}, {"doi"})
    '"Dio" for the DOI'
    """
    missing = set(missing)
    named = [
        f"{shown(theirs)} for the {_LABELS.get(ours, ours)}"
        for ours, theirs in columns.items()
        if ours in missing
    ]
    return " and ".join(named)


def shown(name: str) -> str:
    """A field's name for a message: in quotes, and no longer than fits."""
    return json.dumps(visible(name)[:40], ensure_ascii=False)


def listed(names: Iterable[str]) -> str:
    """Names for a message, the first twelve; "none" if there are none."""
    names = list(names)
    first = ", ".join(shown(name) for name in names[:_MOST_NAMES_SHOWN]) or "none"
    return first + (", ..." if len(names) > _MOST_NAMES_SHOWN else "")
