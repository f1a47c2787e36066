"""Responses as a Markdown document, in the order of the reviews, ending with a bibliography."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rag import markup
from rag.bibliography import reference
from rag.markup import escaped, marker
from rag.render import NOT_ANSWERED
from rag.response.concerns import Concern
from rag.response.outcome import FileResponse, Response, Status
from rag.types import Paper

# How a document begins; a digest of the rest follows.
MARK = "<!-- citewise response"

_CHECK = (
    "A draft. Every statement cites the paper and the sentence that it rests on: read them before "
    "you send it."
)


def markdown(
    files: Sequence[FileResponse], papers: Mapping[str, Paper], about: Paper | None = None
) -> str:
    """The document; `papers` are those that the responses name, by ID. No markup in it but ours.

    A statement of another paper than the one under review, `about`, begins with that paper's title.
    """
    parts: list[str] = []
    for file in files:
        parts += _file(file, papers, about)
    responses = [response for file in files for response in file.responses]
    cited = dict.fromkeys(i for response in responses for i in response.cited_ids())
    close = dict.fromkeys(i for r in responses for i in r.close_ids() if i not in cited)
    parts += markup.bibliography(papers[i] for i in cited if i in papers)
    if close:
        parts.append("## Closest papers, not cited")
        lines = ((i, escaped(reference(papers[i]), links=True)) for i in close if i in papers)
        parts.append("\n".join(f"- {marker(i)} {line}" for i, line in lines))
    body = "\n\n".join(parts) + "\n"
    return f"{_mark(body)}\n\n{body}"


def is_unedited(text: str) -> bool:
    """Whether this is a document as it was written here: one may take its place."""
    first, _, body = text.partition("\n\n")
    return first == _mark(body)


def _mark(body: str) -> str:
    return f"{MARK} {hashlib.sha256(body.encode('utf-8', 'replace')).hexdigest()[:16]} -->"


def counted(responses: Sequence[Response]) -> str:
    """`7 items: 2 answered, 5 for the authors`."""
    counts = Counter(response.status for response in responses)
    told = ", ".join(f"{counts[status]} {status.value}" for status in Status if counts[status])
    return f"{len(responses)} item{'s' * (len(responses) != 1)}: {told or 'none'}"


def _file(file: FileResponse, papers: Mapping[str, Paper], about: Paper | None) -> Iterator[str]:
    yield f"# Response to {escaped(Path(file.file.name).name)}"
    if about is not None:
        yield f"Paper under review: {escaped(about.title)} {marker(about.id)}"
    if not file.responses:
        yield "This review asks nothing: no question and no concern was found in it."
        return
    yield f"{counted(file.responses)}. *{_CHECK}*"
    reviewer = 0
    for response in file.responses:
        concern = response.concern
        if len(file.file.reviews) > 1 and concern.reviewer != reviewer:
            reviewer = concern.reviewer
            name = file.file.reviews[reviewer - 1].id
            yield f"## Review {reviewer}" + (f" ({escaped(name)})" if name else "")
        if response.status is not Status.OPEN:
            yield from _response(response, papers, about)
    left = [str(r.concern.item) for r in file.responses if r.status is Status.OPEN]
    if left:
        yield f"*Not worked on yet: {', '.join(left)}.*"


def _response(
    response: Response, papers: Mapping[str, Paper], about: Paper | None
) -> Iterator[str]:
    concern, line = response.concern, response.line or {}
    yield f"### {concern.item}\\. {_place(concern)}"
    yield "\n".join(f"> {escaped(row)}".rstrip() for row in concern.text.strip().splitlines())
    match response.status:
        case Status.FAILED:
            yield f"**Failed:** {escaped(line['error'])}"
        case Status.ANSWERED:
            yield from _answer(line["answer"], papers, about)
        case Status.AUTHORS:
            yield f"**For the authors.** {escaped(concern.kind.reason)}"
        case _:
            yield f"**{NOT_ANSWERED}**"
    yield from _closest(line.get("closest", ()))


def _place(concern: Concern) -> str:
    name = concern.section or "review"
    section = escaped(name[:1].upper() + name[1:])
    return f"{section}, {escaped(concern.number)}" if concern.number else section


def _answer(
    answer: Mapping[str, Any], papers: Mapping[str, Paper], about: Paper | None
) -> Iterator[str]:
    statements = answer["statements"]
    quotes: dict[tuple[str, str], list[str]] = {}
    for said in statements:
        cited = [citation["paper_id"] for citation in said["citations"]]
        shown = markup.statement(said["text"], cited, supported=said["supported"])
        yield _whose(cited, papers, about) + shown
        for citation in said["citations"]:
            place = (citation["paper_id"], citation["quote"])
            quotes.setdefault(place, []).append(said["text"])
    for (paper_id, quote), texts in quotes.items():
        yield f"> {markup.quoted(quote, texts)} {marker(paper_id)}"
    own_words = all(said["text"] == c["quote"] for said in statements for c in said["citations"])
    how = "Answered in the papers' own words" if own_words else "Answered from the papers"
    yield f"**{how}**, confidence {answer['confidence']:.2f}."


def _whose(cited: Sequence[str], papers: Mapping[str, Paper], about: Paper | None) -> str:
    """The title of another paper than the one under review: "we" in a quote is not its authors."""
    only = papers.get(cited[0]) if len(set(cited)) == 1 else None
    if only is None or (about is not None and only.id == about.id):
        return ""
    return f"*{escaped(only.title)}*: "


def _closest(papers: Sequence[Mapping[str, str]]) -> Iterator[str]:
    if papers:
        rows = (
            f"- {escaped(paper['title'])} {marker(paper['paper_id'])}. {escaped(paper['why'])}"
            for paper in papers
        )
        yield "Closest papers:\n\n" + "\n".join(rows)
