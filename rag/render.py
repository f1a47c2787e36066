"""Results to JSON and to text; the library returns data, this shows it.

Whatever comes from papers or from a model is printed as it stands: never as markup, and without
control characters.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rag.highlight import quotes, supporting
from rag.text import visible
from rag.types import Answer, Hit, Paper, Source, Statement

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from rag.doctor import Diagnosis
    from rag.ingest import IngestSummary

NOT_ANSWERED = "The papers do not answer this."
UNSUPPORTED = "(not supported by the paper it cites)"


def to_json(value: Any, *, ascii_only: bool = False) -> str:
    """JSON as every command prints it: two spaces, keys in the documented order.

    Text is exact; what cannot be seen in it, such as a terminal sequence, is written as an escape.
    """
    text = json.dumps(value, ensure_ascii=ascii_only, indent=2)
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def sources_json(sources: Iterable[Source]) -> list[dict[str, Any]]:
    """`[{"file", "position"}]`."""
    return [{"file": source.file, "position": source.position} for source in sources]


def ingest_json(summary: IngestSummary) -> dict[str, Any]:
    """The contract of `rag ingest --json`."""
    return {
        "added": summary.added,
        "updated": summary.updated,
        "unchanged": summary.unchanged,
        "duplicates": summary.duplicates,
        "removed": summary.removed,
        "rejected": [
            {"source": r.source, "position": r.position, "line": r.line, "reason": r.reason}
            for r in summary.rejected
        ],
        "conflicts": [
            {
                "paper_id": c.paper_id,
                "source": c.source.file,
                "position": c.source.position,
                "line": c.line,
                "other_id": c.other_id,
                "other": {"file": c.other.file, "position": c.other.position},
                "reason": c.reason,
            }
            for c in summary.conflicts
        ],
        "papers": summary.papers,
        "chunks": summary.chunks,
    }


def hits_json(hits: Sequence[Hit]) -> list[dict[str, Any]]:
    """The contract of `rag search --json`."""
    return [
        {
            "paper_id": hit.paper.id,
            "title": hit.paper.title,
            "score": round(hit.score, 6),
            "sources": sources_json(hit.paper.sources),
            "evidence": [{"text": e.text, "start": e.start, "end": e.end} for e in hit.evidence],
        }
        for hit in hits
    ]


def paper_json(paper: Paper, *, whole: bool = True) -> dict[str, Any]:
    """A paper; with `whole` its text and the abstract as the source had it."""
    text = {"text": paper.text, "original": paper.original} if whole else {}
    return {
        "paper_id": paper.id,
        "title": paper.title,
        "title_derived": paper.title_derived,
        **text,
        "sources": sources_json(paper.sources),
        "metadata": dict(paper.metadata),
    }


def answer_json(answer: Answer) -> dict[str, Any]:
    """The contract of `rag ask --json`."""
    return {
        "question": answer.question,
        "answered": answer.answered,
        "confidence": answer.confidence,
        "text": answer_text(answer),
        "statements": [statement_json(statement) for statement in answer.statements],
        "papers": [
            {"paper_id": p.id, "title": p.title, "sources": sources_json(p.sources)}
            for p in answer.papers
        ],
        "model": answer.model,
        "usage": {
            "prompt_tokens": answer.usage.prompt_tokens,
            "completion_tokens": answer.usage.completion_tokens,
        },
        "seconds": dict(answer.seconds),
    }


def statement_json(statement: Statement) -> dict[str, Any]:
    """One statement with its citations."""
    return {
        "text": statement.text,
        "supported": statement.supported,
        "citations": [
            {
                "paper_id": c.paper_id,
                "quote": c.quote,
                "start": c.start,
                "end": c.end,
                "support": c.support,
            }
            for c in statement.citations
        ],
    }


def diagnosis_json(found: Diagnosis) -> dict[str, Any]:
    """The contract of `rag doctor --json`."""
    checks = [
        {"name": c.name, "ok": c.ok, "detail": c.detail, "remedy": c.remedy} for c in found.checks
    ]
    return {"ok": found.ok, "checks": checks, "sends_to": list(found.sends_to)}


def answer_text(answer: Answer) -> str:
    """The answer as shown, with `[ID]` markers."""
    if not answer.answered:
        return NOT_ANSWERED
    return "\n".join(statement_text(statement) for statement in answer.statements)


def statement_text(statement: Statement) -> str:
    """A statement, its `[ID]` markers, and a warning where its papers do not support it."""
    marks = "".join(f" [{citation.paper_id}]" for citation in statement.citations)
    warning = "" if statement.supported else f" {UNSUPPORTED}"
    return f"{statement.text}{marks}{warning}"


class Screen:
    """Prints results for a person: coloured in a terminal, plain in a pipe."""

    def __init__(self, *, stderr: bool = False, plain: bool = False) -> None:
        """On standard output or error; with `plain` no escape code, not even in a terminal."""
        from rich.console import Console

        self.console: Console = Console(
            stderr=stderr,
            markup=False,
            highlight=False,
            emoji=False,
            soft_wrap=True,
            force_terminal=False if plain else None,
            # Rich's own NO_COLOR leaves bold and dim; https://no-color.org means none at all.
            color_system=None if os.environ.get("NO_COLOR") else "auto",
        )
        # Some terminals and shells say 0 where they do not know; Rich would then print nothing.
        if self.console.width < 1:
            self.console.width = 80

    def line(self, text: str = "", style: str | None = None, indent: int = 0) -> None:
        """One line, shown literally."""
        from rich.text import Text

        self._print(Text(visible(text), style or ""), indent)

    def _print(self, text: Text, indent: int = 0) -> None:
        """Wrapped at words in a terminal, later lines indented too; left whole in a pipe."""
        from rich.padding import Padding
        from rich.text import Text

        if self.console.is_terminal:
            self.console.print(Padding(text, (0, 0, 0, indent), expand=False), soft_wrap=False)
        else:
            self.console.print(Text(" " * indent).append_text(text))

    def statement(self, statement: Statement) -> None:
        """A statement with its citations, the moment it is checked."""
        from rich.text import Text

        line = Text(visible(statement.text))
        for citation in statement.citations:
            line.append(f" [{visible(citation.paper_id)}]", style="cyan")
        if not statement.supported:
            line.append(f" {UNSUPPORTED}", style="bold red")
        self._print(line)

    def answer_end(self, answer: Answer) -> None:
        """What follows the statements: sources with quotes, or the closest papers."""
        self.sources(answer)
        seconds = answer.seconds.get("total", 0.0)
        self.line()
        sure = f"Confidence {answer.confidence:.2f}, " if answer.answered else ""
        self.line(f"{sure}{seconds:.1f} s, {answer.model}", "dim")

    def sources(self, answer: Answer) -> None:
        """The papers cited with the quotes that the answer rests on, or the closest papers."""
        if not answer.answered:
            self._closest(answer.papers[:3])
            return
        self.line()
        self.line("Sources", "bold")
        papers = {paper.id: paper for paper in answer.papers}
        for paper_id, said in quotes(answer).items():
            if paper_id in papers:
                self.paper_line(papers[paper_id])
            for quote, statements in said.items():
                self.quote(quote, statements)

    def quote(self, quote: str, statements: Sequence[str]) -> None:
        """A quoted sentence, the words that support the statements standing out."""
        from rich.text import Text

        text = Text("“", "dim")
        done = 0
        shown = visible(quote)
        for span in supporting(shown, statements):
            text.append(shown[done : span.start], style="dim")
            text.append(shown[span.start : span.end], style="bold")
            done = span.end
        text.append(f"{shown[done:]}”", style="dim")
        self._print(text, indent=4)

    def _closest(self, papers: Sequence[Paper]) -> None:
        self.line(NOT_ANSWERED, "bold")
        if papers:
            self.line()
            self.line("Closest papers", "bold")
        for paper in papers:
            self.paper_line(paper)

    def hits(self, hits: Sequence[Hit]) -> None:
        """Search results, best first."""
        for rank, hit in enumerate(hits, start=1):
            self.paper_line(hit.paper, f"{rank:>3}. {hit.score:.3f}  ")
            for evidence in hit.evidence:
                self.line(f"“{evidence.text}”", "dim", indent=7)

    def papers(self, papers: Sequence[Paper]) -> None:
        """One aligned line for each paper."""
        from rich.cells import cell_len
        from rich.text import Text

        width = max((cell_len(visible(paper.id)) for paper in papers), default=0)
        for paper in papers:
            line = Text()
            line.append(visible(paper.id), style="cyan")
            line.append(" " * (width + 2 - line.cell_len) + visible(paper.title))
            if paper.title_derived:
                line.append(" (derived)", style="dim")
            self._print(line)

    def paper(self, paper: Paper, *, original: bool = False) -> None:
        """Everything known of one paper."""
        self.line(paper.title + (" (derived title)" if paper.title_derived else ""), "bold")
        self.line(f"ID        {paper.id}", "cyan")
        for source in paper.sources:
            self.line(f"Source    {source.file}, record {source.position}")
        for key, value in paper.metadata.items():
            shown = ", ".join(value) if isinstance(value, list) else value
            self.line(f"{key:<9} {shown}")
        self.line()
        self.line(paper.original if original else paper.text)

    def diagnosis(self, found: Diagnosis) -> None:
        """Every check with its remedy, then where anything would be sent."""
        for check in found.checks:
            mark = "ok " if check.ok else "NO "
            self.line(f"{mark} {check.name}: {check.detail}", None if check.ok else "red")
            if check.remedy:
                self.line(f"    {check.remedy}")
        sent = ", ".join(found.sends_to)
        self.line(
            f"Questions and abstracts are sent to: {sent}"
            if sent
            else "Nothing leaves this machine."
        )

    def paper_line(self, paper: Paper, before: str = "  ") -> None:
        """ID, title, and where the paper was read; in a terminal, later rows are indented."""
        from rich.text import Text

        place = ", ".join(f"{s.file}:{s.position}" for s in paper.sources)
        line = Text()
        line.append(visible(paper.id), style="cyan")
        line.append(f"  {visible(paper.title)}", style="bold")
        line.append(f"  ({visible(place)})", style="dim")
        rows = [line]
        if self.console.is_terminal:
            # At least some words a row, however narrow the terminal is.
            width = max(self.console.width - len(before) - 2, 16)
            rows = list(line.wrap(self.console, width))
            for row in rows:
                row.rstrip()
        below = Text("\n" + " " * (len(before) + 2))
        self.console.print(Text(before).append_text(below.join(rows)))
