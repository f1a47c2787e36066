"""A chat model with a queue of replies; nothing is sent anywhere."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rag.chat_model import Message, Reply
from rag.types import Usage

USAGE = Usage(prompt_tokens=10, completion_tokens=2)


@dataclass(frozen=True, slots=True)
class Asked:
    """One call: what the model was sent, and under which schema."""

    messages: tuple[Mapping[str, str], ...]
    max_tokens: int
    schema: Mapping[str, Any] | None = None

    @property
    def text(self) -> str:
        """The contents of all messages, one after the other."""
        return "\n".join(message["content"] for message in self.messages)


@dataclass(slots=True)
class QueueChat:
    """Gives the next of `replies` for each `complete` and of `yes` for each `yes_probability`.

    A reply is text, streamed `piece` characters at a time, or a whole `Reply`. When the queue of
    `yes` is empty the answer is 1.0; an empty queue of replies is an IndexError. Every call costs
    `USAGE` and is kept in `asked`.
    """

    replies: deque[str | Reply] = field(default_factory=deque)
    yes: deque[float | None] = field(default_factory=deque)
    piece: int = 5
    name: str = "queue"
    constrained: bool = True
    degraded: tuple[str, ...] = ()
    asked: list[Asked] = field(default_factory=list)

    def complete(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        schema: dict[str, Any] | None = None,
        on_text: Callable[[str], None] | None = None,
    ) -> Reply:
        self.asked.append(Asked(tuple(messages), max_tokens, schema))
        reply = self.replies.popleft()
        if isinstance(reply, str):
            reply = Reply(reply, USAGE, "stop", truncated=False)
        if on_text is not None:
            for start in range(0, len(reply.text), self.piece):
                on_text(reply.text[start : start + self.piece])
        return reply

    def yes_probability(self, messages: Sequence[Message]) -> tuple[float | None, Usage]:
        self.asked.append(Asked(tuple(messages), max_tokens=1))
        return (self.yes.popleft() if self.yes else 1.0), USAGE
