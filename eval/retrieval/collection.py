"""A retrieval test collection: papers, queries and judgements, as files.

Queries are JSON lines `{"id": str, "text": str}` (or `_id`, as BEIR has it); judgements as in
`eval.retrieval.trec`; papers are anything that `rag ingest` reads. A folder may hold all three:
`corpus.jsonl`, `queries.jsonl`, `qrels.tsv`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eval.lines import parse_lines, read_lines, refuse
from eval.retrieval.trec import Qrels, read_qrels
from rag.errors import ReadError, UsageError

CORPUS, QUERIES, QRELS = "corpus.jsonl", "queries.jsonl", "qrels.tsv"
_STRANGERS = (
    "No query has a judgement: the IDs of the queries are not those of the judgements. Check that "
    "the files belong together."
)


@dataclass(frozen=True, slots=True)
class Collection:
    """What is asked, and what should be found.

    `queries` and `qrels` have the same keys, ascending: the queries that are evaluated.
    `unjudged` are queries left out because nothing is judged for them, `unasked` judged ones left
    out because the query file lacks them.
    """

    corpus: tuple[Path, ...]
    queries: Mapping[str, str]
    qrels: Qrels
    unjudged: tuple[str, ...] = ()
    unasked: tuple[str, ...] = ()


def read_collection(
    corpus: Sequence[Path], queries: Path | None = None, qrels: Path | None = None
) -> Collection:
    """The collection of these files; a folder as above brings what is not named.

    Raises:
        UsageError: papers, queries or judgements are neither named nor in the folder.
        ReadError: a file cannot be read, a line is malformed, or no query has a judgement.
    """
    if not corpus:
        raise UsageError("There is nothing to search. Name the papers: --corpus PATH.")
    queries = queries or _required(corpus, QUERIES, "--queries")
    qrels = qrels or _required(corpus, QRELS, "--qrels")
    papers = _in_folder(corpus, CORPUS)
    return _judged(tuple([papers] if papers else corpus), read_queries(queries), read_qrels(qrels))


def read_judgements(
    corpus: Sequence[Path], queries: Path | None, qrels: Path | None, in_runs: Iterable[str]
) -> Collection:
    """The same for runs that are there already: of `corpus` only a folder's files are used.

    Without a query file every judged query counts; `in_runs` are the query IDs of the runs.

    Raises:
        UsageError: judgements are neither named nor in the folder.
        ReadError: as `read_collection`.
    """
    judged = read_qrels(qrels or _required(corpus, QRELS, "--qrels"))
    queries = queries or _in_folder(corpus, QUERIES)
    asked = read_queries(queries) if queries else dict.fromkeys([*judged, *in_runs], "")
    return _judged((), asked, judged)


def read_queries(path: Path) -> dict[str, str]:
    """Queries by ID.

    Raises:
        ReadError: the file cannot be read or holds none, or a line is malformed; it is named.
    """
    lines = read_lines(path)
    rows, bad = parse_lines(lines, _query)
    refuse(path, bad or ([] if rows else [(1, "there is no query in it")]))
    queries: dict[str, str] = {}
    for (number, _), (query_id, text) in zip(lines, rows, strict=True):
        if query_id in queries:
            bad.append((number, f"query {query_id!r} is there before"))
        queries[query_id] = text
    refuse(path, bad)
    return queries


def _query(line: str) -> tuple[str, str]:
    try:
        raw = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError("it is not JSON") from error
    if not isinstance(raw, dict):
        raise ValueError('it is not an object {"id": ..., "text": ...}')
    query_id, text = raw.get("id", raw.get("_id")), raw.get("text")
    if isinstance(query_id, bool) or not isinstance(query_id, str | int) or query_id == "":
        raise ValueError('it has no "id"')
    if not isinstance(text, str):
        raise ValueError('it has no "text"')
    if any("\ud800" <= c <= "\udfff" for c in f"{query_id}{text}"):
        raise ValueError("it holds half of a surrogate pair, which is no text")
    return str(query_id), text


def _judged(corpus: tuple[Path, ...], asked: Mapping[str, str], judged: Qrels) -> Collection:
    both = sorted(asked.keys() & judged.keys())
    if not both:
        raise ReadError(_STRANGERS)
    return Collection(
        corpus=corpus,
        queries={query: asked[query] for query in both},
        qrels={query: judged[query] for query in both},
        unjudged=tuple(sorted(asked.keys() - judged.keys())),
        unasked=tuple(sorted(judged.keys() - asked.keys())),
    )


def _in_folder(corpus: Sequence[Path], name: str) -> Path | None:
    file = corpus[0] / name if len(corpus) == 1 else None
    return file if file is not None and file.is_file() else None


def _required(corpus: Sequence[Path], name: str, option: str) -> Path:
    file = _in_folder(corpus, name)
    if file is None:
        raise UsageError(
            f"{option} is missing: name the file, or with --corpus a folder that has {name}."
        )
    return file
