"""What a run is worth: every metric with its interval, overall and by kind of question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from eval.items import Item
from eval.metrics import calibration
from eval.metrics.measures import Unit
from eval.metrics.scores import MEANS, METRICS, Scored, scored
from eval.statistics.estimates import Estimate, estimate, quantile
from eval.statistics.intervals import Values
from rag.text import visible

PERCENTILES = {"p50": 0.5, "p95": 0.95}
TIMES = ("seconds", "retrieve_seconds", "generate_seconds", "verify_seconds")

# Column of the table by kind -> metrics, of which a kind has one. Rows fit in 80 columns.
_BY_KIND = {
    "correct": ("correct",),
    "gold": ("all_gold_cited",),
    "facts": ("must_include",),
    "precision": ("citation_precision",),
    "refused": ("refused", "over_refused"),
    "seconds": ("seconds",),
}


@dataclass(frozen=True, slots=True)
class KindSummary:
    """The questions of one kind. `n` were reached, `failed` of them; `skipped` were not."""

    n: int
    failed: int
    skipped: int
    metrics: Mapping[str, Estimate]


@dataclass(frozen=True, slots=True)
class Summary:
    """A run measured. `n` items were reached, done or failed; `skipped` were not.

    `overall` has every metric of `METRICS`, the kinds those that are means. `foretold` is how many
    items have a confidence of which it is known whether it was right; the reliability table, from
    `bins` bins, and the risk-coverage curve are of them.
    """

    n: int
    failed: int
    skipped: int
    cached: int
    overall: Mapping[str, Estimate]
    by_kind: Mapping[str, KindSummary]
    foretold: int
    bins: int
    reliability: tuple[calibration.Bin, ...]
    risk_coverage: tuple[calibration.RiskPoint, ...]

    def to_json(self) -> dict[str, object]:
        """The content of metrics.json.

        {"n", "failed", "skipped", "cached",
         "overall": {metric: {"value", "low", "high", "n"}},
         "by_kind": {kind: {"n", "failed", "skipped", "metrics": {metric: as above}}},
         "calibration": {"bins", "n", "table": [{"low", "high", "confidence", "accuracy", "n"}]},
         "risk_coverage": [{"coverage", "risk", "threshold"}]}
        """
        return {
            "n": self.n,
            "failed": self.failed,
            "skipped": self.skipped,
            "cached": self.cached,
            "overall": _json(self.overall),
            "by_kind": {
                kind: {
                    "n": found.n,
                    "failed": found.failed,
                    "skipped": found.skipped,
                    "metrics": _json(found.metrics),
                }
                for kind, found in self.by_kind.items()
            },
            "calibration": {
                "bins": self.bins,
                "n": self.foretold,
                "table": [asdict(row) for row in self.reliability],
            },
            "risk_coverage": [asdict(point) for point in self.risk_coverage],
        }


def summarize(items: Sequence[Item], seed: int = 0) -> Summary:
    """Measure the items of a run, reading each once.

    Raises:
        ReadError: the verdicts of an item do not fit its answer.
    """
    rows = scored(items)
    whole = _of_kind(rows, seed)
    pairs = _pairs(rows)
    overall = {**whole.metrics, **_statistics(rows, pairs, seed)}
    kinds = dict.fromkeys(row.kind for row in rows)
    return Summary(
        n=whole.n,
        failed=whole.failed,
        skipped=whole.skipped,
        cached=sum(row.cached for row in rows),
        overall={name: overall[name] for name in METRICS},
        by_kind={kind: _of_kind([r for r in rows if r.kind == kind], seed) for kind in kinds},
        foretold=len(pairs),
        bins=calibration.bins_for(len(pairs)),
        reliability=tuple(calibration.reliability(pairs)),
        risk_coverage=tuple(calibration.risk_coverage(pairs)),
    )


# Characters of a kind's name in the table.
_LONGEST_NAME = 24


def table(summary: Summary) -> list[str]:
    """The figures as lines for a terminal: overall with intervals, then means by kind."""
    reached = f"{summary.n} questions, {summary.failed} of them failed; {summary.skipped} skipped"
    rows = [("", "mean", "95 % interval", "n")]
    rows += [
        (_title(name, summary.bins), *_cells(name, found), str(found.n))
        for name, found in summary.overall.items()
        if found.value is not None
    ]
    kinds = [("", "n", "failed", *_BY_KIND)]
    kinds += [
        (
            name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…",
            str(kind.n),
            str(kind.failed),
            *(_of_any(kind, names) for names in _BY_KIND.values()),
        )
        for name, kind in summary.by_kind.items()
    ]
    return [reached, "", *aligned(rows), "", *aligned(kinds)]


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines, the first column to the left, the others to the right."""
    from rich.cells import cell_len

    cells = [[visible(cell) for cell in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]

    def line(row: Sequence[str]) -> str:
        blanks = [" " * (w - cell_len(cell)) for cell, w in zip(row, widths, strict=True)]
        later = (blank + cell for blank, cell in zip(blanks[1:], row[1:], strict=True))
        return "  ".join([row[0] + blanks[0], *later]).rstrip()

    return [line(row) for row in cells]


def shown(value: float | None, unit: Unit) -> str:
    """A figure as a person reads it: shares to three digits, whole tokens."""
    digits = {"share": 3, "count": 2, "seconds": 2, "tokens": 0}[unit]
    return "-" if value is None else f"{value:,.{digits}f}"


def _title(name: str, bins: int) -> str:
    """An ECE says nothing without the number of its bins."""
    title = METRICS[name].title
    return f"{title}, {bins} bin{'s' if bins > 1 else ''}" if name == "ece" else title


def _of_any(kind: KindSummary, names: Sequence[str]) -> str:
    """The value of the first of the metrics that has one."""
    found = (_cells(name, kind.metrics[name])[0] for name in names if kind.metrics[name].n)
    return next(found, "-")


def _cells(name: str, found: Estimate) -> tuple[str, str]:
    unit = METRICS[name].unit
    if found.low is None and found.high is None:
        return shown(found.value, unit), ""
    return shown(found.value, unit), f"[{shown(found.low, unit)}, {shown(found.high, unit)}]"


def _of_kind(rows: Sequence[Scored], seed: int) -> KindSummary:
    reached = sum(row.reached for row in rows)
    return KindSummary(
        n=reached,
        failed=sum(row.failed for row in rows),
        skipped=len(rows) - reached,
        metrics={
            name: estimate(_values(rows, name), seed=seed, share=metric.unit == "share")
            for name, metric in MEANS.items()
        },
    )


def _statistics(rows: Sequence[Scored], pairs: Values, seed: int) -> dict[str, Estimate]:
    return {
        "ece": calibration.estimate_ece(pairs, seed=seed),
        "aurc": calibration.estimate_aurc(pairs, seed=seed),
        "coverage_at_5_risk": calibration.estimate_coverage_at_risk(pairs),
        **{
            f"{name}_{percentile}": quantile(_values(rows, name), q)
            for name in TIMES
            for percentile, q in PERCENTILES.items()
        },
    }


def _values(rows: Sequence[Scored], name: str) -> list[float]:
    return [value for row in rows if (value := row.values[name]) is not None]


def _pairs(rows: Sequence[Scored]) -> Values:
    pairs = [row.foretold for row in rows if row.foretold is not None]
    return np.array(pairs, dtype=float).reshape(len(pairs), 2)


def _json(metrics: Mapping[str, Estimate]) -> dict[str, dict[str, float | int | None]]:
    return {name: found.to_json() for name, found in metrics.items()}
