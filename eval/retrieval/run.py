"""Searches a collection, or takes runs that are there, and measures them."""

from __future__ import annotations

from collections.abc import Collection as Group
from collections.abc import Sequence
from pathlib import Path

from eval.retrieval.collection import Collection, read_judgements
from eval.retrieval.index import Built, Progress, opened, with_other_ids
from eval.retrieval.ranking import measure
from eval.retrieval.report import Report, named
from eval.retrieval.trec import read_run
from rag.config import RetrievalSettings
from rag.embed import Embedder
from rag.errors import ReadError

HYBRID = ("hybrid",)
WITH_BASELINES = ("hybrid", "bm25", "dense")


def measure_search(  # noqa: PLR0913, PLR0917 - what is searched, how, and how far
    collection: Collection,
    built: Built,
    embedder: Embedder,
    settings: RetrievalSettings,
    depth: int,
    systems: Group[str],
    on_progress: Progress,
) -> Report:
    """Ask every query of `collection` of the index, and measure what each system ranks.

    `systems` are names that `rag.retrieve.Retriever.rankings` knows.

    Raises:
        StoreError, EndpointError: the index cannot be read, a query not be embedded.
        RagError: ir_measures is not installed.
    """
    with opened(built, embedder, settings) as searcher:
        stored = searcher.stored_ids(collection.qrels)
        found, refused = searcher.run(collection.queries, depth, systems, on_progress)
    runs = {system: with_other_ids(run, stored) for system, run in found.items()}
    relevant = {
        p for judged in collection.qrels.values() for p, grade in judged.items() if grade > 0
    }
    return Report(
        collection,
        tuple(measure(system, run, collection.qrels, depth) for system, run in runs.items()),
        runs,
        built,
        missing=tuple(sorted(paper for paper in relevant if stored[paper] is None)),
        refused=refused,
    )


def run_names(files: Sequence[Path]) -> dict[str, Path]:
    """Runs by name: that of the file without its ending, or the whole path where two are alike."""
    alike = len({file.stem for file in files}) < len(files)
    return {str(file) if alike else file.stem: file for file in files}


def measure_runs(
    files: Sequence[Path], corpus: Sequence[Path], queries: Path | None, qrels: Path | None
) -> Report:
    """Measure TREC runs, named as in `run_names`.

    Raises:
        UsageError, ReadError: as `read_judgements` and `read_run`; or a run has no query that is
            evaluated, and its own are named.
        RagError: ir_measures is not installed.
    """
    by_name = run_names(files)
    runs = {name: read_run(file) for name, file in by_name.items()}
    in_runs = {query for run in runs.values() for query in run}
    collection = read_judgements(corpus, queries, qrels, in_runs)
    for name, run in runs.items():
        if collection.qrels.keys().isdisjoint(run):
            raise ReadError(
                f"No judged query of the collection is in {by_name[name]}, only "
                f"{named(sorted(run), 'query', 'queries')}. Check that the files belong together."
            )
    systems = tuple(measure(name, run, collection.qrels) for name, run in runs.items())
    strangers = in_runs - collection.qrels.keys() - set(collection.unjudged)
    return Report(collection, systems, runs, strangers=tuple(sorted(strangers)))
