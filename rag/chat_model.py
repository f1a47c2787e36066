"""What the rest of the package sees of a language model: messages in, replies out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from rag.types import Usage

Message = dict[str, str]  # {"role": "system" | "user" | "assistant", "content": ...}


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model wrote.

    `truncated`: the text may lack its end, since the stream broke, the token limit came or a
    filter stepped in; such a reply must not be cached. `usage` is 0 where the endpoint counts not.
    """

    text: str
    usage: Usage
    finish_reason: str | None
    truncated: bool
    yes_probability: float | None = None


class ChatModel(Protocol):
    """A language model that answers messages. All methods raise EndpointError."""

    name: str

    @property
    def constrained(self) -> bool:
        """Whether a schema is enforced while the model writes."""

    @property
    def degraded(self) -> tuple[str, ...]:
        """What the endpoint turned out not to support, for the user to be told once."""

    def complete(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        schema: dict[str, Any] | None = None,
        on_text: Callable[[str], None] | None = None,
    ) -> Reply:
        """Answer; `on_text` is given the text piece by piece as it is written."""

    def yes_probability(self, messages: Sequence[Message]) -> tuple[float | None, Usage]:
        """P(Yes) of a yes/no question, 0..1; None where the model said neither."""
