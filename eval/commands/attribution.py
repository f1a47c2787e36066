"""`rag eval attribution`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rag.cli.options import JsonOption, print_json

if TYPE_CHECKING:
    from eval.attribution.claims import Claims

# Bad lines that are named; the rest are counted.
NAMED = 10


def attribution(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE.jsonl",
            help='Claims: {"claim", "references", "label"}, or {"claim", "paper_id", "label"}.',
        ),
    ],
    corpus: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="PATH", help="Papers that claims name by ID: whatever `rag ingest` reads."
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Measure how well the verifier tells supported claims from unsupported ones.

    Claims are judged as the statements of an answer are: numbers and names, negation, support.
    Exits with 1 when lines were malformed; they are named, and the others are judged.
    """
    from eval.attribution.claims import judge, read_claims, read_corpus
    from eval.attribution.report import FITTED, agreements, lines, to_json
    from rag.config import load_settings
    from rag.embed import open_embedder
    from rag.errors import ReadError
    from rag.passages import Passages
    from rag.progress import counter
    from rag.render import Screen
    from rag.verify import Verifier

    claims = read_claims(file, read_corpus(corpus) if corpus else None)
    _tell(file, claims)
    if not claims.claims:
        raise ReadError(f"{file} holds no claim that can be judged. Give one a line, as JSON.")
    verifier = Verifier(Passages(open_embedder(load_settings())))
    with counter("Judging", "claims") as advance:
        found = agreements(judge(claims.claims, verifier, advance))
    if json:
        outcome = {"malformed": len(claims.malformed), "without_text": claims.without_text}
        print_json({**outcome, "sources": to_json(found), "note": FITTED})
    else:
        screen = Screen()
        for line in lines(found):
            screen.line(line)
    if claims.malformed:
        raise typer.Exit(1)


def _tell(file: Path, claims: Claims) -> None:
    from rag.render import Screen

    messages = Screen(stderr=True)
    for number, why in claims.malformed[:NAMED]:
        messages.line(f"{file}, line {number}: {why}", "yellow")
    if claims.malformed:
        messages.line(f"Malformed lines, left out: {len(claims.malformed):,}.", "yellow")
    if claims.without_text:
        messages.line(
            f"Claims that are empty or cite no text, left out: {claims.without_text:,}. An answer "
            "never shows such a statement as supported."
        )
