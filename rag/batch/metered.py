"""A language model with a meter: what each item cost, and whether a reply of its was cut."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rag import tokens
from rag.chat_model import ChatModel, Message, Reply
from rag.types import Usage


@dataclass(slots=True)
class Tally:
    """Since `Metered.begin`: tokens, and whether any reply broke off."""

    usage: Usage = field(default_factory=Usage)
    truncated: bool = False


class Metered:
    """A `ChatModel` that counts for each thread what that thread asks.

    Tokens that the endpoint does not count are estimated: a budget must not go on for ever.
    """

    def __init__(self, model: ChatModel) -> None:
        self.name = model.name
        self._model = model
        self._local = threading.local()

    @property
    def constrained(self) -> bool:
        """As the model's."""
        return self._model.constrained

    @property
    def degraded(self) -> tuple[str, ...]:
        """As the model's."""
        return self._model.degraded

    def begin(self) -> Tally:
        """A new tally for this thread; its further calls are counted there."""
        self._local.tally = Tally()
        return self._tally()

    def complete(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        schema: dict[str, Any] | None = None,
        on_text: Callable[[str], None] | None = None,
    ) -> Reply:
        """As the model's."""
        reply = self._model.complete(
            messages, max_tokens=max_tokens, schema=schema, on_text=on_text
        )
        self._count(messages, reply.usage, reply.text)
        self._tally().truncated |= reply.truncated
        return reply

    def yes_probability(self, messages: Sequence[Message]) -> tuple[float | None, Usage]:
        """As the model's; the one token that it takes is no reply that broke off."""
        probability, usage = self._model.yes_probability(messages)
        self._count(messages, usage, "Yes")
        return probability, usage

    def _tally(self) -> Tally:
        tally: Tally | None = getattr(self._local, "tally", None)
        return tally if tally is not None else self.begin()

    def _count(self, messages: Sequence[Message], usage: Usage, text: str) -> None:
        if not usage.prompt_tokens:
            read = sum(tokens.count(message["content"]) for message in messages)
            usage = Usage(read, usage.completion_tokens or tokens.count(text))
        self._tally().usage += usage
