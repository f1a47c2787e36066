"""A matplotlib figure as an SVG element that belongs into a page: its colours are the page's own.

Figures are drawn in sentinel colours, which stand for CSS variables, and with text as text. What
comes out loads nothing, carries no date and has no style attributes, so that the page's policy
need not allow any; the same figure gives the same bytes.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from markupsafe import Markup

from rag.errors import RagError
from rag.text import visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK = "#010101"
MUTED = "#020202"
GRID = "#030303"
ACCENT = "#040404"
SOFT = "#050505"
PALE = "#060606"
PAPER = "#070707"
_VARIABLES = {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    GRID: "var(--line)",
    ACCENT: "var(--accent)",
    SOFT: "var(--accent-soft)",
    PALE: "var(--accent-pale)",
    PAPER: "var(--card)",
}

# Points, which become CSS pixels: a figure is shown at about its own size on a phone and in a
# column of a wide page, so that its text has the size of the text around it.
WIDTH = 340

_INSTALL = 'pip install "citewise[eval]"'

_STYLE = {
    "svg.fonttype": "none",
    "text.parse_math": False,  # "$" in a label is a dollar
    "font.size": 12,
    "axes.edgecolor": GRID,
    "axes.labelcolor": MUTED,
    "axes.titlecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "xtick.major.pad": 6,
    "text.color": INK,
    "legend.frameon": False,
}
_KEPT = {"fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "opacity"}
_KEPT |= {"fill-opacity", "stroke-opacity", "font-size", "font-weight", "text-anchor"}
_HREF = "{http://www.w3.org/1999/xlink}href"


@contextmanager
def drawing(name: str, height: float) -> Iterator[Figure]:
    """An empty figure, `WIDTH` by `height` CSS pixels, in the page's style.

    `name` is part of the element IDs, so that two figures of a page share none.

    Raises:
        RagError: matplotlib is not installed; the message says how to.
    """
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise RagError(f"Reports need matplotlib. Install it: {_INSTALL}") from error
    style = {**_STYLE, "svg.hashsalt": name}
    with matplotlib.rc_context(style), warnings.catch_warnings():  # type: ignore[arg-type]
        # Letters that matplotlib's font lacks are the browser's to draw.
        warnings.filterwarnings("ignore", message="Glyph")
        yield Figure(figsize=(WIDTH / 72, height / 72), dpi=72, layout="constrained")


def element(figure: Figure, name: str, title: str, description: str) -> Markup:
    """The figure, to be called inside `drawing`, with its title and what it shows in words."""
    written = io.BytesIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(written, format="svg", transparent=True, metadata=nothing)
    root = ET.fromstring(written.getvalue())  # matplotlib wrote it
    _clean(root)
    for size in ("width", "height", "version"):
        root.attrib.pop(size, None)
    labels = {f"{name}-title": ("title", title), f"{name}-text": ("desc", description)}
    root.attrib.update({"role": "img", "aria-labelledby": " ".join(labels)})
    for position, (identifier, (tag, text)) in enumerate(labels.items()):
        label = ET.Element(tag, {"id": identifier})
        label.text = visible(text)
        root.insert(position, label)
    return Markup(ET.tostring(root, encoding="unicode"))  # escaped by ElementTree


def _clean(root: ET.Element) -> None:
    """Without namespaces, style sheets, style attributes and IDs that nothing refers to."""
    used = set(_references(root.iter()))
    for parent in list(root.iter()):
        parent.tag = parent.tag.rpartition("}")[2]
        for child in [c for c in parent if c.tag.endswith(("}style", "}metadata"))]:
            parent.remove(child)
        if parent.get("id") not in used:
            parent.attrib.pop("id", None)
        if target := parent.attrib.pop(_HREF, None):
            parent.set("href", target)
        parent.attrib.update(_presentation(parent.attrib.pop("style", "")))
        if path := parent.get("d"):
            parent.set("d", " ".join(path.split()))
        parent.tail = None
        if parent.tag != "text":
            parent.text = None


def _references(elements: Iterator[ET.Element]) -> Iterator[str]:
    for found in elements:
        for value in (found.get(_HREF, ""), found.get("clip-path", "")):
            if "#" in value:
                yield value.partition("#")[2].rstrip(")")


def _presentation(style: str) -> dict[str, str]:
    """Style declarations as attributes, sentinel colours as CSS variables."""
    pairs: Sequence[tuple[str, str, str]] = [d.partition(":") for d in style.split(";")]
    found = {name.strip(): value.strip() for name, _, value in pairs}
    return {n: _VARIABLES.get(v, v) for n, v in found.items() if n in _KEPT}
