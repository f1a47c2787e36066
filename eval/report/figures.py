"""The figures of a report, each an SVG element; its numbers stand in a table of the page too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eval.report import svg
from rag.text import visible

if TYPE_CHECKING:
    import numpy as np
    from markupsafe import Markup
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

STAGES = ("retrieve", "generate", "verify")
_STAGE_COLOURS = {"retrieve": svg.INK, "generate": svg.ACCENT, "verify": svg.SOFT}

# Longer names of kinds would leave no room for the bars.
_LONGEST_LABEL = 18
_MOST_BINS = 16


@dataclass(frozen=True, slots=True)
class Bar:
    """A mean with its interval, as `Summary.to_json` gives it; None where no item counts."""

    label: str
    value: float | None
    low: float | None
    high: float | None
    n: int


def bars(name: str, title: str, rows: Sequence[Bar]) -> Markup:
    """Shares (0..1), one bar a row from the top, with their 95 % intervals."""
    with svg.drawing(name, 36 + 25 * len(rows)) as figure:
        axes = figure.add_subplot()
        places = range(len(rows))
        axes.barh(places, [row.value or 0.0 for row in rows], height=0.62, color=svg.SOFT)
        for place, row in enumerate(rows):
            if row.low is not None and row.high is not None:
                axes.plot([row.low, row.high], [place, place], color=svg.INK, lw=1.4)
            shown = "–" if row.value is None else f"{row.value:.2f}"
            axes.text(1.16, place, shown, ha="right", va="center_baseline")
        axes.set_yticks(places, [_label(row.label) for row in rows], color=svg.INK)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlim(0, 1.17)
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "", "0.5", "", "1"])
        axes.grid(axis="x")
        axes.spines[:].set_visible(False)
        said = "; ".join(f"{row.label} {row.value:.2f}" for row in rows if row.value is not None)
        return svg.element(figure, name, f"{title} by kind", said or "No item counts.")


def reliability(name: str, table: Sequence[Mapping[str, Any]]) -> Markup:
    """How often answers of a confidence were correct, and below how many there are of each bin."""
    with svg.drawing(name, 300) as figure:
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(5, 1))
        upper.plot([0, 1], [0, 1], color=svg.MUTED, lw=1, dashes=(4, 3))
        for row in table:
            at, right = row["confidence"], row["accuracy"]
            upper.plot([at, at], [at, right], color=svg.SOFT, lw=2)
            upper.plot([at], [right], "o", color=svg.ACCENT, markersize=7, clip_on=False)
        _shares(upper, "share that is correct")
        for row in table:
            width = max(row["high"] - row["low"], 0.01)
            left = min(row["low"], 1 - width)
            lower.bar(left, row["n"], width, align="edge", color=svg.SOFT, ec=svg.PAPER)
        most = max((row["n"] for row in table), default=1)
        lower.set_yticks([0, most])
        lower.set_ylabel("items")
        lower.set_xlabel("confidence")
        figure.align_ylabels()
        said = "; ".join(
            f"confidence {row['confidence']:.2f}: {row['accuracy']:.2f} correct of {row['n']}"
            for row in table
        )
        return svg.element(figure, name, "Reliability of the confidence", said)


def risk_coverage(name: str, points: Sequence[Mapping[str, float]], aurc: float | None) -> Markup:
    """The share without a correct answer among the most confident, as more are let through."""
    with svg.drawing(name, 300) as figure:
        axes = figure.add_subplot()
        coverage = [point["coverage"] for point in points]
        risk = [point["risk"] for point in points]
        axes.fill_between(coverage, risk, color=svg.PALE, lw=0, step="post")
        axes.step(coverage, risk, where="post", color=svg.ACCENT, lw=1.8)
        axes.axhline(0.05, color=svg.MUTED, lw=1, dashes=(4, 3))
        top = min(1.0, max([0.1, *risk]) * 1.15)
        axes.text(1.0, 0.05 + top / 60, "5 % risk", ha="right", va="bottom", color=svg.MUTED)
        axes.set_xlim(0, 1.02)
        axes.set_ylim(0, top)
        axes.set_xlabel("coverage: share of the questions")
        axes.set_ylabel("risk: share not correct")
        axes.grid(axis="y")
        area = "" if aurc is None else f"Area under the curve {aurc:.3f}. "
        ends = f"At coverage {coverage[-1]:.2f} the risk is {risk[-1]:.2f}."
        return svg.element(figure, name, "Risk and coverage", area + ends)


def latency(name: str, seconds: Sequence[Mapping[str, float]]) -> Markup:
    """How many answers took how long; each bar is split by what its answers spent their time on.

    `seconds` are those of an answer by stage, with their "total".
    """
    edges, counts, shares = _binned(seconds)
    with svg.drawing(name, 300) as figure:
        from matplotlib.ticker import MaxNLocator

        axes = figure.add_subplot()
        base = counts * 0.0
        for stage, share in shares.items():
            part = counts * share
            look: dict[str, Any] = {
                "color": _STAGE_COLOURS[stage],
                "ec": svg.PAPER,
                "lw": 0.8,
                "label": stage,
            }
            axes.bar(edges[:-1], part, edges[1:] - edges[:-1], base, align="edge", **look)
            base += part
        axes.set_xlim(0, None)
        axes.set_xlabel("seconds to an answer")
        axes.set_ylabel("answers")
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(axis="y")
        figure.legend(loc="outside upper left", ncols=3, handlelength=1, handleheight=1)
        said = "; ".join(
            f"{low:.1f} to {high:.1f} s: {count}"
            for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True)
        )
        return svg.element(figure, name, "Seconds to an answer", said)


def _binned(
    seconds: Sequence[Mapping[str, float]],
) -> tuple[NDArray[np.float64], NDArray[np.int64], dict[str, NDArray[np.float64]]]:
    """Edges of bins of total seconds, answers in each, and the share of each stage in its time.

    The width of a bin is that of Freedman and Diaconis (1981), but for `_MOST_BINS`.
    """
    import numpy as np

    totals = np.array([one.get("total", 0.0) for one in seconds])
    edges = np.histogram_bin_edges(totals, "fd")
    if len(edges) - 1 > _MOST_BINS:
        edges = np.linspace(totals.min(), totals.max(), _MOST_BINS + 1)
    counts, edges = np.histogram(totals, edges)
    spent = {
        stage: np.histogram(totals, edges, weights=[one.get(stage, 0.0) for one in seconds])[0]
        for stage in STAGES
    }
    every = sum(spent.values())
    none = np.zeros(len(counts))
    shares = {s: np.divide(v, every, out=none.copy(), where=every > 0) for s, v in spent.items()}
    return edges, counts, shares


def _shares(axes: Axes, label: str) -> None:
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"])
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"])
    axes.set_ylabel(label)
    axes.grid()


def _label(text: str) -> str:
    text = visible(text)
    return text if len(text) <= _LONGEST_LABEL else text[: _LONGEST_LABEL - 1] + "…"
