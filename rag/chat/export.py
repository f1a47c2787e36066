"""A conversation as Markdown: questions, cited statements with their quotes, a bibliography."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from rag.bibliography import bibtex, reference
from rag.chat.exchanges import Exchange
from rag.errors import RagError
from rag.highlight import quotes, supporting
from rag.render import NOT_ANSWERED, UNSUPPORTED
from rag.text import visible
from rag.types import Answer, Paper, Source

# By its first line a file is known as ours, and may be written over.
_MARK = "<!-- citewise conversation -->"

# What Markdown and HTML would read as markup, wherever it stands, and at the beginning of a line.
_SPECIAL = re.compile(r"[\\`*_{}\[\]<>#|~&$!]")
_BEGINNING = re.compile(r"\A(\d{0,9})([-+=:.)])")


def markdown(name: str, exchanges: Sequence[Exchange]) -> str:
    """The whole conversation; nothing in it is markup but ours."""
    parts = [_MARK, f"# {_escaped(f'Conversation {name}' if name else 'Conversation')}"]
    for number, exchange in enumerate(exchanges, start=1):
        parts += _exchange(number, exchange)
    parts += _bibliography(exchanges)
    return "\n\n".join(parts) + "\n"


def save(path: Path, text: str) -> None:
    """Write an export, whole or not at all; over another file only if that is an export too.

    Raises:
        RagError: the file is something else, or cannot be written.
    """
    path = path.expanduser()
    beside = path.with_name(f".{path.name[:200]}.{os.getpid()}.unfinished")
    try:
        if path.exists() and not _is_export(path):
            raise RagError(f"{path} is another file. Choose a new name: /save FILE")
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    except (OSError, ValueError) as error:
        beside.unlink(missing_ok=True) if "\0" not in str(beside) else None
        raise RagError(f"{path} cannot be written: {error}. Choose another: /save FILE") from error


def _is_export(path: Path) -> bool:
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.readline(200).rstrip("\n") == _MARK


def _exchange(number: int, exchange: Exchange) -> list[str]:
    question = " ".join(exchange.question.split())
    parts = [f"## {number}\\. {_escaped(question)}"]
    answer = exchange.answer
    if answer is not None and answer.asked:
        parts.append(f"*Understood as: {_escaped(answer.asked)}*")
    if exchange.condition:
        parts.append(f"*Filter: {_escaped(exchange.condition)}*")
    if exchange.error:
        parts.append(f"*No answer: {_escaped(exchange.error)}*")
    elif answer is not None:
        parts += _answer(answer, stopped=exchange.stopped)
    if exchange.stopped:
        parts.append("*Stopped before the end.*")
    return parts


def _answer(answer: Answer, *, stopped: bool) -> list[str]:
    parts = []
    for statement in answer.statements:
        marks = "".join(f" {_marker(c.paper_id)}" for c in statement.citations)
        warning = "" if statement.supported else f" **{_escaped(UNSUPPORTED)}**"
        parts.append(f"{_escaped(statement.text)}{marks}{warning}")
    for paper_id, said in quotes(answer).items():
        parts += [
            f"> {_quoted(quote, statements)} {_marker(paper_id)}"
            for quote, statements in said.items()
        ]
    if not answer.answered and not stopped:
        closest = ", ".join(_marker(paper.id) for paper in answer.papers[:3])
        parts.append(f"{NOT_ANSWERED}" + (f" Closest papers: {closest}" if closest else ""))
    return parts


def _bibliography(exchanges: Sequence[Exchange]) -> list[str]:
    papers: dict[str, Paper] = {}
    for exchange in exchanges:
        for paper in exchange.shown_papers():
            papers.setdefault(paper.id, paper)
    if not papers:
        return []
    lines = [
        f"- {_marker(paper.id)} {_escaped(reference(paper))} "
        f"({_escaped(', '.join(_place(source) for source in paper.sources))})"
        for paper in papers.values()
    ]
    entries = [entry for paper in papers.values() if (entry := bibtex(paper))]
    parts = ["## Bibliography", "\n".join(lines)]
    if entries:
        fence = "`" * (3 + max(len(run) for run in re.findall(r"`*", "\n".join(entries))))
        parts.append(f"{fence}bibtex\n" + "\n\n".join(entries) + f"\n{fence}")
    return parts


def _quoted(quote: str, statements: Sequence[str]) -> str:
    """The quote, the words that support the statements in bold."""
    text, done = "", 0
    shown = visible(quote)
    for span in supporting(shown, statements):
        text += _inline(shown[done : span.start]) + f"**{_inline(shown[span.start : span.end])}**"
        done = span.end
    return f"“{text}{_inline(shown[done:])}”"


def _marker(paper_id: str) -> str:
    return f"\\[{_escaped(paper_id)}\\]"


def _place(source: Source) -> str:
    return f"{source.file}, record {source.position}"


def _escaped(text: str) -> str:
    """Text that begins a line."""
    return _BEGINNING.sub(r"\1\\\2", _inline(text))


def _inline(text: str) -> str:
    """Text within a line."""
    return _SPECIAL.sub(r"\\\g<0>", visible(text))
