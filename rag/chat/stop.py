"""Ctrl-C in a chat: it stops the answer that is being made, and nothing else."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Stopper:
    """While it is installed, SIGINT does something only inside `stoppable`: KeyboardInterrupt.

    So neither a session file nor the screen is ever left half written.
    """

    def __init__(self) -> None:
        self._listening = False

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Take SIGINT over for the block; only the main thread can."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGINT, self._handle)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    @contextmanager
    def stoppable(self) -> Iterator[None]:
        """Let the next SIGINT, and only one, raise KeyboardInterrupt within the block."""
        self._listening = True
        try:
            yield
        finally:
            self._listening = False

    def _handle(self, _signal: int, _frame: FrameType | None) -> None:
        if self._listening:
            self._listening = False
            raise KeyboardInterrupt
