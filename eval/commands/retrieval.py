"""`rag eval retrieval`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rag.cli.options import JsonOption, print_json

if TYPE_CHECKING:
    from eval.retrieval.collection import Collection
    from eval.retrieval.report import Report


_Corpus = Annotated[
    list[Path] | None,
    typer.Option(
        "--corpus",
        metavar="PATH",
        help="A folder with corpus.jsonl, queries.jsonl and qrels.tsv; or any file or folder "
        "that `rag ingest` reads (may be given more than once).",
    ),
]
_Queries = Annotated[
    Path | None, typer.Option(metavar="FILE", help='JSON lines with "id" and "text".')
]
_Qrels = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Judgements: a TSV of query, paper and grade with a header, or TREC's four columns.",
    ),
]
_Runs = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        help="Measure this TREC run instead of searching; of several, the first is compared "
        "to each other one.",
    ),
]
_Baselines = Annotated[
    bool, typer.Option("--baselines", help="Compare to plain BM25 and plain dense.")
]
_Depth = Annotated[
    int,
    typer.Option(
        min=10, max=1000, help="Papers for each query; measures that look deeper are left out."
    ),
]
_RunOut = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write the run there, in TREC's form; baselines beside it as NAME.bm25.EXT and "
        "NAME.dense.EXT.",
    ),
]
_QrelsOut = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write the judgements there, in TREC's four columns."),
]
# Not rag's own --store: RAG_STORE names the user's papers, which a collection must not join.
_Store = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Keep the index there instead of in the cache directory (RAG_CACHE_DIR), where "
        "one is kept for each corpus and embedding model.",
    ),
]


def retrieval(  # noqa: PLR0917 - one parameter for each option
    corpus: _Corpus = None,
    queries: _Queries = None,
    qrels: _Qrels = None,
    run: _Runs = None,
    baselines: _Baselines = False,
    depth: _Depth = 100,
    run_out: _RunOut = None,
    qrels_out: _QrelsOut = None,
    store: _Store = None,
    json: JsonOption = False,
) -> None:
    """Measure how well papers are found: nDCG@10, MRR@10, recall and MAP, with intervals.

    The index is built once and reused; an interrupted build goes on where it stopped. Fingerprints
    of papers and embedding model tell one index from another.
    """
    from eval.retrieval.collection import read_collection
    from eval.retrieval.run import HYBRID, WITH_BASELINES, measure_runs, run_names
    from eval.retrieval.trec import require_columns, write_qrels, write_run
    from rag.errors import UsageError

    systems = list(run_names(run)) if run else WITH_BASELINES if baselines else HYBRID
    runs_out = _run_files(run_out, systems)
    outputs = [*(file for file, _ in runs_out), *([qrels_out] if qrels_out else [])]
    _spare(corpus or [], [*(f for f in (queries, qrels) if f), *(run or [])], outputs)
    if run:
        if baselines or store:
            raise UsageError("--run measures what is there: leave out --baselines and --store.")
        report = measure_runs(run, corpus or [], queries, qrels)
    else:
        collection = read_collection(corpus or [], queries, qrels)
        if run_out:  # before an hour of indexing
            require_columns(run_out, collection.queries)
        report = _searched(collection, systems, depth, store)
    _show(report, json=json)
    for file, name in runs_out:
        write_run(file, report.runs[name], name)
    if qrels_out:
        write_qrels(qrels_out, report.collection.qrels)


def _show(report: Report, *, json: bool) -> None:
    from eval.retrieval.report import remarks, table, to_json
    from rag.render import Screen

    messages, screen = Screen(stderr=True), Screen()
    for remark in remarks(report):
        messages.line(remark)
    if json:
        print_json(to_json(report))
        return
    for line in table(report):
        screen.line(line)


def _spare(corpus: Sequence[Path], files: Sequence[Path], outputs: Sequence[Path]) -> None:
    """Make sure that nothing which is read is overwritten, nor anything written twice.

    Raises:
        UsageError: an output is one of the inputs, lies among papers, or is another output.
    """
    from rag.errors import UsageError

    for n, output in enumerate(outputs):
        read = [given for given in corpus if _holds(given, output, alone=len(corpus) == 1)]
        read += [given for given in files if _same(given, output)]
        if read:
            raise UsageError(f"{read[0]} is read by this command: write {output.name} elsewhere.")
        if any(_same(output, other) for other in outputs[:n]):
            raise UsageError(f"{output} would be written twice: name another file.")


def _holds(given: Path, output: Path, *, alone: bool) -> bool:
    """Whether a file to be written is one that --corpus reads, or would read the next time."""
    from eval.retrieval.collection import CORPUS, QRELS, QUERIES

    # Unlike Path's, os.path's tests do not raise where a folder is closed.
    if not os.path.isdir(given):  # noqa: PTH112
        return _same(given, output)
    if alone and os.path.isfile(given / CORPUS):  # noqa: PTH113
        return any(_same(given / name, output) for name in (CORPUS, QUERIES, QRELS))
    inside = Path(os.path.realpath(output)).is_relative_to(os.path.realpath(given))
    # Links lead to files elsewhere.
    return inside or (
        os.path.lexists(output) and any(_same(file, output) for file in given.rglob("*"))
    )


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # one is not there yet
        return os.path.realpath(one) == os.path.realpath(other)


def _searched(
    collection: Collection, systems: Sequence[str], depth: int, store: Path | None
) -> Report:
    from eval.retrieval.index import build, build_cached, cached_place
    from eval.retrieval.run import measure_search
    from rag.config import load_settings
    from rag.embed import open_embedder
    from rag.llm.model_files import cache_directory
    from rag.progress import counter

    settings = load_settings()
    embedder = open_embedder(settings)
    with counter("Indexing", "papers") as advance:
        if store:
            built = build(store, collection.corpus, embedder, advance)
        else:
            place = cached_place(collection.corpus, embedder, cache_directory(settings))
            built = build_cached(place, collection.corpus, embedder, advance)
    with counter("Searching", "queries") as advance:
        return measure_search(
            collection, built, embedder, settings.retrieval, depth, systems, advance
        )


def _run_files(run_out: Path | None, systems: Sequence[str]) -> list[tuple[Path, str]]:
    """Where each system's run is written: run.trec, run.bm25.trec, run.dense.trec."""
    if run_out is None:
        return []
    first, *others = systems
    # A system that is named by a path must not lead into its folder.
    plain = [other.replace(os.sep, "-") for other in others]
    names = [f"{run_out.stem}.{name}{run_out.suffix}" for name in plain]
    beside = [run_out.parent / name for name in names]
    return [(run_out, first), *zip(beside, others, strict=True)]
