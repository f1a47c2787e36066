"""Where what a user began is kept, readable by that user alone."""

from __future__ import annotations

from pathlib import Path

PRIVATE_FILE = 0o600
PRIVATE_DIRECTORY = 0o700


def state_directory() -> Path:
    """The user's directory for it; not made here."""
    from platformdirs import user_state_path

    return user_state_path("citewise", appauthor=False)
