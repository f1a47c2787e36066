"""Files and folders -> records; one module a format, chosen by content and only then by ending."""

from __future__ import annotations

from rag.readers.choice import read
from rag.readers.files import find_files, resolved
from rag.readers.stream import STDIN

__all__ = ["STDIN", "find_files", "read", "resolved"]
