"""The store as it will be once what waits is committed: what is looked up, and what is staged."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

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


@dataclass(eq=False, slots=True)
class Layer:
    """What one commit changes, and what it is looked up by until it is in the catalog."""

    staged: dict[str, Staged] = field(default_factory=dict)
    places: list[Place] = field(default_factory=list)
    places_of: dict[str, list[Place]] = field(default_factory=dict)
    ids_by_key: dict[tuple[str, object], dict[str, None]] = field(default_factory=dict)

    def index(self, name: str, value: object, paper_id: str) -> None:
        """Let a paper be found under a key."""
        self.ids_by_key.setdefault((name, value), {})[paper_id] = None


class Known:
    """Papers and places in the catalog, under those that wait.

    They wait in layers, one a commit, the newest last. Whether the catalog has a layer already
    makes no difference to what is found, so that a layer may be stored at any moment, by another
    thread; it is forgotten, once it is stored, at a moment that is the same in every run.
    """

    def __init__(self, catalog: Catalog, run: int) -> None:
        self._catalog = catalog
        self.run = run
        self._layers = deque([Layer()])
        # What the readings ahead are looked up by, and which of that the catalog has.
        self._asked: dict[str, frozenset[object]] = {}
        self._there: dict[str, frozenset[object]] = {}
        # Exported papers that this run has taken over; their places tell of no run.
        self._taken_over: set[str] = set()

    @property
    def waiting(self) -> Layer:
        """The layer that grows."""
        return self._layers[-1]

    def hand_over(self) -> Layer:
        """Begin a new layer; the one before, to be stored."""
        layer = self.waiting
        self._layers.append(Layer())
        return layer

    def look_ahead(self, readings: Sequence[Reading], stored: Iterable[Layer]) -> None:
        """Forget layers that are stored, and ask the catalog at once what it has for `readings`.

        What comes into it later is in a layer until the next call.
        """
        for layer in stored:
            self._layers.remove(layer)
        self._asked = {
            "id": frozenset(r.paper.id for r in readings),
            "content_hash": frozenset(r.digest for r in readings),
            "text_key": frozenset(r.text_key for r in readings),
            "record_id": frozenset(r.paper.id for r in readings),
            "doi": frozenset(r.identifiers.doi for r in readings if r.identifiers.doi),
            "arxiv": frozenset(r.identifiers.arxiv for r in readings if r.identifiers.arxiv),
            "alike": frozenset(key for r in readings for key in paper_keys(r.paper)),
        }
        self._there = {
            name: self._catalog.values_there(name, asked) for name, asked in self._asked.items()
        }

    def stage(self, paper: Paper, digest: str, *, embed: bool) -> None:
        """Let a paper wait, new or changed."""
        layer = self.waiting
        before = layer.staged.get(paper.id)
        layer.staged[paper.id] = Staged(
            paper, digest, embed or (before is not None and before.embed)
        )
        layer.index("text", digest, paper.id)
        for key in paper_keys(paper):
            if key is not None:
                layer.index("alike", key, paper.id)

    def note(self, paper_id: str, reading: Reading) -> None:
        """Let the places of a record wait, now that it is known which paper it is."""
        if reading.is_exported:
            self._taken_over.add(paper_id)
            there = {place.source for place, _ in self._history(paper_id)}
        else:
            there = set()
        layer = self.waiting
        for place in reading.places(paper_id, self.run):
            if place.source in there:
                continue
            layer.places.append(place)
            layer.places_of.setdefault(paper_id, []).append(place)
            layer.index("read", place.text_key, paper_id)
            for name, value in (
                ("record_id", place.record_id),
                ("doi", place.doi),
                ("arxiv", place.arxiv),
            ):
                if value is not None:
                    layer.index(name, value, paper_id)

    def by_id(self, paper_id: str) -> Paper | None:
        """The paper of exactly this ID."""
        waiting = self._staged(paper_id)
        if waiting is not None:
            return waiting.paper
        return None if self._is_absent("id", paper_id) else self._catalog.by_id(paper_id)

    def by_text(self, reading: Reading) -> Paper | None:
        """The paper that has this text, or had it when it was last read from the same record."""
        for paper_id in self._waiting_under("text", reading.digest):
            waiting = self._staged(paper_id)
            if waiting is not None and waiting.content_hash == reading.digest:
                return waiting.paper
        if not self._is_absent("content_hash", reading.digest):
            stored = self._catalog.by_content(reading.digest)
            # One that waits with another text no longer has this one.
            if stored is not None and self._staged(stored.id) is None:
                return stored
        read_as = []
        if not self._is_absent("text_key", reading.text_key):
            read_as.append(self._catalog.read_as(reading.digest))
        found = self._overlaid("read", reading.text_key, read_as)
        return next((paper for paper in found if self._still_reads(paper, reading)), None)

    def claimants(self, name: str, value: str) -> list[Paper]:
        """The papers that bear an ID, or that sources list under it, a "doi" or an "arxiv" ID."""
        if name != "id":
            return self._listed(name, value)
        bearer = self.by_id(value)
        listed = self._listed("record_id", value)
        return ([bearer] if bearer else []) + [p for p in listed if p.id != value]

    def alike(self, paper: Paper) -> list[Paper]:
        """The papers whose title or abstract begins or ends like this one's."""
        keys = [key for key in paper_keys(paper) if key is not None]
        absent = all(self._is_absent("alike", key) for key in keys)
        found = {}
        if not absent:
            stored = self._catalog.alike(*paper_keys(paper))
            found = {p.id: p for p in self._overlaid("", None, stored)}
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

    def _listed(self, name: str, value: str) -> list[Paper]:
        absent = self._is_absent(name, value)
        return self._overlaid(name, value, [] if absent else self._catalog.listed(name, value))

    def _is_absent(self, name: str, value: object) -> bool:
        """Whether the catalog is known to have no such value, but for what still waits."""
        return value in self._asked.get(name, ()) and value not in self._there[name]

    def _history(self, paper_id: str) -> list[tuple[Place, int]]:
        """Every place of a paper with the run that read it first, the waiting ones included."""
        history = {place.source: (place, since) for place, since in self._catalog.history(paper_id)}
        for layer in self._layers:
            for place in layer.places_of.get(paper_id, ()):
                since = history[place.source][1] if place.source in history else self.run
                history[place.source] = (place, since)
        return list(history.values())

    def _overlaid(self, name: str, value: object, stored: Sequence[Paper | None]) -> list[Paper]:
        """Stored papers as they will be, then those that wait under this key."""
        unstaged = {paper.id: paper for paper in stored if paper is not None}
        waiting = self._waiting_under(name, value)
        ids = list(unstaged | waiting)
        if waiting and len(ids) > 1:
            # The oldest first, whichever of those that wait the catalog has by now.
            old = self._catalog.in_order(ids)
            ids = [*old, *(i for i in ids if i not in set(old))]
        found = []
        for paper_id in ids:
            staged = self._staged(paper_id)
            paper = staged.paper if staged else unstaged.get(paper_id) or self.by_id(paper_id)
            if paper is not None:
                found.append(paper)
        return found

    def _staged(self, paper_id: str) -> Staged | None:
        for layer in reversed(self._layers):
            if paper_id in layer.staged:
                return layer.staged[paper_id]
        return None

    def _waiting_under(self, name: str, value: object) -> dict[str, None]:
        """IDs of the papers that wait under a key, in the order in which they came."""
        found: dict[str, None] = {}
        for layer in self._layers:
            found |= layer.ids_by_key.get((name, value), {})
        return found
