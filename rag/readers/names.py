"""Names of fields, told by what they say and not by how they are spelled."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

_SIGNS = re.compile(r"[_\-\s.:/()]")


@lru_cache(maxsize=1024)
def plain(name: str) -> str:
    """A field's name without case, `_`, `-`, and spaces: "Paper_ID" -> "paperid".

    >>> plain("Container-Title ")
    'containertitle'
    """
    return _SIGNS.sub("", name.casefold())


class Names:
    """The names of a record's fields as they stand, to be found by their plain names.

    >>> Names(["_id", "Title", "id"]).present(("paperid", "id"))
    ('_id', 'id')
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._all = frozenset(names)
        self._by_plain: dict[str, list[str]] = {}
        for name in names:
            self._by_plain.setdefault(plain(name), []).append(name)
        self._present: dict[tuple[str, ...], tuple[str, ...]] = {}

    def present(self, wanted: tuple[str, ...]) -> tuple[str, ...]:
        """Those of `wanted` that there are, in its order, as they stand here."""
        found = self._present.get(wanted)
        if found is None:
            found = tuple(name for field in wanted for name in self._by_plain.get(field, ()))
            self._present[wanted] = found
        return found

    def spelled(self, name: str) -> str | None:
        """`name` as it is spelled here, exactly or nearly so."""
        return name if name in self._all else next(iter(self._by_plain.get(plain(name), ())), None)


@lru_cache(maxsize=64)
def names_of(names: tuple[str, ...]) -> Names:
    """The names of a record's fields; most records of a file have the same."""
    return Names(names)
