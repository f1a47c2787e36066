"""Answers questions about paper abstracts; every statement cites the papers that say so."""

from rag.privacy import silence_telemetry

__version__ = "0.1.0"

# Here, since it must come before any library is loaded, whoever imports the package.
silence_telemetry()
