"""Where the traceback of an unforeseen error goes: to a file, never to the screen."""

from __future__ import annotations

import time
import traceback
from pathlib import Path


def record(error: Exception) -> str:
    """Write the traceback to the user's log directory; say where, for the message."""
    from platformdirs import user_log_dir

    directory = Path(user_log_dir("citewise"))
    path = directory / f"crash-{time.strftime('%Y%m%d-%H%M%S')}.txt"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(traceback.format_exception(error)), encoding="utf-8")
    except OSError:
        return "Please report it."
    return f"Details are in {path}. Please report it with that file."
