"""Frozen value types that the whole package shares; no behaviour beyond construction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

MetaValue = str | int | float | bool | list[str]


@dataclass(frozen=True, slots=True)
class Source:
    """Where a record was read: a file and its position among the file's records, from 1."""

    file: str
    position: int


@dataclass(frozen=True, slots=True)
class Listing:
    """Where an exported paper was read, and what it is called there.

    `content_hash`, at least 16 hexadecimal digits, stands for its text there if that differs.
    """

    source: Source
    id: str | None = None
    doi: str | None = None
    arxiv: str | None = None
    content_hash: str | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """One abstract as a reader found it; `id` and `title` where the source has them.

    `line` is where it begins in its file, from 1; 0 where the format has no lines. `listings` are
    given by our own export alone: the paper is taken over as it was, its title as it stands.
    """

    source: Source
    abstract: str
    id: str | None = None
    title: str | None = None
    metadata: Mapping[str, MetaValue] = field(default_factory=dict)
    line: int = 0
    title_derived: bool = False
    listings: tuple[Listing, ...] = ()


@dataclass(frozen=True, slots=True)
class Rejected:
    """A record (or a whole file, then `position` is 0) that did not become a paper, and why.

    `line` is where it begins in its file, from 1; 0 where that is not known. `whole` is true where
    it was read to its end and merely has no abstract; `id` is then the record's own.
    """

    source: str
    position: int
    reason: str
    line: int = 0
    whole: bool = False
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open character range `[start, end)`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Paper:
    """One abstract ready for search. `text` is what offsets, quotes and chunks refer to.

    `original` is the abstract as the source had it; `title_derived` marks a label made from it.
    """

    id: str
    title: str
    text: str
    original: str
    sources: tuple[Source, ...]
    title_derived: bool = False
    metadata: Mapping[str, MetaValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A window of whole sentences: `paper.text[start:end]` is its text."""

    paper_id: str
    index: int
    start: int
    end: int

    @property
    def id(self) -> str:
        """Identifier in the vector store, unique across papers."""
        return f"{self.paper_id}#{self.index}"


@dataclass(frozen=True, slots=True)
class Evidence:
    """A quotable part of a paper: `paper.text[start:end] == text`."""

    paper_id: str
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Hit:
    """A retrieved paper. `score` is the fused score, higher is better; ranks count from 1."""

    paper: Paper
    score: float
    dense_rank: int | None
    lexical_rank: int | None
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class Citation:
    """A paper that a statement cites, with the quoted sentence and how well it supports (0..1)."""

    paper_id: str
    quote: str
    start: int
    end: int
    support: float


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of an answer; `supported` is the verifier's verdict, not the model's."""

    text: str
    supported: bool
    citations: tuple[Citation, ...]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens read and written by the language model."""

    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """What the papers say to a question; `answered` is false when they do not say.

    `retrieved` are all papers found for it, best first; `papers` those cited, or the closest.
    `asked` is the question as it was understood, where that differs (a follow-up, a translation).
    """

    question: str
    answered: bool
    confidence: float
    statements: tuple[Statement, ...]
    papers: tuple[Paper, ...]
    model: str
    usage: Usage
    seconds: Mapping[str, float]
    notes: tuple[str, ...] = ()
    retrieved: tuple[Hit, ...] = ()
    asked: str = ""
