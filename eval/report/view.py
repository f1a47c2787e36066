"""What a report shows of a run, ready for a template: nothing here knows of HTML or Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from eval.items import Item
from eval.metrics.measures import METRICS
from eval.report import shown
from eval.report.figures import STAGES, Bar
from eval.report.rows import Detail, Row
from eval.report.verdicts import State

# The figures at the top of a report, where the run has them.
HEADLINE = (
    "all_gold_cited",
    "must_include",
    "citation_precision",
    "citation_recall",
    "refused",
    "over_refused",
    "unsupported",
    "invented_ids",
    "seconds_p50",
    "seconds_p95",
)
# Rows of the table beside the risk-coverage curve.
_MOST_POINTS = 20

# The metrics with a figure by kind.
BY_KIND = HEADLINE[:4]


@dataclass(frozen=True, slots=True)
class Figure:
    """A metric over some items. `low` and `high` bound its 95 % interval where there is one."""

    name: str
    value: float | None
    low: float | None
    high: float | None
    n: int

    @classmethod
    def of(cls, name: str, found: Mapping[str, Any]) -> Figure:
        """From an entry of `Summary.to_json()`."""
        return cls(name, found["value"], found["low"], found["high"], found["n"])

    @property
    def title(self) -> str:
        """The metric's name in words."""
        return METRICS[self.name].title

    @property
    def meaning(self) -> str:
        """What it measures, and over what."""
        return METRICS[self.name].meaning

    @property
    def unit(self) -> str:
        """One of "share", "count", "seconds" or "tokens"."""
        return METRICS[self.name].unit

    @property
    def better(self) -> str:
        """Which way is better, as a sentence."""
        return f"{METRICS[self.name].better.capitalize()} is better."

    @property
    def share(self) -> bool:
        """Whether it lies between 0 and 1."""
        return self.unit == "share"

    @property
    def shown(self) -> str:
        """The value as a reader sees it."""
        return shown.value(self.value, self.unit)

    @property
    def interval(self) -> str:
        """As "0.91 to 0.99", or nothing."""
        return shown.interval(self.low, self.high, self.unit)


@dataclass(frozen=True, slots=True)
class Kind:
    """The items of one kind of question; `figures` by metric."""

    name: str
    n: int
    failed: int
    skipped: int
    figures: Mapping[str, Figure]

    @property
    def measured(self) -> bool:
        """Whether any metric with a figure by kind has a value."""
        found = (self.figures.get(name) for name in BY_KIND)
        return any(figure.value is not None for figure in found if figure)


class RunView:
    """A run as a report shows it.

    `meta` is `run.json`, `summary` is `Summary.to_json()`. `items` are read once for the rows, and
    once more where one is unfolded: they need not all be in memory. At most `detailed` of them,
    failing ones first, are to be unfolded, since the size of a page grows with them.
    """

    def __init__(
        self,
        meta: Mapping[str, Any],
        items: Sequence[Item],
        summary: Mapping[str, Any],
        detailed: int,
    ) -> None:
        self.meta = meta
        self.summary = summary
        self.detailed = detailed
        self._items = items
        rows = (Row.of(place, item) for place, item in enumerate(items))
        self.rows = sorted(rows, key=_urgency)

    def details(self) -> Iterator[tuple[Row, Detail | None]]:
        """Every row, failing ones first, with what is shown of it when it is unfolded."""
        for n, row in enumerate(self.rows):
            shown_whole = n < self.detailed
            yield row, Detail(self._items[row.place], row.verdict) if shown_whole else None

    @cached_property
    def states(self) -> list[tuple[State, int]]:
        """How many items failed, are wrong, and so on; states without any are left out."""
        counted = Counter(row.verdict.state for row in self.rows)
        return [(state, counted[state]) for state in State if counted[state]]

    def tally(self) -> Iterator[tuple[float, float, State]]:
        """The states side by side: where each begins and how wide it is, in percent."""
        left = 0.0
        for state, count in self.states:
            width = 100 * count / len(self.rows)
            yield round(left, 3), round(width, 3), state
            left += width

    @cached_property
    def overall(self) -> list[Figure]:
        """Every metric over all items."""
        return [Figure.of(name, found) for name, found in self.summary["overall"].items()]

    @cached_property
    def headline(self) -> list[Figure]:
        """The metrics that a reader looks at first."""
        found = {figure.name: figure for figure in self.overall}
        return [found[name] for name in HEADLINE if name in found]

    @cached_property
    def kinds(self) -> list[Kind]:
        """By kind of question."""
        return [
            Kind(
                name,
                found["n"],
                found["failed"],
                found["skipped"],
                {m: Figure.of(m, entry) for m, entry in found["metrics"].items()},
            )
            for name, found in self.summary["by_kind"].items()
        ]

    def bars(self, metric: str) -> list[Bar]:
        """A metric by kind; the same kinds for each metric with a figure, none where none has."""
        return [
            Bar(kind.name, found.value, found.low, found.high, found.n)
            for kind in self.kinds
            if kind.measured and (found := kind.figures.get(metric))
        ]

    @cached_property
    def seconds(self) -> list[Mapping[str, float]]:
        """What each answer took, by stage."""
        return [row.seconds for row in self.rows if row.seconds]

    def stages(self) -> Iterator[tuple[str, float, float, float]]:
        """Mean, median and 95th percentile of the seconds that a stage took."""
        import numpy as np

        for stage in (*STAGES, "total"):
            spent = [one.get(stage, 0.0) for one in self.seconds]
            median, high = np.percentile(spent, (50, 95))
            yield stage, sum(spent) / len(spent), float(median), float(high)

    @property
    def calibration(self) -> Mapping[str, Any] | None:
        """The reliability table, where any answer has a confidence to be judged."""
        found = self.summary.get("calibration")
        return found if found and found["table"] else None

    @property
    def risk_points(self) -> list[Mapping[str, float]]:
        """The risk-coverage curve, thinned to a table that can be read."""
        points = self.summary.get("risk_coverage") or []
        step = max(1, -(-len(points) // _MOST_POINTS))
        return [*points[:-step:step], points[-1]] if points else []


def _urgency(row: Row) -> tuple[int, int]:
    """Failed before wrong before right; of the wrong ones those with most faults first."""
    faults = len(row.verdict.reasons) if row.verdict.state is State.WRONG else 0
    return row.verdict.state, -faults
