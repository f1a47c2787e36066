"""Concerns to lines of a journal: an answer from the papers, or the papers closest to it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rag.batch.answering import Answering
from rag.response.closest import closest
from rag.response.concerns import Concern
from rag.retrieve import MAX_QUESTION, Retriever
from rag.sentences import sentence_spans
from rag.types import Paper

ANSWERABLE = "answerable"


class Responder:
    """Answers the concerns of a review, `about` being the paper under review, where it is known."""

    def __init__(self, answering: Answering, retriever: Retriever, about: Paper | None) -> None:
        self._answering = answering
        self._retriever = retriever
        self._about = about

    def line(self, concern: Concern, attempt: int) -> dict[str, Any]:
        """The line of a concern: "answer" as `rag ask --json`, "closest", and "error".

        What only the authors can answer gets no answer. An error that only this concern meets
        becomes "error".

        Raises:
            StoreError, ConfigError, EndpointDownError: further concerns would fail alike.
        """
        question = as_question(concern.text)
        line: dict[str, Any] = {"id": concern.key, "answer": None, "error": None, "notes": []}
        if concern.kind.kind == ANSWERABLE:
            line = self._answered(concern.key, question, attempt)
        line["closest"] = []
        if line["error"] is None and not (line["answer"] or {}).get("answered"):
            about = self._about.id if self._about is not None else None
            line["closest"] = [asdict(c) for c in closest(self._retriever, question, about)]
        return line

    def _answered(self, key: str, question: str, attempt: int) -> dict[str, Any]:
        """From the paper under review where that answers, else from all papers."""
        own = None
        if self._about is not None:
            own = self._answering.line(key, question, (), attempt, among=(self._about.id,))
            if own["error"] is not None or own["answer"]["answered"]:
                return own
        line = self._answering.line(key, question, (), attempt)
        if own is not None:
            line["spent"] = {name: n + line["spent"][name] for name, n in own["spent"].items()}
        return line


def as_question(text: str) -> str:
    """A concern as it is asked: on one line, a very long one up to its last whole sentence."""
    question = " ".join(text.split())
    if len(question) <= MAX_QUESTION:
        return question
    whole = [s.end for s in sentence_spans(question) if s.end <= MAX_QUESTION]
    return question[: whole[-1] if whole else MAX_QUESTION].rstrip()
