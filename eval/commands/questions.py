"""`rag eval questions`."""

from __future__ import annotations


def questions() -> None:
    """To be written."""
    raise NotImplementedError
