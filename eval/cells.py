"""Figures as text, one form for every table."""

from __future__ import annotations

from eval.statistics.estimates import Estimate
from rag.text import visible


def cell(found: Estimate) -> str:
    """As "0.812 [0.780, 0.842]"; no brackets where there is no interval, "-" for no value."""
    if found.value is None:
        return "-"
    if found.low is None or found.high is None:
        return f"{found.value:.3f}"
    return f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"


def shortened(name: str, longest: int) -> str:
    """A name of at most `longest` characters, its middle left out: paths differ at both ends.

    >>> shortened("runs/of/monday/bm25.trec", 13)
    'runs/o…5.trec'
    """
    shown = visible(name)
    if len(shown) <= longest:
        return shown
    tail = (longest - 1) // 2
    return f"{shown[: longest - 1 - tail]}…{shown[len(shown) - tail :]}"
