"""Responses as a Markdown document, in the order of the reviews, ending with a bibliography."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rag import markup
from rag.markup import escaped, marker
from rag.render import NOT_ANSWERED
from rag.response.concerns import Concern
from rag.response.outcome import FileResponse, Response, Status
from rag.types import Paper

# By its first line a file is known as ours, and may be written over.
MARK = "<!-- citewise response -->"

_CHECK = (
    "A draft. Every statement cites the paper and the sentence that it rests on: read them before "
    "you send it."
)


def markdown(files: Sequence[FileResponse], papers: Mapping[str, Paper]) -> str:
    """The document; `papers` are those that the responses name, by ID. No markup in it but ours."""
    parts = [MARK]
    for file in files:
        parts += _file(file)
    named = (i for file in files for response in file.responses for i in response.paper_ids())
    parts += markup.bibliography(papers[i] for i in named if i in papers)
    return "\n\n".join(parts) + "\n"


def _file(file: FileResponse) -> Iterator[str]:
    yield f"# Response to {escaped(file.file.name)}"
    if not file.responses:
        yield "This review asks nothing: no question and no concern was found in it."
        return
    yield f"*{_CHECK}*"
    for response in file.responses:
        if response.status is not Status.OPEN:
            yield from _response(response)
    left = [str(r.concern.item) for r in file.responses if r.status is Status.OPEN]
    if left:
        yield f"*Not worked on yet: {', '.join(left)}.*"


def _response(response: Response) -> Iterator[str]:
    concern, line = response.concern, response.line or {}
    yield f"## {concern.item}\\. {_place(concern)}"
    yield "\n".join(f"> {escaped(row)}".rstrip() for row in concern.text.strip().splitlines())
    match response.status:
        case Status.FAILED:
            yield f"**Failed:** {escaped(line['error'])}"
        case Status.ANSWERED:
            yield from _answer(line["answer"])
        case Status.AUTHORS:
            yield f"**For the authors.** {escaped(concern.kind.reason)}"
        case _:
            yield f"**{NOT_ANSWERED}**"
    yield from _closest(line.get("closest", ()))


def _place(concern: Concern) -> str:
    section = escaped(concern.section.capitalize()) if concern.section else "Review"
    return f"{section}, {escaped(concern.number)}" if concern.number else section


def _answer(answer: Mapping[str, Any]) -> Iterator[str]:
    quotes: dict[tuple[str, str], list[str]] = {}
    for said in answer["statements"]:
        cited = [citation["paper_id"] for citation in said["citations"]]
        yield markup.statement(said["text"], cited, supported=said["supported"])
        for citation in said["citations"]:
            place = (citation["paper_id"], citation["quote"])
            quotes.setdefault(place, []).append(said["text"])
    for (paper_id, quote), statements in quotes.items():
        yield f"> {markup.quoted(quote, statements)} {marker(paper_id)}"
    yield f"**Answered from the papers**, confidence {answer['confidence']:.2f}."


def _closest(papers: Sequence[Mapping[str, str]]) -> Iterator[str]:
    if papers:
        rows = (
            f"- {escaped(paper['title'])} {marker(paper['paper_id'])}. {escaped(paper['why'])}"
            for paper in papers
        )
        yield "Closest papers:\n\n" + "\n".join(rows)
