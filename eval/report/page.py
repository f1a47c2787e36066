"""The page: one HTML file that loads nothing, from a run and its summary."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from eval.items import Item
from eval.metrics.measures import METRICS
from eval.report import figures, provenance, shown
from eval.report.view import BY_KIND, RunView
from rag.text import visible

if TYPE_CHECKING:
    from jinja2 import Environment

_HERE = Path(__file__).parent

# An unfolded item is about 6 kB, a folded one 0.6 kB.
MOST_DETAILED = 2000


def render(
    meta: Mapping[str, Any],
    items: Sequence[Item],
    summary: Mapping[str, Any],
    detailed: int = MOST_DETAILED,
) -> str:
    """The page of a run: `meta` is run.json, `summary` is `Summary.to_json()`.

    The same run gives the same bytes. Of more than `detailed` items the failing ones come first,
    and the rest has its line of the table only.
    """
    view = RunView(meta, items, summary, detailed)
    style, script = _part("page.css"), _part("page.js")
    template = _environment().get_template("page.html.j2")
    return template.render(
        view=view,
        title=provenance.title(meta),
        facts=provenance.main_facts(meta),
        everything=provenance.everything(meta),
        style=style,
        script=script,
        policy=_policy(style, script),
        kind_figures=_kind_figures(view),
        reliability=_reliability(view),
        risk_coverage=_risk_coverage(view),
        latency=figures.latency("latency", view.seconds) if view.seconds else None,
    )


def _reliability(view: RunView) -> Markup | None:
    found = view.calibration
    return figures.reliability("reliability", found["table"]) if found else None


def _risk_coverage(view: RunView) -> Markup | None:
    points = view.summary.get("risk_coverage")
    area = view.summary["overall"].get("aurc") or {}
    return figures.risk_coverage("risk", points, area.get("value")) if points else None


def _kind_figures(view: RunView) -> list[tuple[str, Markup]]:
    bars = {name: view.bars(name) for name in BY_KIND}
    return [
        (METRICS[name].title, figures.bars(f"kind-{name}", METRICS[name].title, rows))
        for name, rows in bars.items()
        if any(bar.value is not None for bar in rows)
    ]


def _policy(style: str, script: str) -> str:
    """What the browser may do with the page: apply this style, run this script, nothing else."""
    return (
        f"default-src 'none'; style-src {_source(style)}; script-src {_source(script)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _source(text: str) -> str:
    """The text's hash as https://www.w3.org/TR/CSP3/#grammardef-hash-source has it."""
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def _part(name: str) -> Markup:
    return Markup((_HERE / name).read_text(encoding="utf-8"))  # our own file


@cache
def _environment() -> Environment:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        # Whatever comes from papers, questions and models loses what cannot be seen.
        finalize=lambda value: visible(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["value"] = shown.value
    environment.globals["percent"] = lambda share: round(100 * share, 2)
    return environment
