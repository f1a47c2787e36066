"""Batches embedded and stored in threads of their own, in order, while the next ones are read."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Generic, TypeVar

B = TypeVar("B")
M = TypeVar("M")

# Batches on their way: one being embedded, one being stored, and one waiting before each. A fixed
# number, so that what is known when a record is looked at does not depend on the threads.
DEPTH = 4


class _Flight(Generic[B, M]):
    """A batch on its way; `made` is what embedding made of it."""

    def __init__(self, batch: B) -> None:
        self.batch = batch
        self.made: M | None = None
        self.error: BaseException | None = None
        self.landed = threading.Event()


class Pipeline(Generic[B, M]):
    """Calls `embed(batch)` and `store(batch, made)` for batch after batch, each in its thread.

    After the first error nothing more is embedded or stored. `embed` is given what asks whether to
    go on, and may return None if not.
    """

    def __init__(
        self,
        embed: Callable[[B, Callable[[], bool]], M | None],
        store: Callable[[B, M], None],
    ) -> None:
        self._embed, self._store = embed, store
        self._stopped = threading.Event()
        self._to_embed: SimpleQueue[_Flight[B, M] | None] = SimpleQueue()
        self._to_store: SimpleQueue[_Flight[B, M] | None] = SimpleQueue()
        self._flying: deque[_Flight[B, M]] = deque()
        # Daemons: Ctrl-C must not wait for what a slow model is about.
        self._threads = [
            threading.Thread(target=work, name=work.__name__, daemon=True)
            for work in (self._embedding, self._storing)
        ]
        for thread in self._threads:
            thread.start()

    def put(self, batch: B) -> B | None:
        """Send a batch on its way; the one that is stored by now, once there are `DEPTH`.

        Raises whatever was raised while an earlier batch was embedded or stored.
        """
        flight = _Flight[B, M](batch)
        self._flying.append(flight)
        self._to_embed.put(flight)
        return self.land() if len(self._flying) > DEPTH else None

    def land(self) -> B | None:
        """Wait until the oldest batch is stored; None where none is on its way."""
        if not self._flying:
            return None
        flight = self._flying.popleft()
        flight.landed.wait()
        if flight.error is not None:
            raise flight.error
        return flight.batch

    def close(self) -> None:
        """Stop: what is being stored is stored to its end, all else is dropped."""
        self._stopped.set()
        self._to_embed.put(None)
        self._to_store.put(None)
        self._threads[-1].join()

    def _going(self) -> bool:
        return not self._stopped.is_set()

    def _embedding(self) -> None:
        while (flight := self._to_embed.get()) is not None:
            try:
                if self._going():
                    flight.made = self._embed(flight.batch, self._going)
            except BaseException as error:
                flight.error = error
            self._to_store.put(flight)

    def _storing(self) -> None:
        while (flight := self._to_store.get()) is not None:
            try:
                if flight.error is None and flight.made is not None and self._going():
                    self._store(flight.batch, flight.made)
            except BaseException as error:
                flight.error = error
            if flight.error is not None:
                self._stopped.set()
            flight.landed.set()
