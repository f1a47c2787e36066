"""Leaving at once on Ctrl-C, also while llama.cpp is at work in this process."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130


@contextmanager
def leaving_at_once() -> Iterator[None]:
    """Within the block Ctrl-C ends the process with 130 and cleans nothing up.

    Stopping llama.cpp's server waits for the prompt it reads, or for ever while it loads its model.
    For commands that write nothing: there is nothing to lose.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, _leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _leave(_signal: int, _frame: FrameType | None) -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os.write(2, b"Interrupted.\n")
    os._exit(INTERRUPTED)
