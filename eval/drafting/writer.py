"""Plans to drafts: the language model words them, and code decides which wording may stay.

A fact also makes a round trip, as in Alberti et al. 2019 (https://arxiv.org/abs/1906.05416): the
model answers the question from the paper's text, and must say the number that was taken out.
"""

from __future__ import annotations

import json
import re
from typing import Any

from eval.drafting.plan import Draft, Plan
from eval.questions.fields import REGEX_FLAGS
from rag import prompts
from rag.answer import ANSWERABLE
from rag.chat_model import ChatModel, Message
from rag.config import Settings
from rag.evidence import select
from rag.retrieve import Retriever
from rag.text import visible

# Wordings that a plan may take.
TRIES = 3
QUESTION_TOKENS = 120
ANSWER_TOKENS = 48

# Papers that a list question is looked through for, as for its answer.
_LISTED = 8

_DRAFT = "Draft, to be checked by a person."

_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"question": {"type": "string", "minLength": 1}},
    "required": ["question"],
    "additionalProperties": False,
}


class Writer:
    """Words plans with one language model and one retriever."""

    def __init__(self, model: ChatModel | None, retriever: Retriever, settings: Settings) -> None:
        self._model = model
        self._retriever = retriever
        self._settings = settings

    def write(self, plan: Plan) -> Draft | str:
        """A draft that passes every check, or what was wrong with the last wording.

        Raises:
            EndpointError: the language model did not answer.
        """
        if plan.wording is not None:
            return Draft(plan, plan.wording, self._note(plan, plan.wording))
        messages: list[Message] = [
            {"role": "system", "content": prompts.render("draft_system")},
            {"role": "user", "content": _request(plan)},
        ]
        fault = ""
        tried: set[str] = set()
        for _ in range(TRIES):
            reply = self._complete(messages, QUESTION_TOKENS, _SCHEMA)
            question = _question(reply)
            if question in tried:
                break
            tried.add(question)
            fault = self._fault(plan, question) or ""
            if not fault:
                return Draft(plan, question, self._note(plan, question))
            again = prompts.render("draft_again", fault=fault, opening=plan.opening)
            # Only the last wording: several would teach the model to go on like them.
            messages = [
                *messages[:2],
                {"role": "assistant", "content": prompts.fenced(reply)},
                {"role": "user", "content": again},
            ]
        return fault

    def _fault(self, plan: Plan, question: str) -> str | None:
        if not question:
            return "there is no question in it"
        if not question.startswith(plan.opening):
            return f'it does not begin with "{plan.opening}"'
        for check in plan.checks:
            if (fault := check(question)) is not None:
                return fault
        if not self._is_found(plan, question):
            return "the search does not find the paper by it"
        if plan.kind == "fact":
            return self._round_trip(plan, question)
        return None

    def _is_found(self, plan: Plan, question: str) -> bool:
        """One paper comes first; several are among those that an answer is made from."""
        hits = self._retriever.retrieve(question).hits
        found = [hit.paper.id for hit in hits]
        wanted = {paper.id for paper in plan.papers}
        return wanted <= set(found[:1] if len(wanted) == 1 else found)

    def _round_trip(self, plan: Plan, question: str) -> str | None:
        (paper,) = plan.papers
        prompt = prompts.render(
            "draft_answer", title=paper.title, text=paper.text, question=question
        )
        answer = self._complete([{"role": "user", "content": prompt}], ANSWER_TOKENS)
        if all(re.search(pattern, answer, REGEX_FLAGS) for pattern in plan.must_include):
            return None
        return "a reader of the paper gives another answer"

    def _note(self, plan: Plan, question: str) -> str:
        parts = [_DRAFT, f"{plan.note}."]
        if plan.kind == "list":
            parts += self._overlooked(plan, question)
        elif plan.kind == "unanswerable":
            parts += self._likely_answered(question)
        return " ".join(visible(part) for part in parts)

    def _overlooked(self, plan: Plan, question: str) -> list[str]:
        """What the search finds besides gold: it may fit under another name."""
        listed = {paper.id for paper in plan.papers}
        hits = self._retriever.retrieve(question, _LISTED).hits
        others = [hit.paper.id for hit in hits if hit.paper.id not in listed][:3]
        return [f"Found but not in gold, look at: {', '.join(others)}."] if others else []

    def _likely_answered(self, question: str) -> list[str]:
        """What the gate of `rag ask` says to the question."""
        assert self._model is not None
        evidence = select(self._retriever.retrieve(question), self._settings.answer)
        shown = prompts.render("evidence", papers=evidence.for_prompt(), question=question)
        messages: list[Message] = [
            {"role": "system", "content": prompts.render("system")},
            {"role": "user", "content": f"{shown}\n\n{prompts.render('gate')}"},
        ]
        likely, _ = self._model.yes_probability(messages)
        if likely is None:
            return []
        warning = ", so it would be answered: make sure that no paper does" * (likely >= ANSWERABLE)
        return [f"P(Yes) of the gate {likely:.2f}{warning}."]

    def _complete(
        self, messages: list[Message], most: int, schema: dict[str, Any] | None = None
    ) -> str:
        assert self._model is not None
        return self._model.complete(messages, max_tokens=most, schema=schema).text


def _request(plan: Plan) -> str:
    asked = prompts.render(plan.prompt, opening=plan.opening, **plan.values)
    return f"{asked}\n{prompts.render('draft_reply', opening=plan.opening)}"


def _question(reply: str) -> str:
    """The question of a reply; empty where there is none."""
    start = reply.find("{")
    try:
        value, _ = json.JSONDecoder(strict=False).raw_decode(reply, max(start, 0))
    except (ValueError, RecursionError):
        return ""
    text = value.get("question") if isinstance(value, dict) else None
    return " ".join(visible(text).split()) if isinstance(text, str) else ""
