"""A run as Markdown for a pull request: figures, by kind, and the worst items with links."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eval.items import Item
from eval.report import provenance, shown
from eval.report.verdicts import State
from eval.report.view import BY_KIND, Figure, Kind, RunView
from rag.text import visible

WORST = 10
_REFUSALS = ("refused", "over_refused")
_LONGEST_QUESTION = 160

_SIGNS = re.compile(r"[\\`*_\[\]<>|~&$]")
# Where a person, an issue or an address would become a link: a comment parts it, and is not seen.
_LINKS = re.compile(r"(?<=[@#])(?=\w)|(?<=:)(?=//)|(?<=www)(?=\.)", re.IGNORECASE)


def render(
    meta: Mapping[str, Any],
    items: Sequence[Item],
    summary: Mapping[str, Any],
    page: str = "report.html",
) -> str:
    """The summary of a run; `meta` and `summary` as for the page, to which `page` leads."""
    view = RunView(meta, items, summary, 0)
    parts = [
        [f"## Evaluation: {plain(provenance.title(meta))}"],
        [_tally(view)],
        list(_headline(view.headline)),
        list(_by_kind(view)),
        list(_worst(view, page)),
    ]
    return "\n\n".join("\n".join(lines) for lines in parts if lines) + "\n"


def plain(text: str) -> str:
    """Text that Markdown shows as it stands: no markup, no HTML, no links, nothing unseen."""
    return _LINKS.sub("<!-- -->", _SIGNS.sub(r"\\\g<0>", " ".join(visible(text).split())))


def _tally(view: RunView) -> str:
    counts = ", ".join(f"{count} {state.meaning}" for state, count in view.states)
    return f"**{len(view.rows)} questions**" + (f": {counts}." if counts else ".")


def _headline(figures: Sequence[Figure]) -> Iterator[str]:
    if not figures:
        return
    yield "| Metric | Value | 95 % interval | n |"
    yield "| --- | ---: | ---: | ---: |"
    for figure in figures:
        interval = figure.interval or shown.NOTHING
        yield f"| {plain(figure.title)} | {figure.shown} | {interval} | {figure.n} |"


def _by_kind(view: RunView) -> Iterator[str]:
    names = [name for name in (*BY_KIND, *_REFUSALS) if any(_value(k, name) for k in view.kinds)]
    if not view.kinds:
        return
    titles = {figure.name: plain(figure.title) for figure in view.overall}
    yield "| " + " | ".join(["Kind", "n", "Failed", *(titles[name] for name in names)]) + " |"
    yield "| --- |" + " ---: |" * (len(names) + 2)
    for kind in view.kinds:
        cells = [_value(kind, name) or shown.NOTHING for name in names]
        counts = [str(kind.n), str(kind.failed)]
        yield "| " + " | ".join([plain(kind.name), *counts, *cells]) + " |"


def _value(kind: Kind, name: str) -> str:
    """As "0.92 (0.79 to 1.00)"; empty where no item counts."""
    figure = kind.figures.get(name)
    if figure is None or figure.value is None:
        return ""
    return figure.shown + (f" ({figure.interval})" if figure.interval else "")


def _worst(view: RunView, page: str) -> Iterator[str]:
    bad = [row for row in view.rows if row.verdict.state in (State.FAILED, State.WRONG)]
    if not bad:
        return
    yield f"Failed and wrong items{f', the first {WORST} of {len(bad)}' * (len(bad) > WORST)}:"
    yield ""
    for row in bad[:WORST]:
        question = row.question
        if len(question) > _LONGEST_QUESTION:
            question = question[: _LONGEST_QUESTION - 1] + "…"
        link = f"[{plain(row.id)}]({shown.path(page)}#{row.anchor})"
        yield f"- {link}: {plain(question)} **{row.verdict.words}**"
