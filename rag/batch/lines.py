"""What the lines of a journal say: of which item, how it ended, and what it cost."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rag.types import Usage

# How every line begins: a torn last line that begins otherwise is not ours to cut off.
BEGINNING = b'{"id": '

# What earlier attempts at the item cost, whose lines are gone once the journal is settled.
SPENT_BEFORE = "spent_before"


@dataclass(frozen=True, slots=True)
class Attempt:
    """The latest line of an item: which attempt it was, how it ended, and if it was cached.

    `usage` are the tokens that the item has cost so far, earlier attempts included.
    """

    number: int
    failed: bool
    usage: Usage
    cached: bool = False


def encoded(line: Mapping[str, Any], before: Usage) -> bytes:
    """A line of JSON, its "id" first; what cannot be seen in its text is written as an escape.

    `before` is what earlier attempts at the item cost.
    """
    whole = {"id": line["id"], **line}
    if before != Usage():
        whole[SPENT_BEFORE] = {
            "prompt_tokens": before.prompt_tokens,
            "completion_tokens": before.completion_tokens,
        }
    text = json.dumps(whole, ensure_ascii=False)
    if not text.isprintable():
        text = "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)
    return text.encode() + b"\n"


def attempt_of(line: Mapping[str, Any], before: Usage) -> Attempt:
    """The attempt that a line tells of; `before` is what the lines of its item above it cost.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: it is no line of a journal.
    """
    if not isinstance(line["id"], str):
        raise TypeError("an ID is text")
    _ = line["answer"]
    failed = line["error"] is not None
    told = line.get(SPENT_BEFORE)
    usage = _spent(line) + (before if told is None else _usage(told))
    return Attempt(int(line.get("attempt", 1)), failed, usage, bool(line.get("cached")))


def _spent(line: Mapping[str, Any]) -> Usage:
    """What a line says it spent, else the tokens of an answer not cached."""
    answered = {} if line.get("cached") else line.get("answer") or {}
    return _usage(line.get("spent") or answered.get("usage") or {})


def _usage(counted: Mapping[str, Any]) -> Usage:
    return Usage(int(counted.get("prompt_tokens", 0)), int(counted.get("completion_tokens", 0)))
