"""What a run may spend."""

from __future__ import annotations

from dataclasses import dataclass

from rag.errors import UsageError
from rag.types import Usage


@dataclass(frozen=True, slots=True)
class Price:
    """Money for a million tokens read and a million written, in any currency."""

    input: float
    output: float

    def of(self, usage: Usage) -> float:
        """What so many tokens cost."""
        return (usage.prompt_tokens * self.input + usage.completion_tokens * self.output) / 1e6


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that a run may spend, what earlier runs of its journal spent included.

    Raises:
        UsageError: a limit of cost without a price.
    """

    max_tokens: int | None = None
    max_cost: float | None = None
    price: Price | None = None

    def __post_init__(self) -> None:
        if self.max_cost is not None and self.price is None:
            raise UsageError("A budget of money needs the price of the model's tokens.")

    def cost(self, usage: Usage) -> float | None:
        """What `usage` cost; None where there is no price."""
        return self.price.of(usage) if self.price else None

    def used_up(self, usage: Usage) -> str | None:
        """Why nothing more may be spent, if so."""
        tokens, cost = total(usage), self.cost(usage)
        if self.max_tokens is not None and tokens >= self.max_tokens:
            return f"The budget of {self.max_tokens:,} tokens is used up ({tokens:,} spent)."
        if self.max_cost is not None and cost is not None and cost >= self.max_cost:
            return f"The budget of {self.max_cost:g} is used up ({cost:.4g} spent)."
        return None


def total(usage: Usage) -> int:
    """Tokens read and written."""
    return usage.prompt_tokens + usage.completion_tokens
