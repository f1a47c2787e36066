"""`rag eval compare`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rag.cli.options import JsonOption, print_json
from rag.errors import RagError, UsageError

if TYPE_CHECKING:
    from eval.runs.comparison import Comparison, Difference
    from eval.runs.comparison_report import Limit

# Exit code where a run is worse than --fail-if-worse allows.
WORSE = 4


def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN_A RUN_B...",
            help="Run directories; each is compared to the first.",
            readable=False,
        ),
    ],
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Compare only this metric (may be given more than once); questions are won and "
            "lost by the first, else by being answered rightly.",
        ),
    ] = None,
    fail_if_worse: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METRIC:DELTA",
            help="Exit with 4 when a run is worse than the first by more than DELTA.",
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Compare runs on the questions that they share: differences, intervals, p-values.

    Paired, question by question; p is of a randomisation test, corrected for the number of metrics.
    """
    from eval.metrics.scores import METRICS
    from eval.runs.comparison import compare as compared
    from eval.runs.comparison import side
    from eval.runs.comparison_report import Links, lines, to_json
    from eval.runs.directory import read_run
    from rag.render import Screen

    _require("scipy", "ir_measures")
    if len(runs) < 2:
        raise UsageError("Name at least two run directories: rag eval compare RUN_A RUN_B")
    limits = [_limit(text) for text in fail_if_worse or ()]
    names = [_known(name) for name in metric or METRICS]
    wanted = list(dict.fromkeys([*names, *(limit.metric for limit in limits)]))
    by = metric[0] if metric and METRICS[metric[0]].mean else None
    first, *others = (side(read_run(run)) for run in runs)
    comparisons = [compared(first, other, wanted, by=by) for other in others]
    links = {run: Links.of(run) for run in runs}
    if json:
        print_json({"comparisons": [to_json(c, limits, links) for c in comparisons]})
    else:
        screen = Screen()
        for number, comparison in enumerate(comparisons):
            for line in ([""] if number else []) + list(lines(comparison, links)):
                screen.line(line)
    _finish(comparisons, limits)


def _require(*packages: str) -> None:
    from importlib.util import find_spec

    from eval.retrieval.ranking import INSTALL

    for package in packages:
        if find_spec(package) is None:
            raise RagError(f"Comparing runs needs {package}. Run: {INSTALL}")


def _finish(comparisons: list[Comparison], limits: list[Limit]) -> None:
    """Say which limits were broken, and leave with the exit code for it.

    Raises:
        RagError: there is nothing to compare, or not in a metric that has a limit.
    """
    from eval.runs.comparison_report import beyond, exceeded, failed_unseen
    from rag.render import Screen

    messages = Screen(stderr=True)
    for comparison in comparisons:
        if not comparison.shared:
            raise RagError(
                f"{comparison.a} and {comparison.b} share no question that both were asked. "
                "Compare runs of one question set."
            )
    broken = [(c, *pair) for c in comparisons for pair in exceeded(c, limits)]
    for comparison, limit, found in broken:
        messages.line(_verdict(comparison, limit, found), "red")
    if any(beyond(limit, f) or failed_unseen(c, limit.metric) for c, limit, f in broken):
        raise typer.Exit(WORSE)
    left = [c for c in comparisons if c.unreached] if limits else []
    for comparison in left:
        messages.line(
            f"{len(comparison.unreached)} questions were not reached in {comparison.a} or "
            f"{comparison.b}: finish both runs before --fail-if-worse can pass.",
            "red",
        )
    if broken or left:
        raise typer.Exit(1)


def _verdict(comparison: Comparison, limit: Limit, found: Difference) -> str:
    from eval.runs.comparison_report import beyond, failed_unseen

    if beyond(limit, found):
        return (
            f"{comparison.b} is worse: {limit.metric} went from {found.a:.4g} to {found.b:.4g} on "
            f"{found.n} questions, by more than {limit.delta:g}."
        )
    if more := failed_unseen(comparison, limit.metric):
        return (
            f"{comparison.b} is worse: {more} more of its questions failed than of "
            f"{comparison.a}, and {limit.metric} leaves failed ones out. Ask them again with "
            "`rag eval answers --retry-failed`."
        )
    return (
        f"{limit.metric} cannot be compared: it applies to no question that {comparison.a} and "
        f"{comparison.b} share. Use --fail-if-worse with a metric of the table."
    )


def _limit(text: str) -> Limit:
    from eval.runs.comparison_report import Limit

    name, colon, delta = text.rpartition(":")
    try:
        allowed = float(delta)
    except ValueError:
        allowed = math.nan
    if not colon or not math.isfinite(allowed) or allowed < 0:
        raise UsageError(
            f"--fail-if-worse {text}: give a metric and how much worse it may be, as in "
            "--fail-if-worse correct:0.05"
        )
    return Limit(_known(name), allowed)


def _known(name: str) -> str:
    """The name, if it is a metric's.

    Raises:
        UsageError: it is not; the message names the closest one.
    """
    import difflib

    from eval.metrics.scores import METRICS

    if name in METRICS:
        return name
    close = difflib.get_close_matches(name.casefold(), METRICS, n=1, cutoff=0.0)
    raise UsageError(
        f"There is no metric {name!r}. Is {close[0]!r} meant? All: {', '.join(METRICS)}."
    )
