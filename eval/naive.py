"""The baseline: four whole abstracts in the prompt, one reply under a schema, no checks."""

from __future__ import annotations

import json
import time
from typing import Any

from rag import prompts
from rag.llm import ChatModel
from rag.retrieve import Retriever
from rag.types import Answer, Citation, Statement

PAPERS = 4
MAX_TOKENS = 320


def answer(question: str, retriever: Retriever, model: ChatModel) -> Answer:
    """Answer the way the simplest assistant would; its citations are whatever the model names."""
    started = time.perf_counter()
    papers = [hit.paper for hit in retriever.retrieve(question, PAPERS).hits]
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
        question, bool(answered), 1.0, statements, tuple(papers), model.name, reply.usage, seconds
    )


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
