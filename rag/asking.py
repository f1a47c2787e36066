"""A question as it was typed -> a question that stands on its own, in English, for the search.

Code resolves what it can (`rag.references`); the language model translates and fills in the rest.
Whatever it makes of a question is checked, and shown to the person who asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rag import prompts, tokens
from rag.chat_model import ChatModel
from rag.config import Settings
from rag.facts import names
from rag.followup import Mention, Turn, antecedents, depends, joined, plausible, recent
from rag.language import language_of
from rag.references import resolve
from rag.retrieve import MAX_QUESTION
from rag.types import Paper, Usage

# Tokens of earlier turns that a follow-up is read with, where the context window has room.
HISTORY_TOKENS = 800
# What the instructions around them and the reply take.
_AROUND = 500
_LONGEST_REPLY = 160


@dataclass(frozen=True, slots=True)
class Asked:
    """What is searched and answered: `text`, about papers `named`, from those `among` (or all).

    `language` is the one to answer in, None for English; `usage` is what reading it cost.
    """

    text: str
    language: str | None = None
    named: tuple[Mention, ...] = ()
    among: tuple[Mention, ...] = ()
    usage: Usage = field(default_factory=Usage)

    @property
    def shown(self) -> str:
        """The question as it was understood, for the person who asked."""
        if not self.among:
            return self.text
        return f"{self.text} ({', '.join(paper.paper_id for paper in self.among)})"


class Interpreter:
    """Reads questions in the light of a conversation."""

    def __init__(
        self, model: ChatModel, find: Callable[[str], Paper | None], settings: Settings
    ) -> None:
        self._model = model
        self._find = find
        self._settings = settings

    def read(self, question: str, history: Sequence[Turn] = ()) -> Asked:
        """The question on its own feet.

        Raises:
            EndpointError: the language model did not answer.
        """
        language, usage, text = language_of(question), Usage(), question
        if language is not None:
            text, usage = self._english(question, language)
        resolved = resolve(text, history, self._mention)
        text = resolved.text
        if history and not resolved.among and depends(text):
            text, spent = self._standalone(text, history)
            usage += spent
        return Asked(text[:MAX_QUESTION], language, resolved.named, resolved.among, usage)

    def _mention(self, paper_id: str) -> Mention | None:
        paper = self._find(paper_id)
        return Mention(paper.id, paper.title) if paper else None

    def _english(self, question: str, language: str) -> tuple[str, Usage]:
        """The question in English; names that the translation lost are put behind it."""
        prompt = prompts.render("translate", question=question, language=language)
        line, usage = self._one_line(prompt)
        if not line:
            return question, usage
        lost = names(question) - names(line)
        kept = [word for word in question.split() if names(word) & lost]
        return " ".join([line, *kept]), usage

    def _standalone(self, question: str, history: Sequence[Turn]) -> tuple[str, Usage]:
        window = self._settings.llm.context_tokens
        room = window - round(tokens.MARGIN * tokens.count(question)) - _AROUND
        before = antecedents(history)
        latest = recent(before, max(0, min(HISTORY_TOKENS, room)))
        prompt = prompts.render(
            "rewrite", history=latest, papers=latest[-1].papers, question=question
        )
        line, usage = self._one_line(prompt)
        if line and plausible(line, question, history):
            return line, usage
        return joined(question, before), usage

    def _one_line(self, prompt: str) -> tuple[str, Usage]:
        message = {"role": "user", "content": prompt}
        reply = self._model.complete([message], max_tokens=_LONGEST_REPLY)
        line = " ".join(reply.text.split())[:MAX_QUESTION]
        return (line if any(c.isalnum() for c in line) else ""), reply.usage
