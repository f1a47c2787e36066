"""Values as a reader sees them: numbers by their unit, keys as words, anchors of items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote

NOTHING = "–"


def anchor(item_id: str) -> str:
    """The element ID of an item in the page; `#` and this is a link to it.

    Percent-encoded, so that any ID will do and no two become one.
    """
    return "item-" + quote(item_id, safe="", errors="surrogatepass")


def value(number: float | None, unit: str = "share") -> str:
    """A share or a count 0.9712 -> "0.97", a count 3.0 -> "3", "seconds" -> "12.5 s"; None a dash.

    `unit` is that of `eval.metrics.measures.Metric`.
    """
    if number is None:
        return NOTHING
    if unit == "seconds":
        return f"{number:,.0f} s" if number >= 100 else f"{number:.1f} s"
    if abs(number) >= 100:
        return f"{number:,.0f}"
    if unit != "share" and float(number).is_integer():
        return f"{number:.0f}"
    return f"{number:.2f}"


def interval(low: float | None, high: float | None, unit: str) -> str:
    """As "0.91 to 0.99"; a quantile of few items has one bound only, or none."""
    if low is None and high is None:
        return ""
    if low is None:
        return f"at most {value(high, unit)}"
    if high is None:
        return f"at least {value(low, unit)}"
    return f"{value(low, unit)} to {value(high, unit)}"


def duration(seconds: float) -> str:
    """73.2 -> "1 min 13 s"; 4000 -> "1 h 7 min"."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def moment(iso: str) -> str:
    """An ISO 8601 time to the minute, with its zone; what is none, as it stands."""
    try:
        parsed = datetime.fromisoformat(iso)
    except ValueError:
        return iso
    return f"{parsed:%Y-%m-%d %H:%M} {parsed.tzname() or ''}".rstrip()


def flat(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """Every leaf of nested values with its way: {"llm": {"seed": 0}} -> ("llm.seed", "0")."""
    for key, found in values.items():
        if isinstance(found, Mapping) and found:
            yield from flat(found, f"{before}{key}.")
        elif isinstance(found, list | tuple):
            yield f"{before}{key}", ", ".join(map(str, found)) or NOTHING
        else:
            yield f"{before}{key}", NOTHING if found in (None, "", {}) else str(found)


def path(name: str) -> str:
    """A file's name or relative path as a link: "my report.html" -> "my%20report.html"."""
    return quote(name, safe="/", errors="surrogatepass")
