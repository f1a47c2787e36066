"""The command line: options to settings, the library's data to the screen, errors to exit codes."""

from rag.cli.entry import main

__all__ = ["main"]
