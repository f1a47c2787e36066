"""`rag eval report`."""

from __future__ import annotations


def report() -> None:
    """To be written."""
    raise NotImplementedError
