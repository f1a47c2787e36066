"""What the lines of a run must look like to be measured and shown; see `eval.items`."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rag.text import visible


class _Shape(BaseModel):
    model_config = ConfigDict(strict=True, allow_inf_nan=False)


_Share = Annotated[float, Field(ge=0, le=1)]


class _Citation(_Shape):
    paper_id: str
    quote: str
    support: float


class _Paper(_Shape):
    paper_id: str
    title: str


class _Statement(_Shape):
    text: str
    supported: bool
    citations: list[_Citation]


class _Usage(_Shape):
    prompt_tokens: int
    completion_tokens: int


class _Answer(_Shape):
    answered: bool
    confidence: _Share
    text: str
    statements: list[_Statement]
    papers: list[_Paper]
    usage: _Usage
    seconds: dict[str, float]


class _Verdict(_Shape):
    all: bool
    each: list[bool]
    without: list[bool]


class _Found(_Paper):
    rank: int
    score: float
    dense_rank: int | None
    lexical_rank: int | None


class _Judge(_Shape):
    model: str
    support: list[_Share | None]


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
    at: str | None = None
    judge: _Judge | None = None


class _Turn(_Shape):
    question: str
    answer: str


class _Question(_Shape):
    id: str
    kind: str
    question: str
    gold: list[list[str]]
    must_include: list[str] = []
    must_not_include: list[str] = []
    history: list[_Turn] = []
    note: str = ""


def fault(line: Any) -> str | None:
    """What is wrong with a line of results, as in "answer.confidence: ..."; None if nothing is."""
    found = _fault(_Line, line)
    if found is None and (line["answer"] is None) == (line["error"] is None):
        return "it has neither or both of answer and error"
    return found


def question_fault(line: Any) -> str | None:
    """What is wrong with a line of a run's questions, as in "gold.0: ..."; None if nothing is."""
    return _fault(_Question, line)


def _fault(shape: type[_Shape], line: Any) -> str | None:
    try:
        shape.model_validate(line)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or "the line"
        return visible(f"{place}: {first['msg']}")
    return None
