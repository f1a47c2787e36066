"""The store as it will be once what waits is committed: what is looked up, and what is staged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rag.keys import Identifiers, identifiers, paper_keys, text_key
from rag.matching import SAME_TEXT, jaccard
from rag.papers import content_hash, derive_id
from rag.store.catalog import Catalog
from rag.store.schema import Place
from rag.types import Paper, Record


class Reading:
    """A record that is being taken in, as a paper, with what it is looked up by."""

    __slots__ = ("digest", "file", "identifiers", "own_id", "paper", "record", "text_key")

    def __init__(self, record: Record, paper: Paper) -> None:
        self.record = record
        self.paper = paper
        self.file = record.source.file
        self.own_id = paper.id != derive_id(paper.text)
        self.digest = content_hash(paper.text)
        self.text_key = text_key(self.digest)
        self.identifiers: Identifiers = identifiers(paper.id if self.own_id else "", paper.metadata)

    @property
    def is_exported(self) -> bool:
        """Whether our own export gave it, which says itself where the paper was read."""
        return bool(self.record.listings)

    def places(self, paper_id: str, run: int) -> Iterator[Place]:
        """Where it says that the paper, in the store under `paper_id`, was read."""
        if not self.is_exported:
            own = self.paper.id if self.own_id and self.paper.id != paper_id else None
            found = self.identifiers
            source = self.record.source
            yield Place(paper_id, source, own, found.doi, found.arxiv, self.text_key, run)
        for listing in self.record.listings:
            own = listing.id if listing.id != paper_id else None
            key = text_key(listing.content_hash) if listing.content_hash else self.text_key
            yield Place(paper_id, listing.source, own, listing.doi, listing.arxiv, key)


@dataclass(slots=True)
class Staged:
    """A paper waiting for the next commit; `embed` is false where its chunks stay as they are."""

    paper: Paper
    content_hash: str
    embed: bool


@dataclass(frozen=True, slots=True)
class Standing:
    """How a paper stands in a file: places from earlier runs, and those read in this one.

    `met` says that this run has read it somewhere, in this file or in another.
    """

    before: int
    now: int
    met: bool


class Known:
    """Papers and places in the catalog, under those that are staged."""

    def __init__(self, catalog: Catalog, run: int) -> None:
        self._catalog = catalog
        self.run = run
        self.staged: dict[str, Staged] = {}
        self.places: list[Place] = []
        self._places_of: dict[str, list[Place]] = {}
        self._ids_by_key: dict[tuple[str, object], dict[str, None]] = {}
        # Exported papers that this run has taken over; their places tell of no run.
        self._taken_over: set[str] = set()

    def stage(self, paper: Paper, digest: str, *, embed: bool) -> None:
        """Let a paper wait, new or changed."""
        waiting = self.staged.get(paper.id)
        self.staged[paper.id] = Staged(
            paper, digest, embed or (waiting is not None and waiting.embed)
        )
        self._index("text", digest, paper.id)
        for key in paper_keys(paper):
            if key is not None:
                self._index("alike", key, paper.id)

    def note(self, paper_id: str, reading: Reading) -> None:
        """Let the places of a record wait, now that it is known which paper it is."""
        if reading.is_exported:
            self._taken_over.add(paper_id)
            there = {place.source for place, _ in self._history(paper_id)}
        else:
            there = set()
        for place in reading.places(paper_id, self.run):
            if place.source in there:
                continue
            self.places.append(place)
            self._places_of.setdefault(paper_id, []).append(place)
            self._index("read", place.text_key, paper_id)
            for name, value in (
                ("record_id", place.record_id),
                ("doi", place.doi),
                ("arxiv", place.arxiv),
            ):
                if value is not None:
                    self._index(name, value, paper_id)

    def clear(self) -> None:
        """Forget what waited, now that it is committed."""
        self.staged.clear()
        self.places.clear()
        self._places_of.clear()
        self._ids_by_key.clear()

    def by_id(self, paper_id: str) -> Paper | None:
        """The paper of exactly this ID."""
        waiting = self.staged.get(paper_id)
        return waiting.paper if waiting else self._catalog.by_id(paper_id)

    def by_text(self, reading: Reading) -> Paper | None:
        """The paper that has this text, or had it when it was last read from the same record."""
        for paper_id in self._ids_by_key.get(("text", reading.digest), ()):
            if self.staged[paper_id].content_hash == reading.digest:
                return self.staged[paper_id].paper
        stored = self._catalog.by_content(reading.digest)
        # One that waits with another text no longer has this one.
        if stored is not None and stored.id not in self.staged:
            return stored
        found = self._overlaid("read", reading.text_key, [self._catalog.read_as(reading.digest)])
        return next((paper for paper in found if self._still_reads(paper, reading)), None)

    def claimants(self, name: str, value: str) -> list[Paper]:
        """The papers that bear an ID, or that sources list under it, a "doi" or an "arxiv" ID."""
        if name != "id":
            return self._overlaid(name, value, self._catalog.listed(name, value))
        bearer = self.by_id(value)
        listed = self._overlaid("record_id", value, self._catalog.listed("record_id", value))
        return ([bearer] if bearer else []) + [p for p in listed if p.id != value]

    def alike(self, paper: Paper) -> list[Paper]:
        """The papers whose title or abstract begins or ends like this one's."""
        keys = paper_keys(paper)
        found = {p.id: p for p in self._overlaid("", None, self._catalog.alike(*keys))}
        for key in keys:
            found |= {p.id: p for p in self._overlaid("alike", key, [])}
        return list(found.values())

    def standing(self, paper_id: str, reading: Reading) -> Standing:
        """How a paper stands in the file of a record."""
        history = self._history(paper_id)
        files = {reading.file} | {listing.source.file for listing in reading.record.listings}
        here = [(place, since) for place, since in history if place.source.file in files]
        return Standing(
            before=sum(since < self.run for _, since in here),
            now=sum(place.run == self.run for place, _ in here),
            met=paper_id in self._taken_over or any(p.run == self.run for p, _ in history),
        )

    def lacks_place(self, paper_id: str, reading: Reading) -> bool:
        """Whether an exported record names a place that the paper does not have yet."""
        there = {place.source for place, _ in self._history(paper_id)}
        return any(place.source not in there for place in reading.places(paper_id, self.run))

    def was_taken_over(self, paper_id: str) -> bool:
        """Whether this run took the paper over from an export."""
        return paper_id in self._taken_over

    def _still_reads(self, paper: Paper, reading: Reading) -> bool:
        """Whether the text is a variant of the paper's, or an older one under the same ID.

        What a place said before its paper moved on to another text is no proof by itself.
        """
        if jaccard(paper.text, reading.paper.text) >= SAME_TEXT:
            return True
        return self.standing(paper.id, reading).now == 0 and any(
            place.source.file == reading.file
            and place.text_key == reading.text_key
            and (place.record_id or paper.id) == reading.paper.id
            for place, _ in self._history(paper.id)
        )

    def _history(self, paper_id: str) -> list[tuple[Place, int]]:
        """Every place of a paper with the run that read it first, the waiting ones included."""
        history = {place.source: (place, since) for place, since in self._catalog.history(paper_id)}
        for place in self._places_of.get(paper_id, ()):
            since = history[place.source][1] if place.source in history else self.run
            history[place.source] = (place, since)
        return list(history.values())

    def _overlaid(self, name: str, value: object, stored: Sequence[Paper | None]) -> list[Paper]:
        """Stored papers as they will be, then those that wait under this key."""
        ids = dict.fromkeys(paper.id for paper in stored if paper is not None)
        ids |= self._ids_by_key.get((name, value), {})
        unstaged = {paper.id: paper for paper in stored if paper is not None}
        found = (
            self.staged[i].paper if i in self.staged else unstaged.get(i) or self.by_id(i)
            for i in ids
        )
        return [paper for paper in found if paper is not None]

    def _index(self, name: str, value: object, paper_id: str) -> None:
        self._ids_by_key.setdefault((name, value), {})[paper_id] = None
