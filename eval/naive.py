"""The baseline: four whole abstracts in the prompt, one reply under a schema, no checks."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rag import prompts
from rag.llm import ChatModel
from rag.retrieve import Retriever
from rag.types import Answer, Citation, Paper, Statement
from rag.verify import Verifier

PAPERS = 4
MAX_TOKENS = 320


def answer(question: str, retriever: Retriever, model: ChatModel) -> Answer:
    """Answer the way the simplest assistant would; its citations are whatever the model names."""
    started = time.perf_counter()
    found = retriever.retrieve(question, PAPERS)
    papers = [hit.paper for hit in found.hits]
    reply = model.complete(
        [{"role": "user", "content": prompts.render("naive", papers=papers, question=question)}],
        max_tokens=MAX_TOKENS,
        schema=_schema([paper.id for paper in papers]),
    )
    try:
        value = json.loads(reply.text)
        text, cited, answered = str(value["answer"]), list(value["papers"]), value["answerable"]
    except (ValueError, KeyError, TypeError):
        text, cited, answered = reply.text, [], True
    citations = tuple(Citation(str(paper_id), "", 0, 0, 0.0) for paper_id in cited)
    seconds = {"total": time.perf_counter() - started}
    statements = (Statement(text, True, citations),) if answered else ()
    return Answer(
        question=question,
        answered=bool(answered),
        confidence=1.0,
        statements=statements,
        papers=tuple(papers),
        model=model.name,
        usage=reply.usage,
        seconds=seconds,
        retrieved=found.ranking,
    )


def judged(reply: Answer, verifier: Verifier, find: Callable[[str], Paper | None]) -> Answer:
    """The reply with the verifier's verdicts on its statements, for figures; its time is the same.

    The baseline itself checks nothing.
    """

    def supported(statement: Statement) -> bool:
        papers = [find(citation.paper_id) for citation in statement.citations]
        return verifier.check(statement.text, [paper for paper in papers if paper]).supported

    statements = tuple(replace(s, supported=supported(s)) for s in reply.statements)
    return replace(reply, statements=statements)


def _schema(ids: list[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "answerable": {"type": "boolean"},
            "answer": {"type": "string"},
            "papers": {"type": "array", "items": {"enum": ids}},
        },
        "required": ["answerable", "answer", "papers"],
        "additionalProperties": False,
    }
