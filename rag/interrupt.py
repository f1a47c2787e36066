"""Leaving at once on Ctrl-C, also while llama.cpp is at work in this process."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130


@contextmanager
def leaving_at_once(
    said: str = "Interrupted.", first: Callable[[], None] | None = None
) -> Iterator[None]:
    """Within the block Ctrl-C says `said` and ends the process with 130, cleaning nothing up.

    Stopping llama.cpp's server waits for the prompt it reads, or for ever while it loads its model.
    For commands that have nothing to lose: what they write is whole at any moment. `first` is
    called before, to give the terminal back.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(_signal: int, _frame: FrameType | None) -> None:
        if first is not None:
            first()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os.write(2, said.encode("utf-8", "replace") + b"\n")
        os._exit(INTERRUPTED)

    before = signal.signal(signal.SIGINT, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
