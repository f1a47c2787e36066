"""`rag eval compare`."""

from __future__ import annotations


def compare() -> None:
    """To be written."""
    raise NotImplementedError
