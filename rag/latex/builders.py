r"""Macros whose arguments need more than a style: `\frac`, `\cite`, `\href` and their like."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rag.latex import shapes
from rag.latex import symbols as tables
from rag.latex.shapes import JOINT

if TYPE_CHECKING:
    from rag.latex.renderer import Renderer


def _citation(reader: Renderer, _math: bool) -> str:
    _ = reader.option(), reader.option()
    key = reader.raw_argument()
    return f"[{key}]" if key else ""


def _footnote(reader: Renderer, _math: bool) -> str:
    reader.option()
    content = reader.argument(math=False).strip()
    return f" ({content})" if content else ""


def _second(reader: Renderer, math: bool) -> str:
    reader.argument(math=math)
    return reader.argument(math=math)


def _dropped(reader: Renderer, _math: bool) -> str:
    reader.option()
    reader.raw_argument()
    return " "


def _fraction(reader: Renderer, math: bool) -> str:
    top, bottom = reader.argument(math=math), reader.argument(math=math)
    return shapes.fraction(top, bottom, reader.peek())


def _link(reader: Renderer, _math: bool) -> str:
    address = reader.raw_argument()
    return shapes.link(reader.argument(math=False).strip(), address)


# Macro name -> what it writes, given the renderer behind the macro and whether it is in a formula.
BUILDERS: dict[str, Callable[[Renderer, bool], str]] = {
    **dict.fromkeys(("frac", "tfrac", "dfrac", "nicefrac", "sfrac", "cfrac"), _fraction),
    **dict.fromkeys(tables.CITATIONS, _citation),
    **dict.fromkeys(tables.DROPPED_ARGUMENT, _dropped),
    **dict.fromkeys(("footnote", "footnotetext", "thanks"), _footnote),
    **dict.fromkeys(
        ("textcolor", "colorbox", "foreignlanguage", "overset", "underset", "stackrel"), _second
    ),
    **dict.fromkeys(
        {"url", "path", "nolinkurl"} | tables.REFERENCES, lambda r, _: r.raw_argument()
    ),
    **dict.fromkeys(tables.SPACES, lambda *_: " "),
    "href": _link,
    "binom": lambda r, math: f"C({r.argument(math=math)}, {r.argument(math=math)})",
    "sqrt": lambda r, math: shapes.root(degree=r.option(), content=r.argument(math=math)),
    "unicode": lambda r, _: shapes.code_point(r.raw_argument()),
    "ket": lambda r, math: f"|{r.argument(math=math)}⟩",
    "bra": lambda r, math: f"⟨{r.argument(math=math)}|",
    "mathbb": lambda r, math: tables.blackboard(r.argument(math=math)),
    "operatorname": lambda r, math: JOINT + r.argument(math=math) + JOINT,
}
