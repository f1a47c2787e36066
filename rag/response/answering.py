"""Concerns to lines of a journal: an answer from the papers, or the papers closest to it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rag import tokens
from rag.batch.answering import Answering
from rag.batch.failures import explained, stops_all
from rag.config import Settings
from rag.response.closest import closest
from rag.response.concerns import Concern
from rag.retrieve import MAX_QUESTION, Retriever
from rag.review import addresses_program
from rag.sentences import sentence_spans
from rag.types import Paper

ANSWERABLE = "answerable"

# Tokens of the instructions around evidence and question; measured 150 to 220.
AROUND = 300

CUT = "It is long: only its first part was asked."
ADDRESSED = "What it says to a program instead of the authors was not asked."


class Responder:
    """Answers the concerns of a review, `about` being the paper under review, where it is known."""

    def __init__(
        self, answering: Answering, retriever: Retriever, about: Paper | None, settings: Settings
    ) -> None:
        self._answering = answering
        self._retriever = retriever
        self._about = about
        answer = settings.answer
        spent = answer.evidence_tokens + answer.max_answer_tokens + AROUND
        self._room = max(AROUND, round(settings.llm.context_tokens / tokens.MARGIN) - spent)

    def line(self, concern: Concern, attempt: int) -> dict[str, Any]:
        """The line of a concern: "answer" as `rag ask --json`, "closest", "notes" and "error".

        What only the authors can answer gets no answer. An error that only this concern meets
        becomes "error".

        Raises:
            StoreError, ConfigError, EndpointDownError: further concerns would fail alike.
        """
        question, notes = as_question(concern.text, self._room)
        line: dict[str, Any] = {"id": concern.key, "answer": None, "error": None, "notes": []}
        if question and concern.kind.kind == ANSWERABLE:
            line = self._answered(concern.key, question, attempt)
            line["notes"] = [*notes, *line["notes"]]
        line["closest"] = []
        if question and line["error"] is None and not (line["answer"] or {}).get("answered"):
            self._add_closest(line, question)
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

    def _add_closest(self, line: dict[str, Any], question: str) -> None:
        about = self._about.id if self._about is not None else None
        try:
            line["closest"] = [asdict(c) for c in closest(self._retriever, question, about)]
        except Exception as error:
            if stops_all(error):
                raise
            line["error"] = explained(error)


def as_question(text: str, most_tokens: int) -> tuple[str, tuple[str, ...]]:
    """A concern as it is asked, on one line, and notes on what of it is not asked.

    That is what it says to a program instead of the authors; and one that is too long for the model
    is cut behind its last sentence that fits whole, or in its first one.
    """
    said = " ".join(text.split())
    sentences = [said[span.start : span.end] for span in sentence_spans(said)]
    asked = [part for sentence in sentences if (part := _to_authors(sentence))]
    notes = [] if asked == sentences else [ADDRESSED]
    question = " ".join(asked)
    fitting = asked[: tokens.fit(asked, most_tokens)]
    while len(" ".join(fitting)) > MAX_QUESTION:
        fitting.pop()
    if len(fitting) < len(asked):
        notes.append(CUT)
        # A token has a character at least.
        question = " ".join(fitting) or asked[0][: min(MAX_QUESTION, most_tokens)].rstrip()
    return question, tuple(notes)


def _to_authors(sentence: str) -> str:
    """The sentence without what it says to a program; a question in it is kept."""
    if not addresses_program(sentence):
        return sentence
    question = sentence.rpartition(":")[2].strip()
    if "?" not in question:
        return ""
    return sentence if addresses_program(question) else question
