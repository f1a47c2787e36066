"""The command line: options to settings, the library's data to the screen, errors to exit codes."""

from __future__ import annotations


def main() -> None:
    """Run the command line and leave with its exit code."""
    # Here: the commands of `eval` import this package's options, and are imported by its app.
    from rag.cli.entry import main as run

    run()
