"""Two runs to compare, and the table's rows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from doubles.commands import Run
from doubles.items import item, said, write_run

from eval.items import Item

A, B = Path("a"), Path("b")
TWENTY = range(20)


def answered(n: int, right: bool = True, **more: Any) -> Item:
    """A question whose paper is "a"; of a wrong answer the confidence is lower."""
    cited, confidence = ("a", 0.9) if right else ("b", 0.5)
    options = {"id": f"q-{n}", "gold": [["a"]], "found": "ab", "confidence": confidence, **more}
    return item(said(cited), **options)


def refused(n: int) -> Item:
    return item(id=f"q-{n}", kind="unanswerable", confidence=0.1)


def runs(a: Iterable[Item], b: Iterable[Item], **identity: Any) -> None:
    write_run(A, a, identity={"model": "small", "answer": {"seed": 0}})
    write_run(B, b, identity={"model": "small", "answer": {"seed": 0}, **identity})


def better_and_worse() -> None:
    """Of 20 answers a has 12 right; b has 8 of those, and 5 others."""
    runs(
        (answered(n, n < 12, seconds=4.0 + n / 10) for n in TWENTY),
        (answered(n, n < 8 or 12 <= n < 17, seconds=3.0 + n / 20) for n in TWENTY),
    )


def cells(ran: Run, title: str) -> list[str]:
    (line,) = (line for line in ran.out.splitlines() if line.startswith(title + "  "))
    return re.split("  +", line)
