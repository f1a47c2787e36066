"""Expected papers, written as IDs or as places in files, found among the papers of a store."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from rag.types import Paper

_PLACE = re.compile(r"(?P<file>.+):(?P<position>[0-9]{1,9})\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Gold:
    """Each group as paper IDs, empty where the store holds none, and what to tell the user."""

    groups: tuple[frozenset[str], ...]
    problems: tuple[str, ...] = ()


class GoldIndex:
    """The IDs and places of papers, indexed once; finding one among n takes O(log n).

    `by_record_id` finds a paper that a source lists under another ID than its own, as where the
    same abstract stands in two files.
    """

    def __init__(
        self,
        papers: Iterable[Paper],
        by_record_id: Callable[[str], Paper | None] = lambda _: None,
    ) -> None:
        self._by_record_id = by_record_id
        self._ids: set[str] = set()
        # Position -> (file's name, paper ID), ascending, so that a prefix is found by bisection.
        self._places: dict[int, list[tuple[str, str]]] = {}
        names: dict[str, str] = {}
        for paper in papers:
            self._ids.add(paper.id)
            for source in paper.sources:
                name = names.setdefault(source.file, PurePath(source.file).name)
                self._places.setdefault(source.position, []).append((name, paper.id))
        for places in self._places.values():
            places.sort()

    def resolve(self, groups: Sequence[Sequence[str]]) -> Gold:
        """The papers of every group, what is in no paper, and prefixes that mean several files."""
        problems: list[str] = []
        resolved = tuple(
            frozenset(i for wanted in group for i in self._find(wanted, problems))
            for group in groups
        )
        return Gold(resolved, tuple(problems))

    def _find(self, wanted: str, problems: list[str]) -> set[str]:
        if wanted in self._ids:
            return {wanted}
        found = self._at_place(wanted, problems)
        if not found and (paper := self._by_record_id(wanted)) is not None:
            return {paper.id}
        if not found:
            problems.append(f"gold {wanted!r} is no paper of the store")
        return found

    def _at_place(self, wanted: str, problems: list[str]) -> set[str]:
        place = _PLACE.match(wanted)
        if place is None:
            return set()
        matches = list(self._matches(place["file"], int(place["position"])))
        ids, names = ({match[i] for match in matches} for i in (1, 0))
        if len(ids) > 1:
            shown = ", ".join(sorted(names)[:3])
            problems.append(
                f"gold {wanted!r} means {len(ids)} papers, of {shown}: any of them counts; "
                "write more of the file's name, or the paper's ID"
            )
        return ids

    def _matches(self, prefix: str, position: int) -> Iterator[tuple[str, str]]:
        places = self._places.get(position, [])
        for i in range(bisect_left(places, (prefix, "")), len(places)):
            if not places[i][0].startswith(prefix):
                return
            yield places[i]
