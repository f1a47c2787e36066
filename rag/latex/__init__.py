"""LaTeX as authors write it in abstracts -> readable Unicode; `rag.text` is what uses it."""

from rag.latex.renderer import STAR, UNDER, finish, render

__all__ = ["STAR", "UNDER", "finish", "render"]
