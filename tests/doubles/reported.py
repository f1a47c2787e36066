"""A run of five items to report on, and a reader of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from typing import Any

from eval.items import Item
from eval.questions.datasets import Question
from eval.report.view import HEADLINE
from rag.answer import Turn

QUOTE = "AlphaNet lowers the graph noise by 12.5% on ImageNet."
META = {
    "format": 1,
    "identity": {"model": "a hash that only programs read"},
    "questions": {"name": "demo.jsonl", "fingerprint": "0123456789abcdef", "n": 4},
    "corpus": {"fingerprint": "fedcba9876543210", "papers": 56, "store": "vectorstore/demo"},
    "settings": {"llm": {"context_tokens": 4096}, "store": "vectorstore/demo"},
    "versions": {"citewise": "0.1.0", "python": "3.12.8"},
    "git": {"commit": "1010bf9c0d7aa0a5d2b1", "dirty": True},
    "model": "tiny.gguf",
    "embedding": "bge-small-en-v1.5",
    "seed": 0,
    "started": "2026-03-14T09:00:02+00:00",
    "finished": "2026-03-14T09:01:15+00:00",
    "seconds": 73.2,
    "usage": {"prompt_tokens": 12345, "completion_tokens": 678},
    "cost": None,
    "jobs": 2,
    "outcome": {"done": 3, "failed": 1, "skipped": 0, "cached": 0, "stopped": None},
}
EVIL = "<script>alert(\"x\")</script> & 'quote' \x1b[31mred\x00 \u202egnp\u202c $E=mc^2$"


def question(n: int, kind: str = "fact", text: str = "By how much?", **rest: Any) -> Question:
    return Question(f"q-{n}", kind, text, **rest)


def cite(paper_id: str = "alpha", quote: str = QUOTE) -> dict[str, Any]:
    return {"paper_id": paper_id, "quote": quote, "start": 0, "end": 9, "support": 0.91}


def item(
    asked: Question,
    *statements: tuple[str, bool, list[dict[str, Any]]],
    unknown: Sequence[str] = (),
    error: str | None = None,
    confidence: float = 0.8,
) -> Item:
    """An answered item; a refused one where there are no statements; a failed one with `error`."""
    answer = {
        "question": asked.question,
        "answered": bool(statements),
        "confidence": confidence,
        "text": " ".join(text for text, _, _ in statements) or "The papers do not answer this.",
        "statements": [
            {"text": text, "supported": supported, "citations": citations}
            for text, supported, citations in statements
        ],
        "papers": [{"paper_id": "alpha", "title": "AlphaNet", "sources": []}],
        "model": "tiny.gguf",
        "usage": {"prompt_tokens": 1200, "completion_tokens": 34},
        "seconds": {"retrieve": 0.25, "generate": 4.0, "verify": 0.75, "total": 5.0},
    }
    result = {
        "id": asked.id,
        "kind": asked.kind,
        "question": asked.question,
        "attempt": 2,
        "at": "2026-03-14T09:00:31+00:00",
        "cached": True,
        "answer": None if error else answer,
        "notes": ["A note."],
        "retrieved": [
            {
                "rank": 1,
                "paper_id": "alpha",
                "title": "AlphaNet",
                "score": 4.0312,
                "dense_rank": 2,
                "lexical_rank": None,
            }
        ],
        "entailment": [
            {
                "all": supported,
                "each": [supported, *[False] * len(citations)][: len(citations)],
                "without": [False, *[supported] * len(citations)][: len(citations)],
            }
            for _, supported, citations in statements
        ],
        "unknown_ids": list(unknown),
        "error": error,
    }
    return Item(asked, tuple(frozenset(group) for group in asked.gold), result)


RIGHT = item(
    question(1, gold=(("alpha", "omega"),), must_include=(r"12\.5",), note="a number"),
    ("By 12.5% it lowers the noise.", True, [cite(), cite("beta", "Beta folds.")]),
)
MISSED = item(
    question(2, gold=(("beta",), ("gamma",)), must_include=("seven", "folds?")),
    ("BetaNet folds.", False, [cite("beta", "BetaNet folds a protein.")]),
    unknown=["zeta"],
)
REFUSED = item(question(3, "unanswerable", must_not_include=("tea",)))
FAILED = item(
    question(4, "followup", "And then?", gold=(("alpha",),), history=(Turn("First?", "Yes."),)),
    error="The endpoint answered 500. Try again.",
)
LEFT = Item(question(5), (), None)
ITEMS = [RIGHT, MISSED, REFUSED, FAILED, LEFT]


def entry(value: float | None, low: float | None = None, high: float | None = None) -> Any:
    return {"value": value, "low": low, "high": high, "n": 0 if value is None else 3}


def summary(**kinds: Mapping[str, Any]) -> dict[str, Any]:
    """In the shape of `Summary.to_json()`."""
    return {
        "n": 5,
        "failed": 1,
        "skipped": 1,
        "cached": 0,
        "overall": {
            **{name: entry(None) for name in HEADLINE},
            "all_gold_cited": entry(0.5, 0.25, 0.75),
        },
        "by_kind": {
            kind: {"n": 2, "failed": 1, "skipped": 0, "metrics": metrics}
            for kind, metrics in (
                kinds or {"fact": {"all_gold_cited": entry(0.5, 0.0, 1.0)}}
            ).items()
        },
        "calibration": {
            "bins": 1,
            "n": 3,
            "table": [{"low": 0.7, "high": 0.9, "confidence": 0.8, "accuracy": 0.667, "n": 3}],
        },
        "risk_coverage": [
            {"coverage": 0.5, "risk": 0.0, "threshold": 0.9},
            {"coverage": 1.0, "risk": 0.5, "threshold": 0.7},
        ],
    }


EMPTY = {
    "n": 0,
    "failed": 0,
    "skipped": 0,
    "cached": 0,
    "overall": {},
    "by_kind": {},
    "calibration": {"bins": 0, "n": 0, "table": []},
    "risk_coverage": [],
}


class Reader(HTMLParser):
    """The text of each element that has an ID, and all tags; an element left open is an error."""

    VOID = frozenset(("meta", "input", "br"))
    # Beside these, words part without a blank.
    BLOCKS = frozenset("td th dt dd p br h1 h2 h3 h4 li text title desc option summary".split())

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self._open: list[tuple[str, str | None]] = []
        self.feed(html)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in self.BLOCKS:
            self.handle_data(" ")
        if tag not in self.VOID:
            self._open.append((tag, dict(attrs).get("id")))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop()[0] == tag
        if tag in self.BLOCKS:
            self.handle_data(" ")

    def handle_data(self, data: str) -> None:
        for _, identifier in self._open:
            if identifier:
                self.texts[identifier] = self.texts.get(identifier, "") + data

    def text(self, identifier: str) -> str:
        return " ".join(self.texts[identifier].split())
