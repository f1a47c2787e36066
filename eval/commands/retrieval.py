"""`rag eval retrieval`."""

from __future__ import annotations


def retrieval() -> None:
    """To be written."""
    raise NotImplementedError
