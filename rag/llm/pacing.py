"""How long to wait before trying again, when several threads ask the same server."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rag.http import LONGEST_PAUSE_SECONDS

FIRST_PAUSE_SECONDS = 0.5
# Threads that were refused together must not come back together: each waits up to so much longer,
# as a share of its pause, and in seconds after a pause that the server named.
JITTER = 0.5
MOST_SPREAD_SECONDS = 2.0


class Pace:
    """What one thread learns of a server's limit holds for the others too."""

    def __init__(
        self,
        sleep: Callable[[float], None],
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._sleep = sleep
        self._clock = clock
        self._chance = chance
        self._mutex = threading.Lock()
        self._local = threading.local()
        self._asking = 0
        self._until = 0.0

    @contextmanager
    def asking(self) -> Iterator[None]:
        """For as long as a thread asks, whatever tries it takes."""
        with self._mutex:
            self._asking += 1
        try:
            yield
        finally:
            with self._mutex:
                self._asking -= 1

    def wait(self) -> None:
        """Sit out a limit that another thread met; its own pauses a thread makes itself."""
        own = getattr(self._local, "until", 0.0)
        rest = self._until - max(self._clock(), own)
        if rest > 0:
            self._sleep(rest + self._spread(rest))

    def pause(self, attempt: int, asked: float | None, *, limited: bool) -> float:
        """Seconds to wait after try `attempt`, from 1: what the server asks for, else 0.5, 1, 2 ...

        At most `LONGEST_PAUSE_SECONDS`, but for the jitter. `limited`: the server refuses everybody
        for now, so that other threads wait as well.
        """
        if asked is not None:
            seconds = min(asked, LONGEST_PAUSE_SECONDS)
            seconds += self._spread(seconds) if self._asking > 1 else 0.0
        else:
            seconds = min(FIRST_PAUSE_SECONDS * 2.0 ** (attempt - 1), LONGEST_PAUSE_SECONDS)
            seconds *= 1 + JITTER * self._chance()
        if limited:
            until = self._clock() + seconds
            self._local.until = max(until, getattr(self._local, "until", 0.0))
            with self._mutex:
                self._until = max(self._until, until)
        return seconds

    def _spread(self, seconds: float) -> float:
        return min(JITTER * seconds, MOST_SPREAD_SECONDS) * self._chance()
