"""The one exception hierarchy: a message says what happened, where, and what to do.

The command line catches `RagError` once, prints its message and exits with `exit_code`.
"""

from __future__ import annotations


class RagError(Exception):
    """Base of every error that this package raises on purpose."""

    exit_code = 1


class ConfigError(RagError):
    """A setting is unknown, malformed or contradicts another."""

    exit_code = 2


class UsageError(RagError):
    """The question or argument given cannot be worked with."""

    exit_code = 2


class ReadError(RagError):
    """A source file could not be read at all."""


class StoreError(RagError):
    """The store is missing, in use, damaged or was built by something else."""


class ModelError(RagError):
    """A bundled or configured model is missing, damaged or cannot be started."""


class EndpointError(RagError):
    """An endpoint did not answer, refused, or answered what cannot be used."""


class EndpointDownError(EndpointError):
    """An endpoint serves no request at all: wrong address, key or model, or no quota left."""


class BatchError(RagError):
    """A file of results cannot be read, written, or continued by this run."""
