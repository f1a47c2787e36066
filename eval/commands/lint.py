"""`rag eval lint`."""

from __future__ import annotations


def lint() -> None:
    """To be written."""
    raise NotImplementedError
