"""The index of a test collection: made once, kept in the cache, made again when anything differs.

CACHE/eval/NAME-FINGERPRINT/index/      a store as `rag ingest` makes it
CACHE/eval/NAME-FINGERPRINT/whole.json  written last: what the ingest came to

The fingerprint is that of the papers' files and of all that shapes the vectors.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from eval.lines import write_text
from eval.retrieval.collection import CORPUS
from eval.retrieval.trec import Qrels, Run
from rag.config import RetrievalSettings
from rag.embed import Embedder
from rag.errors import ReadError, StoreError, UsageError
from rag.ingest import ingest
from rag.passages import Passages
from rag.readers import find_files
from rag.retrieve import Retriever, checked
from rag.store import Store, fingerprint_of
from rag.types import Rejected

Progress = Callable[[int, int | None], None]


@dataclass(frozen=True, slots=True)
class Built:
    """An index on disk. `rejected` are records that are not in it.

    `reused` where nothing had to be added, `cached` where it can be deleted at any time.
    """

    path: Path
    papers: int
    chunks: int
    rejected: tuple[Rejected, ...]
    reused: bool
    cached: bool = False

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return sum(file.stat().st_size for file in self.path.rglob("*") if file.is_file())


def cached_place(papers: Sequence[Path], embedder: Embedder, cache: Path) -> Path:
    """Where in the cache the index of these files belongs; its last part is `index`.

    Raises:
        ReadError: a path does not exist or cannot be read.
    """
    digest = hashlib.sha256(json.dumps(asdict(fingerprint_of(embedder))).encode())
    for file, _ in find_files(papers):
        try:
            with file.open("rb") as content:
                digest.update(hashlib.file_digest(content, "sha256").digest())
        except OSError as error:
            raise ReadError(
                f"{file} cannot be read: {error.strerror or error}. Check its permissions."
            ) from error
    first = papers[0].absolute()
    name = first.parent.name if first.name == CORPUS else first.stem
    readable = re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-.")[:40] or "papers"
    return cache / "eval" / f"{readable}-{digest.hexdigest()[:16]}" / "index"


def build_cached(place: Path, papers: Sequence[Path], embedder: Embedder, on: Progress) -> Built:
    """The index at `cached_place`; one that was interrupted goes on where it stopped.

    Raises:
        ReadError: nothing in the files is a paper.
        StoreError, ModelError, EndpointError: as `rag.ingest.ingest`.
    """
    note = place.with_name("whole.json")
    known = _noted(note)
    if known is not None and place.is_dir():
        return Built(place, *known, reused=True, cached=True)
    built = build(place, papers, embedder, on)
    outcome = {
        "papers": built.papers,
        "chunks": built.chunks,
        "rejected": [asdict(item) for item in built.rejected],
    }
    write_text(note, json.dumps(outcome, indent=2) + "\n")
    return replace(built, cached=True)


def build(place: Path, papers: Sequence[Path], embedder: Embedder, on: Progress) -> Built:
    """Bring the index at `place` up to date with the files; what it has already costs little.

    Raises:
        ReadError: nothing in the files is a paper.
        StoreError, ModelError, EndpointError: as `rag.ingest.ingest`.
    """
    done = ingest(papers, place, embedder, on)
    if not done.added + done.updated + done.unchanged + done.duplicates:
        why = f" {done.rejected[0].reason}" if done.rejected else ""
        raise ReadError(f"No paper was found in {', '.join(map(str, papers))}.{why}")
    reused = not done.added + done.updated
    return Built(place, done.papers, done.chunks, done.rejected, reused)


@contextmanager
def opened(built: Built, embedder: Embedder, settings: RetrievalSettings) -> Iterator[Searcher]:
    """The index, ready to be searched.

    Raises:
        StoreError: it is damaged, or was built by something else.
    """
    try:
        with Store.open(built.path, fingerprint_of(embedder)) as store:
            yield Searcher(store, Retriever(store, embedder, Passages(embedder), settings))
    except StoreError as error:
        if not built.cached:
            raise
        raise StoreError(
            f"The cached index of the collection cannot be used. Delete {built.path.parent}, and "
            f"the next run makes it again. ({error})"
        ) from error


class Searcher:
    """Runs queries over an open index."""

    def __init__(self, store: Store, retriever: Retriever) -> None:
        self._store = store
        self._retriever = retriever

    def stored_ids(self, qrels: Qrels) -> dict[str, str | None]:
        """Each judged paper's ID in the index; None where it is missing there.

        The two differ where the corpus has one abstract under several IDs: the index has it once.
        """
        catalog = self._store.catalog
        judged = sorted({paper for judgements in qrels.values() for paper in judgements})
        found = {p: catalog.by_id(p) or catalog.by_record_id(p) for p in judged}
        return {paper: bearer.id if bearer else None for paper, bearer in found.items()}

    def run(
        self, queries: Mapping[str, str], depth: int, systems: Collection[str], on: Progress
    ) -> tuple[dict[str, dict[str, list[tuple[str, float]]]], dict[str, str]]:
        """The `depth` best papers of every query by each of `systems`; and queries refused, why.

        A query that `rag ask` would refuse (empty, too long) has no result.
        """
        runs: dict[str, dict[str, list[tuple[str, float]]]] = {system: {} for system in systems}
        refused: dict[str, str] = {}
        for done, (query, text) in enumerate(queries.items(), start=1):
            try:
                asked = {query: checked(text)}
            except UsageError as error:
                refused[query] = str(error)
                continue
            for system, found in self._retriever.rankings(asked, depth, systems).items():
                runs[system][query] = list(found[query].items())
            on(done, len(queries))
        return runs, refused


def with_other_ids(run: Run, stored: Mapping[str, str | None]) -> Run:
    """The run with every judged ID of an abstract that the corpus has under several.

    They follow one another with the same score, as they would in an index that keeps doubles.
    """
    others: dict[str, list[str]] = {}
    for judged, bearer in stored.items():
        if bearer is not None and bearer != judged:
            others.setdefault(bearer, []).append(judged)
    if not others:
        return run
    return {
        query: [(name, score) for p, score in ranked for name in (p, *others.get(p, ()))]
        for query, ranked in run.items()
    }


def _noted(note: Path) -> tuple[int, int, tuple[Rejected, ...]] | None:
    try:
        raw = json.loads(note.read_text(encoding="utf-8"))
        rejected = tuple(Rejected(**item) for item in raw["rejected"])
        return int(raw["papers"]), int(raw["chunks"]), rejected
    except (OSError, ValueError, KeyError, TypeError):
        return None
