"""What an error means for a run: a line of the item that met it, or the end of the run."""

from __future__ import annotations

import threading

from rag.errors import BatchError, ConfigError, EndpointDownError, RagError, StoreError

# They would strike every further item just so.
_STOPS_ALL = (BatchError, ConfigError, EndpointDownError, StoreError)

_mutex = threading.Lock()
_recorded: dict[tuple[str, str], str] = {}


def stops_all(error: BaseException) -> bool:
    """Whether no further item can do better: no store, no endpoint, wrong settings, a full disk."""
    return isinstance(error, _STOPS_ALL)


def explained(error: Exception) -> str:
    """The error as an item's line says it; of one that nobody foresaw, where its traceback is.

    The traceback of the same error is recorded once.
    """
    if isinstance(error, RagError):
        return str(error)
    from rag.crash import record

    kind, said = type(error).__name__, " ".join(str(error).split())
    with _mutex:
        if (kind, said) not in _recorded:
            _recorded[kind, said] = record(error)
        return f"Internal error: {kind}: {said}. {_recorded[kind, said]}"
