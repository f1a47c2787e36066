"""Text as Markdown that shows it as it stands, and what all our documents have in common."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rag.bibliography import bibtex, reference
from rag.highlight import supporting
from rag.render import UNSUPPORTED
from rag.text import visible
from rag.types import Paper, Source

# What Markdown and HTML would read as markup, wherever it stands, and at the beginning of a line.
_SPECIAL = re.compile(r"[\\`*_{}\[\]<>#|~&$!^]")
# What some readers of Markdown make a link of.
_ADDRESS = re.compile(r"\b(https?|ftp|www)(://|\.)", re.IGNORECASE)
_BEGINNING = re.compile(r"\A(\d{0,9})([-+=:.)])")


def inline(text: str, *, links: bool = False) -> str:
    r"""Text within a line: `*a* <b>` -> `\*a\* \<b\>`; addresses become no links unless wanted."""
    shown = _SPECIAL.sub(r"\\\g<0>", visible(text))
    return shown if links else _ADDRESS.sub(r"\1\\\2", shown)


def escaped(text: str, *, links: bool = False) -> str:
    r"""Text that begins a line, of whatever white space one space: `1. a` -> `1\. a`."""
    return _BEGINNING.sub(r"\1\\\2", inline(" ".join(text.split()), links=links))


def marker(paper_id: str) -> str:
    """A citation: `[ID]`, not to be read as a link."""
    return f"\\[{escaped(paper_id)}\\]"


def statement(text: str, cited: Iterable[str], *, supported: bool) -> str:
    """A statement with its citations, and a warning where the papers do not support it."""
    marks = "".join(f" {marker(paper_id)}" for paper_id in cited)
    warning = "" if supported else f" **{escaped(UNSUPPORTED)}**"
    return f"{escaped(text)}{marks}{warning}"


def quoted(quote: str, statements: Sequence[str]) -> str:
    """The quote, the words that support the statements in bold; none where all of it does."""
    text, done = "", 0
    shown = visible(quote)
    if quote in statements:
        return f"“{inline(shown)}”"
    for span in supporting(shown, statements):
        text += inline(shown[done : span.start]) + f"**{inline(shown[span.start : span.end])}**"
        done = span.end
    return f"“{text}{inline(shown[done:])}”"


def bibliography(papers: Iterable[Paper]) -> list[str]:
    """Paragraphs: each paper once, with where it was read, then BibTeX where it is known."""
    distinct = {paper.id: paper for paper in papers}
    if not distinct:
        return []
    lines = [
        f"- {marker(paper.id)} {escaped(reference(paper), links=True)} "
        f"({escaped(', '.join(_place(source) for source in paper.sources))})"
        for paper in distinct.values()
    ]
    entries = [entry for paper in distinct.values() if (entry := bibtex(paper))]
    parts = ["## Bibliography", "\n".join(lines)]
    if entries:
        fence = "`" * (3 + max(len(run) for run in re.findall(r"`*", "\n".join(entries))))
        parts.append(f"{fence}bibtex\n" + "\n\n".join(entries) + f"\n{fence}")
    return parts


def _place(source: Source) -> str:
    return f"{source.file}, record {source.position}"
