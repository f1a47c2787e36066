"""What `rag eval retrieval` found, as data, as JSON and as lines for a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eval.cells import cell, shortened
from eval.retrieval.collection import Collection
from eval.retrieval.index import Built
from eval.retrieval.ranking import Scored, differences
from eval.retrieval.trec import Run
from eval.statistics.estimates import PairedTest

# Missing papers, refused queries and the like that a message names; it counts the others.
NAMED = 5
# Three systems in 80 columns.
_LABEL, _CELL = 16, 20
# Longest ID in a message, in characters.
_LONGEST_ID = 60


@dataclass(frozen=True, slots=True)
class Report:
    """Systems measured on one collection; `systems[0]` is compared to each other one.

    `missing` are relevant papers that the index lacks, None where no index was searched; `refused`
    are queries that could not be asked, with the reason. Both count as not found. `strangers` are
    queries of ready runs that the collection does not have.
    """

    collection: Collection
    systems: tuple[Scored, ...]
    runs: Mapping[str, Run]
    index: Built | None = None
    missing: tuple[str, ...] | None = None
    refused: Mapping[str, str] | None = None
    strangers: tuple[str, ...] = ()

    def differences(self) -> dict[str, dict[str, PairedTest]]:
        """By the other system's name: the first minus it, in each measure."""
        first, *others = self.systems
        return {other.name: differences(first, other) for other in others}


def to_json(report: Report) -> dict[str, Any]:
    """The contract of `rag eval retrieval --json`."""
    collection, index = report.collection, report.index
    return {
        "queries": len(collection.qrels),
        "without_judgements": len(collection.unjudged),
        "not_asked": len(collection.unasked),
        "refused": [{"query": q, "reason": why} for q, why in (report.refused or {}).items()],
        "missing_relevant": None if report.missing is None else list(report.missing),
        "index": None if index is None else _index_json(index),
        "systems": [_system_json(system) for system in report.systems],
        "differences": [
            {
                "system": report.systems[0].name,
                "baseline": name,
                "measures": {measure: test._asdict() for measure, test in tests.items()},
            }
            for name, tests in report.differences().items()
        ],
    }


def table(report: Report) -> Iterator[str]:
    """The figures, a line each."""
    yield f"{len(report.collection.qrels):,} queries; in brackets, 95 % intervals"
    yield ""
    systems = report.systems
    estimates = [system.estimates() for system in systems]
    shown = {system.name: shortened(system.name, _CELL) for system in systems}
    yield _row("", list(shown.values()))
    for measure in estimates[0]:
        yield _row(measure, [cell(found[measure]) for found in estimates])
    yield _row("without result", [f"{len(system.without_result):,}" for system in systems])
    for name, tests in report.differences().items():
        yield ""
        yield from _headed(
            f"{shown[systems[0].name]} vs {shown[name]}",
            ["difference", "p (paired randomisation)"],
        )
        for measure, t in tests.items():
            interval = f"{t.difference:+.3f} [{t.low:+.3f}, {t.high:+.3f}]"
            yield _row(measure, [interval, f"{t.p:.4f}" if t.p >= 0.0001 else "<0.0001"])
    if len(systems) > 1:
        yield ""
        yield "p is not corrected for the number of measures."


def remarks(report: Report) -> Iterator[str]:
    """What a reader of the figures has to know of the collection and the index."""
    collection = report.collection
    if collection.unjudged:
        yield f"Left out, without judgements: {named(collection.unjudged, 'query', 'queries')}."
    if collection.unasked:
        yield (
            "Left out, judged but not among the queries: "
            f"{named(collection.unasked, 'query', 'queries')}."
        )
    if report.strangers:
        yield (
            "Left out, in a run but not in the collection: "
            f"{named(report.strangers, 'query', 'queries')}."
        )
    for query, why in list((report.refused or {}).items())[:NAMED]:
        yield f"Query {shortened(query, _LONGEST_ID)} was not asked, and counts 0: {why}"
    if report.missing:
        yield (
            "Relevant but not in the index, and so never found: "
            f"{named(report.missing, 'paper', 'papers')}."
        )
    if report.index:
        yield from _of_index(report.index)


def named(names: Sequence[str], one: str, many: str) -> str:
    """How many there are and the first few: "7 queries (q1, q2, q3, q4, q5, ...)"."""
    first = ", ".join(shortened(name, _LONGEST_ID) for name in names[:NAMED])
    more = ", ..." if len(names) > NAMED else ""
    return f"{len(names):,} {one if len(names) == 1 else many} ({first}{more})"


def _of_index(index: Built) -> Iterator[str]:
    for item in index.rejected[:NAMED]:
        place = f", record {item.position}" if item.position else ""
        yield f"Rejected {item.source}{place}: {item.reason}"
    if len(index.rejected) > NAMED:
        yield f"{len(index.rejected) - NAMED} more records were rejected."
    yield (
        f"The index{' (reused)' if index.reused else ''} holds {index.papers:,} papers and takes "
        f"{index.size / 1e6:.1f} MB at {index.path}"
        f"{', a cache that can be deleted (--store DIR keeps it elsewhere)' * index.cached}."
    )


def _system_json(system: Scored) -> dict[str, Any]:
    return {
        "name": system.name,
        "without_result": len(system.without_result),
        "measures": {measure: found.to_json() for measure, found in system.estimates().items()},
    }


def _index_json(index: Built) -> dict[str, Any]:
    return {
        "path": str(index.path),
        "bytes": index.size,
        "reused": index.reused,
        "papers": index.papers,
        "chunks": index.chunks,
        "rejected": [
            {"source": r.source, "position": r.position, "reason": r.reason} for r in index.rejected
        ],
    }


def _headed(label: str, cells: Sequence[str]) -> Iterator[str]:
    """A row whose label has a line to itself where it is wider than its column."""
    if len(label) > _LABEL:
        yield label
        label = ""
    yield _row(label, cells)


def _row(label: str, cells: Sequence[str]) -> str:
    return (label.ljust(_LABEL) + "".join(f" {cell.ljust(_CELL)}" for cell in cells)).rstrip()
