"""What an endpoint's refusal means and what the user can do about it; pure functions."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag.http import excerpt

LISTED_MODELS = 10

_CONTEXT = re.compile(
    r"context[ _](length|size|window)|exceed_context|maximum context|prompt is too long",
    re.IGNORECASE,
)


def is_context_overflow(message: str) -> bool:
    """Whether a refusal says that the prompt and answer do not fit the model's window."""
    return bool(_CONTEXT.search(message))


def is_transient(status: int, code: str | None) -> bool:
    """Whether the same request may succeed later; an exhausted quota does not refill by waiting."""
    if code == "insufficient_quota":
        return False
    return status in (408, 409, 429) or status >= 500


def is_general(status: int, code: str | None) -> bool:
    """Whether any other request would be refused as well: key, address or quota are to blame.

    Not 403, with which some endpoints refuse what a prompt says.
    """
    return code == "insufficient_quota" or status in (401, 404) or 300 <= status < 400


def explain(status: int, said: str, code: str | None, base_url: str, *, has_key: bool) -> str:
    """A message for an HTTP status; `said` is an `excerpt` of the server's words."""
    quoted = f' The server says: "{said}".' if said else ""
    if status in (401, 403):
        sent = "the key in RAG_LLM_API_KEY" if has_key else "a request without a key"
        advice = "Set RAG_LLM_API_KEY to a key that is valid there."
        # A server may repeat part of the key in its refusal (401); a 403 often has another reason.
        reason = quoted if status == 403 else ""
        return f"{base_url} refuses {sent} (status {status}).{reason} {advice}"
    if code == "insufficient_quota":
        return f"The account at {base_url} has no quota left.{quoted} Add credit there."
    if status == 429:
        return f"{base_url} still limits the rate after every try.{quoted} Wait, then run it again."
    if is_context_overflow(said):
        return (
            f"Prompt and answer do not fit the model's context window.{quoted} Set"
            " RAG_LLM_CONTEXT_TOKENS to that window, or lower RAG_ANSWER_EVIDENCE_TOKENS."
        )
    if 300 <= status < 400:
        return (
            f"{base_url} redirects elsewhere (status {status}), which is not followed."
            " Set RAG_LLM_BASE_URL to the final address."
        )
    return (
        f"{base_url} answered with status {status}.{quoted}"
        " Check the server, RAG_LLM_BASE_URL and RAG_LLM_MODEL."
    )


def explain_not_found(model: str, base_url: str, models: Sequence[str]) -> str:
    """A message for status 404: a model the endpoint has not, or an address it knows not."""
    if models and model not in models:
        return f"{base_url} has no model {model!r}. Set RAG_LLM_MODEL to one of: {listing(models)}."
    return (
        f"{base_url} does not know the address or the model {model!r} (status 404). Check"
        " RAG_LLM_MODEL, and that RAG_LLM_BASE_URL is the address that ends with /v1."
    )


def listing(models: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    names = ", ".join(excerpt(name, None) for name in models[:LISTED_MODELS])
    more = len(models) - LISTED_MODELS
    return f"{names} and {more} more" if more > 0 else names
