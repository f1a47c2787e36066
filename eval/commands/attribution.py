"""`rag eval attribution`."""

from __future__ import annotations


def attribution() -> None:
    """To be written."""
    raise NotImplementedError
