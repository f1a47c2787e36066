"""What a batch does otherwise than one question: patience, several at a time, a budget."""

from __future__ import annotations

import json

from rag.batch.budget import Budget, Price
from rag.config import CONFIG_FILE, Settings
from rag.errors import UsageError

# Tries after a failed request, with pauses of 0.5, 1, 2 ... 30 s: rate limits are counted by the
# minute, and eight tries sit one out. Nobody waits for a single answer of a batch.
MAX_RETRIES = 8

# Questions at a time: the model of this machine uses every core for one, an endpoint waits.
JOBS_HERE = 1
JOBS_AT_ENDPOINT = 4


def patient(settings: Settings) -> Settings:
    """The settings, with more tries unless their number was set."""
    if "max_retries" in settings.llm.model_fields_set:
        return settings
    llm = settings.llm.model_copy(update={"max_retries": MAX_RETRIES})
    return settings.model_copy(update={"llm": llm})


def usual_jobs(settings: Settings) -> int:
    """How many questions are worked on at a time unless told otherwise."""
    return JOBS_HERE if settings.llm.base_url is None else JOBS_AT_ENDPOINT


def budget_for(
    settings: Settings, model: str, max_tokens: int | None = None, max_cost: float | None = None
) -> Budget:
    """The budget of a run with `model`, at the price that the settings give.

    Raises:
        UsageError: a limit of cost, and no price; the message says what to write where.
    """
    found = settings.prices.get(model)
    if found is None and max_cost is not None:
        # A TOML string in double quotes is written as JSON's.
        raise UsageError(
            f"--max-cost needs the price of {model}. Write it into {CONFIG_FILE}, as money for a "
            f"million tokens: [prices.{json.dumps(model)}] and below it `input = 0.15` and "
            "`output = 0.60`."
        )
    price = Price(found.input, found.output) if found else None
    return Budget(max_tokens, max_cost, price)
