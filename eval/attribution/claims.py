"""Claims with the text that they cite, and what `rag.verify` says of them.

A file has one claim a line, as JSON, in one of two forms:

    {"claim": str, "references": [str], "label": "attributable" | "not attributable",
     "source": str (optional)}
    {"claim": str, "paper_id": str, "label": "SUPPORT" | "CONTRADICT" | "NOT_ENOUGH_INFO"}

The first brings the cited text; markers such as "[2]" are taken out of it and of the claim. The
second names a paper of a corpus, which anything that `rag ingest` reads can be.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from eval.lines import parse_lines, read_lines
from rag.errors import ReadError
from rag.facts import missing
from rag.papers import to_paper
from rag.polarity import polarity_differs
from rag.readers import find_files, read
from rag.text import clean
from rag.types import Paper, Record, Statement
from rag.verify import SUPPORTED, Verifier

Label = Literal["supported", "contradicted", "absent", "unsupported"]
# "unsupported" where a file does not tell contradiction from absence.
LABELS: Mapping[str, Label] = {
    "attributable": "supported",
    "not attributable": "unsupported",
    "SUPPORT": "supported",
    "CONTRADICT": "contradicted",
    "NOT_ENOUGH_INFO": "absent",
}

# Longest cited text, in characters: some sources quote whole pages, and papers' abstracts are not.
LONGEST = 12_000

_MARKER = re.compile(r"\[\d+\]")


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim, the paper-like text that it cites, and whether that text supports it."""

    source: str
    text: str
    paper: Paper
    label: Label

    @property
    def supported(self) -> bool:
        """Whether the label says so."""
        return self.label == "supported"


@dataclass(frozen=True, slots=True)
class Claims:
    """A file of claims: those to judge, bad lines with their numbers, and how many lack text."""

    claims: tuple[Claim, ...]
    malformed: tuple[tuple[int, str], ...]
    without_text: int


@dataclass(frozen=True, slots=True)
class Judged:
    """A claim with the verifier's verdict, and a score that ranks claims as the verdict does.

    `score` is the support (0..1); 1 less where a gate rejects the claim, so that it ranks below
    all that pass the gates: a number or name that the text lacks, or a denial of what it affirms.
    """

    claim: Claim
    supported: bool
    score: float


def read_claims(path: Path, corpus: Mapping[str, Paper] | None = None) -> Claims:
    """The claims of a file; `corpus` has the papers that they name, by ID.

    Raises:
        ReadError: the file cannot be read.
    """
    rows, bad = parse_lines(read_lines(path), lambda line: _claim(line, path.stem, corpus))
    claims = tuple(row for row in rows if row is not None)
    return Claims(claims, tuple(bad), len(rows) - len(claims))


def read_corpus(paths: Sequence[Path]) -> dict[str, Paper]:
    """Papers by ID, as `rag ingest` would make them.

    Raises:
        ReadError: a file cannot be read, or none of its records is a paper.
    """
    records = [record for file, name in find_files(paths) for record in read(file, name)]
    made = [to_paper(record) for record in records if isinstance(record, Record)]
    papers = {paper.id: paper for paper in made if isinstance(paper, Paper)}
    if not papers:
        raise ReadError(f"No paper was found in {', '.join(map(str, paths))}. Check --corpus.")
    return papers


def judge(
    claims: Sequence[Claim], verifier: Verifier, on_progress: Callable[[int, int | None], None]
) -> list[Judged]:
    """Each claim as `rag.verify` judges a statement that cites one paper."""
    judged = []
    for done, claim in enumerate(claims, start=1):
        statement = verifier.check(claim.text, [claim.paper])
        judged.append(Judged(claim, statement.supported, _score(statement, claim.paper)))
        on_progress(done, len(claims))
    return judged


def _score(statement: Statement, paper: Paper) -> float:
    citation = statement.citations[0]
    if statement.supported:
        return citation.support
    # Below the threshold the verdict does not show whether a gate would have rejected it too.
    rejected = (
        citation.support >= SUPPORTED
        or bool(missing(statement.text, f"{paper.title}. {paper.text}"))
        or polarity_differs(statement.text, citation.quote)
    )
    return citation.support - rejected


def _claim(line: str, file: str, corpus: Mapping[str, Paper] | None) -> Claim | None:
    """None where the claim or what it cites has no text: there is nothing to weigh."""
    raw = _object(line)
    label = LABELS.get(raw["label"]) if isinstance(raw.get("label"), str) else None
    if label is None:
        raise ValueError(f'its "label" is none of {", ".join(LABELS)}')
    text = raw.get("claim")
    if not isinstance(text, str) or not text.strip():
        raise ValueError('it has no "claim"')
    source = raw.get("source")
    source = source if isinstance(source, str) and source.strip() else file
    if "references" in raw:
        paper, text = _cited(raw["references"]), _MARKER.sub("", text)
    else:
        paper = _named(raw.get("paper_id"), corpus)
    text = clean(text)
    return Claim(source, text, paper, label) if text and paper.text else None


def _object(line: str) -> dict[str, Any]:
    try:
        raw = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError("it is not JSON") from error
    if not isinstance(raw, dict):
        raise ValueError("it is not an object {...}")
    return raw


def _cited(references: object) -> Paper:
    if not isinstance(references, list) or not all(isinstance(r, str) for r in references):
        raise ValueError('its "references" are not a list of texts')
    text = clean(" ".join(_MARKER.sub("", reference) for reference in references))[:LONGEST]
    return Paper("cited", "", text, text, ())


def _named(paper_id: object, corpus: Mapping[str, Paper] | None) -> Paper:
    if isinstance(paper_id, bool) or not isinstance(paper_id, str | int):
        raise ValueError('it has neither "references" nor a "paper_id"')
    if corpus is None:
        raise ValueError(f"paper {str(paper_id)!r} is to be found in --corpus, which is not given")
    if str(paper_id) not in corpus:
        raise ValueError(f"paper {str(paper_id)!r} is not in the corpus")
    return corpus[str(paper_id)]
