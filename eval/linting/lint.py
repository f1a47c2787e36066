"""All checks of a question set, with or without the papers that it is about."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from eval.linting.corpus import Corpus
from eval.linting.duplicates import check_duplicates
from eval.linting.fields import check_fields
from eval.linting.findings import Entry, Finding, Report, Severity
from eval.linting.gold import check_gold
from eval.linting.lists import check_list
from eval.linting.patterns import check_patterns
from eval.questions.datasets import QuestionSet, read_questions
from rag.types import Paper

NO_CORPUS = (
    "Without a store, gold and what patterns find in it were not checked: rag eval lint "
    "QUESTIONS --store DIR"
)
NO_RAPIDFUZZ = (
    "Questions that are nearly the same were not looked for: pip install 'citewise[eval]'"
)

# Called with how many questions are checked, and of how many.
Advance = Callable[[int, int], None]


def lint(
    path: Path,
    papers: Sequence[Paper] | None = None,
    by_record_id: Callable[[str], Paper | None] = lambda _: None,
    advance: Advance = lambda *_: None,
) -> Report:
    """Check a question set; `papers` are those of the store, None where there is none.

    Raises:
        ReadError, UsageError: the file cannot be read, or holds no question.
    """
    asked = read_questions(path)
    entries = [
        Entry(line, question) for line, question in zip(asked.lines, asked.questions, strict=True)
    ]
    notes = [NO_CORPUS] if papers is None else []
    findings = list(_unread(asked))
    try:
        findings += check_duplicates(entries)
    except ImportError:
        notes.append(NO_RAPIDFUZZ)
    corpus = Corpus(papers, by_record_id) if papers is not None else None
    for n, entry in enumerate(entries, start=1):
        findings += _checked(entry, corpus)
        advance(n, len(entries))
    findings.sort(key=lambda f: (f.line, f.severity, f.rule))
    return Report(len(entries), tuple(findings), tuple(notes))


def _checked(entry: Entry, corpus: Corpus | None) -> Iterator[Finding]:
    if corpus is not None:
        entry = corpus.with_papers(entry)
        yield from check_gold(entry, corpus)
    yield from check_fields(entry)
    yield from check_patterns(entry)
    if corpus is not None:
        yield from check_list(entry, corpus)


def _unread(asked: QuestionSet) -> Iterator[Finding]:
    """What the reader says: lost lines, fields and kinds that it does not know."""
    ids = dict(zip(asked.lines, (question.id for question in asked.questions), strict=True))
    for problem in asked.problems:
        yield Finding(
            problem.line,
            ids.get(problem.line, ""),
            Severity.ERROR if problem.lost else Severity.WARNING,
            "unreadable" if problem.lost else "unknown",
            f"{problem.message}. Correct or remove it.",
        )
