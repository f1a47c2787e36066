"""A run directory as the harness keeps it: what was asked, what was expected, what came back.

RUN_DIR/run.json        settings, versions, fingerprints, machine, times, totals
RUN_DIR/questions.jsonl the questions of the run, gold already resolved to paper IDs
RUN_DIR/results.jsonl   one line for each item (see `Item.result`), in the order of questions
RUN_DIR/metrics.json    `Summary.to_json()`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eval.questions.datasets import Question


@dataclass(frozen=True, slots=True)
class Item:
    """A question, the papers that it wants cited, and the line of `results.jsonl`.

    `gold`: groups of paper IDs, any one of a group will do; a group is empty where the corpus
    does not hold it, and then counts as never cited. `result` is None where the item was not
    reached (skipped); else

        {"id", "kind", "question", "asked", "attempt": n from 1, "seed", "made_with",
         "prompt_hash", "at": ISO 8601, "cached": bool,
         "answer": <as in `rag ask --json`> | null, "notes": [str],
         "retrieved": [{"rank", "paper_id", "title", "score", "dense_rank", "lexical_rank"}],
         "entailment": [{"all": bool, "each": [bool], "without": [bool]}],
         "unknown_ids": [str], "error": str | null,
         "spent": {"prompt_tokens", "completion_tokens"},
         "spent_before": as "spent", where there were earlier attempts}

    with an entailment entry for each statement of the answer, as `rag.verify` judges it: whether
    all its citations together support it, each one alone, and all without that one (of one
    citation: False). `unknown_ids` are cited IDs that were not retrieved. `asked` is a digest of
    the question and its history. `spent` is what this attempt cost, if it failed too, and nothing
    where it is cached; `spent_before` what all attempts before it did. `answer` is null exactly
    where `error` is not: a failed item.
    """

    question: Question
    gold: tuple[frozenset[str], ...]
    result: Mapping[str, Any] | None

    @property
    def failed(self) -> bool:
        """Whether it was asked, and an error came instead of an answer."""
        return self.result is not None and self.result["error"] is not None

    @property
    def answer(self) -> Mapping[str, Any] | None:
        """The answer as in `rag ask --json`; None where it failed or was not reached."""
        return None if self.result is None else self.result["answer"]
