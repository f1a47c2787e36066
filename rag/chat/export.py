"""A conversation as Markdown: questions, cited statements with their quotes, a bibliography."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from rag import markup
from rag.chat.exchanges import Exchange
from rag.errors import RagError
from rag.highlight import quotes
from rag.markup import escaped, marker, quoted
from rag.render import NOT_ANSWERED
from rag.types import Answer

# By its first line a file is known as ours, and may be written over.
_MARK = "<!-- citewise conversation -->"


def markdown(name: str, exchanges: Sequence[Exchange]) -> str:
    """The whole conversation; nothing in it is markup but ours."""
    parts = [_MARK, f"# {escaped(f'Conversation {name}' if name else 'Conversation')}"]
    for number, exchange in enumerate(exchanges, start=1):
        parts += _exchange(number, exchange)
    papers = (paper for exchange in exchanges for paper in exchange.shown_papers())
    parts += markup.bibliography(papers)
    return "\n\n".join(parts) + "\n"


def save(path: Path, text: str, command: str) -> None:
    """Write an export, whole or not at all; over another file only if that is an export too.

    `command` is how to do it again, for what is said where it fails.

    Raises:
        RagError: the file is something else, or cannot be written.
    """
    beside: Path | None = None
    try:
        path = path.expanduser()
        if path.is_symlink():  # what it leads to is written, and the link left
            path = path.resolve()
        if path.exists() and not _is_export(path):
            raise RagError(f"{path} is another file. Choose a new name: {command}")
        beside = path.with_name(f".citewise-{os.getpid()}.unfinished")
        # Half surrogate pairs can be typed.
        beside.write_bytes(text.encode("utf-8", "replace"))
        beside.replace(path)
    except (OSError, ValueError, RuntimeError) as error:  # ~nobody: RuntimeError
        if beside is not None:
            with suppress(OSError):
                beside.unlink()
        reason = str((error.strerror if isinstance(error, OSError) else None) or error).rstrip(".")
        raise RagError(f"{path} cannot be written: {reason}. Choose another: {command}") from error


def _is_export(path: Path) -> bool:
    """Whether it is a file of ours; a pipe or a device is not even opened.

    Raises:
        OSError: it is a directory, or cannot be read.
    """
    if not (path.is_file() or path.is_dir()):
        return False
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.readline(200).rstrip("\n") == _MARK


def _exchange(number: int, exchange: Exchange) -> list[str]:
    parts = [f"## {number}\\. {escaped(exchange.question)}"]
    answer = exchange.answer
    if answer is not None and answer.asked:
        parts.append(f"*Understood as: {escaped(answer.asked)}*")
    if exchange.condition:
        parts.append(f"*Filter: {escaped(exchange.condition)}*")
    if exchange.error:
        parts.append(f"*No answer: {escaped(exchange.error)}*")
    elif answer is not None:
        parts += _answer(answer, stopped=exchange.stopped)
    if exchange.unfinished.strip():
        parts.append(f"{escaped(exchange.unfinished.strip())} … *(not finished, not checked)*")
    if exchange.stopped:
        parts.append(f"*{exchange.halt}*")
    return parts


def _answer(answer: Answer, *, stopped: bool) -> list[str]:
    parts = [
        markup.statement(s.text, (c.paper_id for c in s.citations), supported=s.supported)
        for s in answer.statements
    ]
    for paper_id, said in quotes(answer).items():
        parts += [
            f"> {quoted(quote, statements)} {marker(paper_id)}"
            for quote, statements in said.items()
        ]
    if not answer.answered and not stopped:
        closest = ", ".join(marker(paper.id) for paper in answer.papers[:3])
        parts.append(f"{NOT_ANSWERED}" + (f" Closest papers: {closest}" if closest else ""))
    return parts
