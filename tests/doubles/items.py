"""Items of a run with what a test is about, the rest plain; and a run directory of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from eval.items import Item
from eval.questions.datasets import Question, question_json


def said(
    *cited: str,
    text: str = "It is 12.5%.",
    supported: bool = True,
    together: bool = True,
    each: Sequence[bool] | None = None,
    without: Sequence[bool] | None = None,
) -> dict[str, Any]:
    """A statement with phi of its citations; each supports it alone unless told otherwise."""
    return {
        "statement": {
            "text": text,
            "supported": supported,
            "citations": [
                {"paper_id": paper_id, "quote": "", "support": 0.9} for paper_id in cited
            ],
        },
        "entailment": {
            "all": together,
            "each": list(each if each is not None else [together] * len(cited)),
            "without": list(without if without is not None else [False] * len(cited)),
        },
    }


def item(
    *statements: dict[str, Any],
    kind: str = "fact",
    gold: Iterable[Iterable[str]] = (),
    found: Sequence[str] = (),
    unknown: Sequence[str] = (),
    confidence: float = 0.8,
    error: str | None = None,
    seconds: float = 5.0,
    cached: bool = False,
    **asked: Any,
) -> Item:
    """An answer of these statements, a refusal without any; with `error` a failed item."""
    groups = tuple(frozenset(group) for group in gold)
    asked = {"id": "q", "question": "By how much?", **asked}
    question = Question(kind=kind, gold=tuple(map(tuple, groups)), **asked)
    answer = {
        "question": question.question,
        "answered": bool(statements),
        "confidence": confidence,
        "text": "\n".join(s["statement"]["text"] for s in statements) or "They do not answer this.",
        "statements": [s["statement"] for s in statements],
        "papers": [],
        "usage": {"prompt_tokens": 600, "completion_tokens": 30},
        "seconds": {"retrieve": 0.25, "generate": 4.0, "verify": 0.75, "total": seconds},
    }
    result = {
        "id": question.id,
        "kind": question.kind,
        "question": question.question,
        "attempt": 1,
        "notes": [],
        "cached": cached,
        "answer": None if error else answer,
        "retrieved": [
            {
                "rank": n,
                "paper_id": name,
                "title": name.upper(),
                "score": 1 / n,
                "dense_rank": n,
                "lexical_rank": None,
            }
            for n, name in enumerate(found, start=1)
        ],
        "entailment": [] if error else [s["entailment"] for s in statements],
        "unknown_ids": list(unknown),
        "error": error,
    }
    return Item(question, groups, result)


def skipped(**asked: Any) -> Item:
    """An item that was not reached."""
    answered = item(**asked)
    return Item(answered.question, answered.gold, None)


def write_run(directory: str | Path, items: Iterable[Item], **meta: Any) -> Path:
    """A finished run of these items on disk."""
    path = Path(directory)
    path.mkdir(parents=True)
    items = list(items)
    questions = [{"gold": [], **question_json(one.question)} for one in items]
    results = [one.result for one in items if one.result is not None]
    for name, rows in (("questions", questions), ("results", results)):
        lines = (json.dumps(row) + "\n" for row in rows)
        (path / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    run = {"format": 1, "finished": "2026-03-14T09:01:15+00:00", "identity": {}, **meta}
    (path / "run.json").write_text(json.dumps(run), encoding="utf-8")
    return path
