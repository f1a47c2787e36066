"""Which paper a record is: a known one, a new version of one, a new one, or two under one ID."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from rag.ingest.known import Known, Reading
from rag.ingest.summary import Conflict
from rag.matching import (
    SAME_TEXT,
    is_near_identical,
    is_update_of,
    jaccard,
    may_share_identifier,
    merged,
)
from rag.papers import content_hash, derive_id
from rag.types import Paper

# Characters of a derived ID where no other paper has the same, as in `derive_id`.
SHORTEST_ID = 7


def resolve(reading: Reading, known: Known) -> tuple[str, Conflict | None]:
    """Decide what a record is, and stage what follows from it.

    The outcome is "added", "updated", "unchanged" or "duplicates", as a summary counts it.
    """
    stored, rewrites = known.by_text(reading), False
    if stored is None:
        stored, rewrites = _same_paper(reading, known)
    claim = _claim(reading, stored, known)
    if stored is None:
        stored, outcome = _add(reading, known), "added"
    elif rewrites:
        outcome = _rewrite(stored, reading, known)
    else:
        outcome = _seen_again(stored, reading, known)
    known.note(stored.id, reading)
    if claim is None:
        return outcome, None
    what, other = claim
    record = reading.record
    return outcome, Conflict(
        what, stored.id, record.source, record.line, other.id, other.sources[0]
    )


def _same_paper(reading: Reading, known: Known) -> tuple[Paper | None, bool]:
    """The paper that another text is of, and whether the text takes the place of the stored one.

    It does where the ID is the same, or where the same file had the paper before; another source's
    slightly different text of a paper is only one more place where it is found.
    """
    paper = reading.paper
    if reading.own_id:
        bearers = _claimants("id", paper.id, reading, known)
        for bearer in sorted(bearers, key=lambda b: -jaccard(b.text, paper.text)):
            standing = known.standing(bearer.id, reading)
            if standing.met:
                # Both are listed now, so neither is an older version of the other.
                if jaccard(bearer.text, paper.text) >= SAME_TEXT:
                    return bearer, False
            elif is_update_of(bearer, paper, same_source=standing.before > 0):
                return bearer, True
    for candidate in _candidates(reading, known):
        standing = known.standing(candidate.id, reading)
        return candidate, standing.before > 0 and not standing.met
    return None, False


def _candidates(reading: Reading, known: Known) -> list[Paper]:
    """Papers that a record without their ID is: by an identifier, then by title and abstract."""
    found = [
        candidate
        for name, value in _identifiers(reading)
        for candidate in _claimants(name, value, reading, known)
        if may_share_identifier(candidate, reading.paper)
    ]
    if found:
        return found
    alike = _apart(known.alike(reading.paper), reading, known)
    return [paper for paper in alike if is_near_identical(paper, reading.paper)]


def _claimants(name: str, value: str, reading: Reading, known: Known) -> list[Paper]:
    return _apart(known.claimants(name, value), reading, known)


def _apart(papers: list[Paper], reading: Reading, known: Known) -> list[Paper]:
    """Those that the record can be: an export tells its own papers apart by their IDs."""
    if not reading.is_exported:
        return papers
    own = reading.paper.id
    return [paper for paper in papers if paper.id == own or not known.was_taken_over(paper.id)]


def _identifiers(reading: Reading) -> list[tuple[str, str]]:
    named = (("doi", reading.identifiers.doi), ("arxiv", reading.identifiers.arxiv))
    return [(name, value) for name, value in named if value is not None]


def _claim(reading: Reading, stored: Paper | None, known: Known) -> tuple[str, Paper] | None:
    """What the record bears that was first another paper's, and that paper.

    The same whenever the record is read, so that a report does not depend on what was known.
    """
    borne = [("id", reading.paper.id)] if reading.own_id else []
    for name, value in [*borne, *_identifiers(reading)]:
        claimants = _claimants(name, value, reading, known)
        owners = _without_copies(value, claimants) if name == "id" else claimants
        first = next(iter(owners), None)
        if first is not None and (stored is None or first.id != stored.id):
            label = {"id": "ID", "doi": "DOI", "arxiv": "arXiv ID"}[name]
            return f"{label} {value}", first
    return None


def _without_copies(paper_id: str, claimants: list[Paper]) -> list[Paper]:
    """The papers to which an ID belongs: not those kept under another since it was taken."""
    start = f"{paper_id}~"
    return [
        paper
        for paper in claimants
        if not (paper.id.startswith(start) and paper.id.removeprefix(start).isdecimal())
    ]


def _add(reading: Reading, known: Known) -> Paper:
    paper = reading.paper
    id_is_taken = _without_copies(paper.id, _claimants("id", paper.id, reading, known))
    if not reading.own_id:
        paper = _with_longer_id(paper, known)
    elif id_is_taken:
        free = (f"{paper.id}~{number}" for number in count(2))
        paper = replace(paper, id=next(i for i in free if not known.claimants("id", i)))
    known.stage(paper, reading.digest, embed=True)
    return paper


def _rewrite(stored: Paper, reading: Reading, known: Known) -> str:
    paper = reading.paper
    result = merged(stored, paper, leads=True)
    result = replace(result, text=paper.text, original=paper.original)
    known.stage(result, reading.digest, embed=True)
    return "updated"


def _seen_again(stored: Paper, reading: Reading, known: Known) -> str:
    standing = known.standing(stored.id, reading)
    # The first place of a paper speaks for it; others add what it leaves open. Otherwise two
    # lists with different metadata would overwrite each other at every run.
    if reading.is_exported:
        leads = stored.sources[0] in reading.paper.sources
        is_new_place = known.lacks_place(stored.id, reading)
    else:
        leads = stored.sources[0].file == reading.file and standing.now == 0
        is_new_place = standing.now + 1 > standing.before
    result = merged(stored, reading.paper, leads=leads)
    changed = result != stored
    if changed:
        known.stage(result, content_hash(stored.text), embed=result.title != stored.title)
    if is_new_place:
        return "duplicates"
    return "updated" if changed else "unchanged"


def _with_longer_id(paper: Paper, known: Known) -> Paper:
    for length in count(SHORTEST_ID + 1):
        if known.by_id(paper.id) is None:
            break
        paper = replace(paper, id=derive_id(paper.text, length))
    return paper
