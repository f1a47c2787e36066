"""The keyboard while an answer is shown."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

# DECTCEM: https://vt100.net/docs/vt510-rm/DECTCEM.html
_SHOW_CURSOR, _HIDE_CURSOR = b"\x1b[?25h", b"\x1b[?25l"


@contextmanager
def unechoed() -> Iterator[None]:
    """Do not show keys while they would be written into what is being redrawn.

    They are not lost: the next prompt reads them. Ctrl-C goes on working, and Ctrl-Z: the shell
    gets the terminal as it was, and what is shown goes on after `fg`.
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

    def become(mode: list[Any], cursor: bytes = b"") -> None:
        with suppress(OSError, termios.error):  # the terminal has gone
            termios.tcsetattr(descriptor, termios.TCSANOW, mode)
            if cursor:
                # Not through a stream, in whose writing the signal may have come.
                os.write(descriptor, cursor)

    def pause(*_: object) -> None:
        become(before, _SHOW_CURSOR)
        # By the system, which passes over it where no shell could call us back.
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, pause)
        go_on()

    def go_on(*_: object) -> None:
        if os.tcgetpgrp(descriptor) == os.getpgrp():  # in the background it is not ours to change
            become(silent, _HIDE_CURSOR)

    become(silent)
    try:
        with _handled({signal.SIGTSTP: pause, signal.SIGCONT: go_on}):
            yield
    finally:
        become(before)


@contextmanager
def _handled(handlers: dict[signal.Signals, Any]) -> Iterator[None]:
    """Handle signals for the block; only the main thread can."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
