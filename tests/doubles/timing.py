"""How the time of an action grows, whatever the machine and whoever else is at work on it."""

from __future__ import annotations

import time
from collections.abc import Callable

TRIES = 3


def growth(small: Callable[[], object], large: Callable[[], object]) -> float:
    """The processor's time of `large` over that of `small`; of each the least of some tries."""
    return _seconds(large) / _seconds(small)


def _seconds(action: Callable[[], object]) -> float:
    def once() -> float:
        started = time.process_time()
        action()
        return time.process_time() - started

    return max(min(once() for _ in range(TRIES)), 1e-4)
