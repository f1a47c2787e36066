"""`rag eval lint`."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag.cli.options import JsonOption, StoreOption, print_json, settings_for

if TYPE_CHECKING:
    from eval.linting.findings import Report


def lint(
    questions: Annotated[
        Path,
        typer.Argument(metavar="QUESTIONS", help="The question set, JSON lines.", readable=False),
    ],
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Check a question set: duplicates, gold that is not in the corpus, patterns, fields.

    Exits with 1 when there are errors; warnings are for a person to look at.
    """
    from eval.linting.findings import Severity
    from eval.linting.lint import lint as check
    from rag.config import Settings
    from rag.progress import counter
    from rag.store import open_store, store_exists

    settings = settings_for(store)
    named = settings.store != Settings().store
    with ExitStack() as held:
        advance = held.enter_context(counter("Checking", "questions"))
        if named or store_exists(settings.store):
            opened = held.enter_context(open_store(settings.store, None))
            papers = list(opened.papers())
            report = check(questions, papers, opened.catalog.by_record_id, advance)
        else:  # a set can be checked without its papers
            report = check(questions, advance=advance)
    if json:
        print_json(_json(report))
    else:
        _print(questions, report)
    if report.count(Severity.ERROR):
        raise typer.Exit(1)


def _json(report: Report) -> dict[str, Any]:
    from dataclasses import asdict

    from eval.linting.findings import Severity

    return {
        "questions": report.questions,
        "errors": report.count(Severity.ERROR),
        "warnings": report.count(Severity.WARNING),
        "notes": list(report.notes),
        "findings": [asdict(finding) for finding in report.findings],
    }


def _print(path: Path, report: Report) -> None:
    from eval.linting.findings import Severity
    from rag.render import Screen

    screen, messages = Screen(), Screen(stderr=True)
    for finding in report.findings:
        named = f"{finding.id}: " if finding.id else ""
        screen.line(
            f"{path.name}:{finding.line}: {finding.severity}: {named}{finding.message} "
            f"[{finding.rule}]",
            "red" if finding.severity is Severity.ERROR else "yellow",
        )
    for note in report.notes:
        messages.line(f"Note: {note}", "yellow")
    errors, warnings = (report.count(severity) for severity in Severity)
    messages.line(f"{report.questions} questions, {errors} errors, {warnings} warnings.")
