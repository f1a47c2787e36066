"""What a line of results must look like to be measured; the fields are those of `eval.items`."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from rag.text import visible


class _Shape(BaseModel):
    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class _Citation(_Shape):
    paper_id: str
    quote: str
    support: float


class _Statement(_Shape):
    text: str
    supported: bool
    citations: list[_Citation]


class _Usage(_Shape):
    prompt_tokens: int
    completion_tokens: int


class _Answer(_Shape):
    answered: bool
    confidence: float
    text: str
    statements: list[_Statement]
    usage: _Usage
    seconds: dict[str, float]


class _Verdict(_Shape):
    all: bool
    each: list[bool]
    without: list[bool]


class _Found(_Shape):
    rank: int
    paper_id: str
    title: str
    score: float


class _Line(_Shape):
    id: str
    attempt: int
    cached: bool
    answer: _Answer | None
    notes: list[str]
    retrieved: list[_Found]
    entailment: list[_Verdict]
    unknown_ids: list[str]
    error: str | None


def fault(line: Any) -> str | None:
    """What is wrong with a line of results, as in "answer.confidence: ..."; None if nothing is."""
    try:
        _Line.model_validate(line)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or "the line"
        return visible(f"{place}: {first['msg']}")
    if (line["answer"] is None) == (line["error"] is None):
        return "it has neither or both of answer and error"
    return None
