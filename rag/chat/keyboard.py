"""The keyboard while an answer is shown."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def unechoed() -> Iterator[None]:
    """Do not show keys while they would be written into what is being redrawn.

    They are not lost: the next prompt reads them. Ctrl-C goes on working.
    """
    try:
        import termios

        descriptor = sys.stdin.fileno()
        before = termios.tcgetattr(descriptor)
    except (ImportError, OSError, ValueError, AttributeError):  # Windows, or no terminal
        yield
        return
    silent = [*before]
    silent[3] = before[3] & ~termios.ECHO
    termios.tcsetattr(descriptor, termios.TCSANOW, silent)
    try:
        yield
    finally:
        with suppress(OSError):  # the terminal has gone
            termios.tcsetattr(descriptor, termios.TCSANOW, before)
