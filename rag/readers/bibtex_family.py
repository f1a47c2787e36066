"""What BibTeX entries inherit: everything from `xdata`, and by `crossref` what a volume gives.

The rules are those of BibTeX, with biblatex's change of names (manual, appendix B).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from rag.readers.bibtex_entries import Entry
from rag.types import Source

Placed = tuple[Entry, Source, int]

# Longer chains, and more relatives, are somebody's mistake.
_MAX_DEPTH = 20
_MAX_RELATIVES = 100
_VOLUMES = frozenset(
    "book mvbook collection mvcollection proceedings mvproceedings reference mvreference "
    "periodical booklet inbook conference".split()
)
# Of its volume a paper takes no abstract, keywords, DOI or address.
_INHERITED = (
    "author", "editor", "booktitle", "title", "subtitle", "journal", "journaltitle", "series",
    "publisher", "organization", "location", "address", "eventtitle", "volume", "year", "date",
    "month", "crossref", "xdata",
)  # fmt: skip
_RENAMED = {"title": "booktitle", "subtitle": "booksubtitle"}
_DATES = frozenset({"year", "date", "month"})


class Family:
    """Entries that have come by and may be referred to, and those that wait for one."""

    def __init__(self) -> None:
        self._known: dict[str, Entry] = {}
        self._waiting: dict[str, list[Placed]] = {}

    def add(self, entry: Entry, source: Source, line: int) -> Iterator[Placed]:
        """The entry, and those that waited for it, as far as they are whole now."""
        key = entry.key.casefold()
        ready = [(entry, source, line)]
        if entry.kind == "xdata" or entry.kind in _VOLUMES or key in self._waiting:
            self._known.setdefault(key, _reduced(entry))
            ready += self._waiting.pop(key, [])
        for placed in ready:
            whole, missing = self._resolved(placed[0])
            if missing is None:
                yield whole, placed[1], placed[2]
            else:
                self._waiting.setdefault(missing, []).append(placed)

    def rest(self) -> Iterator[Placed]:
        """Those whose relatives never came, in the order of the file."""
        left = [placed for waiting in self._waiting.values() for placed in waiting]
        for entry, source, line in sorted(left, key=lambda placed: placed[1].position):
            yield self._resolved(entry)[0], source, line

    def _resolved(self, entry: Entry) -> tuple[Entry, str | None]:
        """The entry with all it inherits, and the first relative that has not come yet."""
        if "crossref" not in entry.values and "xdata" not in entry.values:
            return entry, None
        values = dict(entry.values)
        seen = {entry.key.casefold()}
        missing: str | None = None
        # A relative's own relatives come after its own fields, which go before theirs.
        queue = [(name, key, 1) for name, key in _relatives(entry)]
        for name, key, depth in queue:
            if key in seen:
                continue
            seen.add(key)
            relative = self._known.get(key)
            if relative is None:
                missing = missing or key
                continue
            _inherit(values, entry.kind, relative, whole=name == "xdata")
            if depth < _MAX_DEPTH and len(queue) < _MAX_RELATIVES:
                queue += [(name, key, depth + 1) for name, key in _relatives(relative)]
        return replace(entry, values=values), missing


def _relatives(entry: Entry) -> list[tuple[str, str]]:
    found = []
    for name in ("xdata", "crossref"):
        listed = entry.values.get(name, "").split(",", _MAX_RELATIVES)[:_MAX_RELATIVES]
        keys = (key.strip().casefold() for key in listed)
        found += [(name, key) for key in keys if key]
    return found


def _inherit(values: dict[str, str], kind: str, relative: Entry, *, whole: bool) -> None:
    dated = bool(_DATES & {name for name in values if values[name]})
    for name, value in relative.values.items():
        if name in _DATES and dated:
            continue
        target = name if whole else _target(name, kind, relative.kind)
        if target and target not in ("crossref", "xdata") and not values.get(target):
            values[target] = value


def _target(name: str, kind: str, relative: str) -> str:
    """What a field of the volume is called in the paper; empty if it is not handed down."""
    if relative == "periodical":
        return {"title": "journaltitle", "subtitle": ""}.get(name, name)
    if kind.startswith("in") or kind in ("conference", "suppbook", "suppcollection", "bookinbook"):
        return _RENAMED.get(name, name)
    return "" if name in _RENAMED else name


def _reduced(entry: Entry) -> Entry:
    kept: Mapping[str, str] = entry.values
    if entry.kind != "xdata":
        kept = {name: kept[name] for name in _INHERITED if name in kept}
        # A volume that gives itself a `booktitle` hands down that, not its title.
        if kept.get("booktitle"):
            kept = {name: value for name, value in kept.items() if name not in _RENAMED}
    return replace(entry, values=kept, written={})
