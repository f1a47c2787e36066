"""How long to wait before a failed request is tried again."""

from __future__ import annotations

import time
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tenacity import RetryCallState

LONGEST_PAUSE_SECONDS = 60.0


def pause(state: RetryCallState) -> float:
    """Seconds to wait: what the server asks for, up to a minute, else 0.5, 1, 2 ... with jitter."""
    from tenacity import wait_exponential_jitter

    error = state.outcome.exception() if state.outcome else None
    response = getattr(error, "response", None)
    asked = _retry_after(response.headers.get("retry-after", "")) if response is not None else None
    if asked is not None:
        return min(asked, LONGEST_PAUSE_SECONDS)
    return float(wait_exponential_jitter(initial=0.5, max=8, jitter=0.5)(state))


def _retry_after(header: str) -> float | None:
    """RFC 9110, 10.2.3: seconds, or a date."""
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except ValueError:
        return None
