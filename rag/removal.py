"""Papers and sources taken out of a store."""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from rag.config import ServerAddress
from rag.errors import UsageError
from rag.readers import resolved
from rag.store import open_store
from rag.store.catalog import Catalog
from rag.types import Paper


@dataclass(frozen=True, slots=True)
class Removal:
    """What would go: papers, and with `source` that file with its places.

    `kept` counts papers of the source that another source has too.
    """

    papers: tuple[Paper, ...]
    source: str | None = None
    kept: int = 0


def plan(
    path: Path | ServerAddress, paper_ids: Sequence[str], source: str | None = None
) -> Removal:
    """What removing these papers, or this source, would take out of the store at `path`.

    An ID is taken as `rag show` takes it; a source is a name that `rag show` prints, or a path.

    Raises:
        UsageError: an ID or a source that the store does not have, or both are given, or neither.
        StoreError: there is no store, or it is damaged.
    """
    if bool(paper_ids) == (source is not None):
        raise UsageError("Name papers by ID, or one source: rag remove ID..., --source FILE.")
    with closing(open_store(path, None)) as store:
        if source is None:
            found = {paper.id: paper for paper in map(store.paper, paper_ids)}
            return Removal(tuple(found.values()))
        name = _source(store.catalog, source)
        alone = [store.paper(paper_id) for paper_id in store.catalog.only_in(name)]
        return Removal(tuple(alone), name, store.catalog.count_in(name) - len(alone))


def remove(path: Path | ServerAddress, removal: Removal) -> int:
    """Take out what `plan` found, all or nothing; how many papers went.

    Needs no embedding model.

    Raises:
        StoreError: the store cannot be written or is in use.
    """
    with closing(open_store(path, None)) as store:
        fingerprint = store.fingerprint
    with open_store(path, fingerprint, write=True) as store:
        before = store.count()[0]
        if removal.source is not None:
            store.catalog.remove_source(removal.source)
        else:
            store.catalog.remove([paper.id for paper in removal.papers])
        return before - store.count()[0]


def _source(catalog: Catalog, wanted: str) -> str:
    """The name of a source: as it is, of the file at that path, or the only one that ends so."""
    names = catalog.file_names()
    if wanted in names:
        return wanted
    at_path = catalog.name_at(resolved(Path(wanted)))
    if at_path in names:
        return at_path
    ending = [name for name in names if name.endswith(f"/{wanted}")]
    if len(ending) == 1:
        return ending[0]
    close = ending or difflib.get_close_matches(wanted[-100:], names, n=3, cutoff=0.3)
    advice = f"Closest: {', '.join(close[:3])}." if close else "`rag show ID` names sources."
    shown = os.fsencode(wanted).decode("utf-8", "replace")[:100]
    raise UsageError(f"No paper comes from a source {shown!r}. {advice}")
