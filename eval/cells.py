"""Figures as text, one form for every table."""

from __future__ import annotations

from eval.statistics.estimates import Estimate


def cell(found: Estimate) -> str:
    """As "0.812 [0.780, 0.842]"; no brackets where there is no interval, "-" for no value."""
    if found.value is None:
        return "-"
    if found.low is None or found.high is None:
        return f"{found.value:.3f}"
    return f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"
