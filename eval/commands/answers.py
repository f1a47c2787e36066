"""`rag eval answers`."""

from __future__ import annotations


def answers() -> None:
    """To be written."""
    raise NotImplementedError
