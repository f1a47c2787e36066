"""What a question is to be about, before it has words; and the draft that comes of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rag.types import Evidence, Paper

# What is wrong with a wording, for the model and for the count of what was dropped; None: nothing.
Check = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class Plan:
    """A question in the making.

    `papers` are those it speaks of; `gold` is empty for what no paper answers. `prompt` and
    `values` are the template that asks for the wording, which goes on from `opening`; `wording` is
    there where nothing has to be asked.
    """

    kind: str
    papers: tuple[Paper, ...]
    origin: tuple[Evidence, ...]
    gold: tuple[tuple[str, ...], ...] = ()
    must_include: tuple[str, ...] = ()
    must_not_include: tuple[str, ...] = ()
    note: str = ""
    prompt: str = ""
    opening: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    wording: str | None = None
    checks: tuple[Check, ...] = ()

    @property
    def id(self) -> str:
        """The same for the same papers, sentences and patterns: `draft-fact-1f3a9c2`."""
        parts = [self.kind, *self.must_include, *(paper.id for paper in self.papers)]
        parts += [self.wording or json.dumps(self.values, sort_keys=True)]
        parts += [f"{e.paper_id} {e.start} {e.end}" for e in self.origin]
        digest = hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()
        return f"draft-{self.kind}-{digest[:7]}"


@dataclass(frozen=True, slots=True)
class Draft:
    """A plan with words, ready to become a line."""

    plan: Plan
    question: str
    note: str

    def to_json(self) -> dict[str, Any]:
        """The line, with `from` beside a question's own fields."""
        plan = self.plan
        return {
            "id": plan.id,
            "kind": plan.kind,
            "question": self.question,
            "gold": [list(group) for group in plan.gold],
            "must_include": list(plan.must_include),
            "must_not_include": list(plan.must_not_include),
            "note": self.note,
            "from": [
                {"paper_id": e.paper_id, "quote": e.text, "start": e.start, "end": e.end}
                for e in plan.origin
            ],
        }
