"""Does a paper say what a statement says? Facts in code, content by words and by meaning.

A number or a name that no cited paper holds makes a statement unsupported, whatever the rest looks
like, and so does denying what the quote affirms. Otherwise `support` (0..1) weighs how much of the
statement its best sentences hold, by words and by embedding. A statement in another script than
its paper shares no words with it: the language model is asked then.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rag.facts import holds_name, missing, name_key, names, numbers
from rag.lexical import tokens
from rag.passages import Passages
from rag.polarity import negated, polarity_differs
from rag.scripts import UNSPACED
from rag.text import visible
from rag.types import Citation, Paper, Statement

# A statement below is not shown as fact.
SUPPORTED = 0.5

# A citation below is dropped when another of the same statement carries it.
CARRIES_NOTHING = 0.3

# (claim, source) -> probability that the source supports the claim, or None where it cannot tell.
Judge = Callable[[str, str], float | None]

# A neighbouring sentence joins the quote only when it adds this much, out of 3, to the match: a
# quote should be short enough to be read.
WIDER_QUOTE_GAIN = 0.25

# What a statement may begin with before it says anything: "The paper shows that ...".
_PREAMBLE = re.compile(
    r"\A(?:the|this|these)\s+(?:papers?|evidence|authors?|abstracts?|study|work|results?)\s+"
    r"(?:also\s+)?(?:states?|says?|shows?|reports?|finds?|proves?|indicates?|demonstrates?|suggests?)"
    r"\s+that\s+",
    re.IGNORECASE,
)

_UNSPACED = re.compile(f"[{UNSPACED}]")
_OTHER_WORD = re.compile("[\u0400-\u0dff\u0f00-\u1cff\u2c00-\u2fff\ua000-\ud7ff]+")
_LATIN_WORD = re.compile("[^\\W\\d_\u0400-\u1cff\u2c00-\ud7ff]+")

_NAME = re.compile(r"[^\W_]+(?:-[^\W_]+)*")
_FIGURE = re.compile(r"\d+(?:[.,]\d+)*")

# Logistic regression on 1,701 claims (attributionbench-dev and scifact-train), fitted by
# eval/attribution/fit.py; in 5-fold cross-validation AUROC .83, balanced accuracy .80 and .68.
INTERCEPT = -6.16
W_QUOTE, W_PAPER, W_COSINE, W_NEGATION = 0.83, 3.34, 4.36, -0.51


@dataclass(frozen=True, slots=True)
class Signals:
    """What tells support from its absence.

    `quote_coverage` and `paper_coverage` are the shares (0..1) of the statement's words that the
    quote and the whole paper hold, `cosine` is that of statement and quote (-1..1).
    """

    quote_coverage: float
    paper_coverage: float
    cosine: float
    negation_differs: bool


def support(signals: Signals) -> float:
    """The probability, 0..1, that the statement is supported."""
    z = (
        INTERCEPT
        + W_QUOTE * signals.quote_coverage
        + W_PAPER * signals.paper_coverage
        + W_COSINE * signals.cosine
        + W_NEGATION * signals.negation_differs
    )
    return 1.0 / (1.0 + math.exp(-z))


def compare(statement: str, quote: str, whole: str, cosine: float) -> Signals:
    """The signals of a statement against a quote from the text `whole`."""
    said = set(tokens(statement))
    size = max(1, len(said))
    differs = negated(statement) != negated(quote)
    return Signals(
        len(said & set(tokens(quote))) / size,
        len(said & set(tokens(whole))) / size,
        cosine,
        differs,
    )


class Verifier:
    """Checks statements against the papers they cite."""

    def __init__(self, passages: Passages, judge: Judge | None = None) -> None:
        self._passages = passages
        self._judge = judge

    def check(self, text: str, papers: Sequence[Paper]) -> Statement:
        """The statement with a quote and a support for each paper, and the verdict on the whole."""
        if not papers or not text.strip():
            return Statement(text, supported=False, citations=())
        if verbatim := _verbatim(text, papers):
            return Statement(text, supported=True, citations=(verbatim,))
        shown, text = text, _PREAMBLE.sub("", text)
        vector = self._passages.embedder.documents([text])[0]
        citations = tuple(self._cite(text, vector, paper) for paper in papers)
        whole = _whole(papers, citations)
        carrying = _carrying(citations)
        if not missing(text, _whole(papers, carrying)):
            citations, whole = carrying, _whole(papers, carrying)
        supported = (
            not missing(text, whole)
            and not any(polarity_differs(text, citation.quote) for citation in citations)
            and self._joint(text, vector, citations, whole) >= SUPPORTED
        )
        return Statement(shown, supported, citations)

    def translated(self, statement: Statement, text: str) -> Statement | None:
        """A supported statement in other words of another language; None if they say another thing.

        They must keep its figures and add no number or name, and the judge must find them in it.
        """
        text = _with_points(" ".join(visible(text).split()).strip('"“”'), statement.text)
        said = " ".join([statement.text, *(citation.quote for citation in statement.citations)])
        figures = _FIGURE.findall(statement.text)
        if not text or any(figure not in text for figure in figures) or missing(text, said):
            return None
        if not all(holds_name(text, name_key(word)) for word in _spelled_names(statement.text)):
            return None
        if self._ask(text, statement.text, 1.0) < SUPPORTED:
            return None
        return replace(statement, text=text)

    def _cite(self, text: str, vector: NDArray[np.float32], paper: Paper) -> Citation:
        spans, cosines = self._passages.cosines(paper, vector)
        chosen = choose_quote(text, [paper.text[s.start : s.end] for s in spans], cosines)
        start, end = spans[chosen[0]].start, spans[chosen[-1]].end
        quote = paper.text[start:end]
        best = max(cosines[i] for i in chosen)
        found = support(compare(text, f"{paper.title}. {quote}", _with_title(paper), best))
        if foreign(text, quote):
            found = self._ask(text, quote, found)
        return Citation(paper.id, quote, start, end, round(found, 4))

    def _joint(
        self, text: str, vector: NDArray[np.float32], citations: Sequence[Citation], whole: str
    ) -> float:
        """Support by all quotes together: a statement may join two papers."""
        best = max(citation.support for citation in citations)
        if len(citations) == 1 or best >= SUPPORTED:
            return best
        quotes = " ".join(citation.quote for citation in citations)
        if foreign(text, quotes):
            return self._ask(text, quotes, best)
        joined = self._passages.embedder.documents([quotes])[0]
        return support(compare(text, quotes, whole, float(joined @ vector)))

    def _ask(self, text: str, source: str, otherwise: float) -> float:
        verdict = self._judge(text, source) if self._judge else None
        return otherwise if verdict is None else verdict


def _spelled_names(text: str) -> list[str]:
    """Names that every language spells alike (TopoPT, mAP50), other than acronyms (LLMs)."""
    words = (word.removesuffix("s") for word in _NAME.findall(text))
    return [word for word in words if names(word) and any(c.islower() for c in word)]


def _with_points(text: str, source: str) -> str:
    """Decimal commas as the points that the source has: "76,6 %" -> "76.6 %"."""
    for figure in _FIGURE.findall(source):
        if "." in figure and figure not in text:
            text = text.replace(figure.replace(".", ","), figure)
    return text


def foreign(statement: str, source: str) -> bool:
    """Whether the two are written in different scripts, so that words cannot be compared."""
    return non_latin(statement) != non_latin(source)


def non_latin(text: str) -> bool:
    """Whether a third of the words or more lie outside Latin, Greek and mathematical blocks.

    Where words are not parted by blanks (Chinese, Japanese), a character counts as half a word.
    """
    spaced, unspaced = _UNSPACED.subn(" ", text)
    other = unspaced / 2 + len(_OTHER_WORD.findall(spaced))
    return other > 0 and other / (other + len(_LATIN_WORD.findall(spaced))) >= 1 / 3


def choose_quote(text: str, sentences: Sequence[str], cosines: Sequence[float]) -> list[int]:
    """Indices of the sentence that matches `text` best, with a neighbour where that adds much."""
    said, facts = set(tokens(text)), numbers(text)
    words = [set(tokens(sentence)) for sentence in sentences]
    stated = [numbers(sentence) for sentence in sentences]

    def score(indices: Sequence[int]) -> float:
        held = set().union(*(words[i] for i in indices))
        told = set().union(*(stated[i] for i in indices))
        return (
            len(said & held) / max(1, len(said))
            + len(facts & told) / max(1, len(facts))
            + max(cosines[i] for i in indices)
        )

    best = max(range(len(sentences)), key=lambda i: (score([i]), -i))
    pairs = [sorted((best, i)) for i in (best - 1, best + 1) if 0 <= i < len(sentences)]
    wider = max(pairs, key=score, default=[best])
    return wider if score(wider) > score([best]) + WIDER_QUOTE_GAIN else [best]


def _carrying(citations: tuple[Citation, ...]) -> tuple[Citation, ...]:
    """Without those that add nothing where one supports the statement by itself."""
    if max(citation.support for citation in citations) < SUPPORTED:
        return citations
    return tuple(c for c in citations if c.support >= CARRIES_NOTHING)


def _whole(papers: Sequence[Paper], citations: Sequence[Citation]) -> str:
    """Titles and texts of the papers cited."""
    cited = {citation.paper_id for citation in citations}
    return " ".join(_with_title(paper) for paper in papers if paper.id in cited)


def _verbatim(text: str, papers: Sequence[Paper]) -> Citation | None:
    """The citation of a statement that is a paper's own words, which need no weighing."""
    for paper in papers:
        start = paper.text.find(text)
        if start >= 0 and len(tokens(text)) > 1:
            return Citation(paper.id, text, start, start + len(text), 1.0)
    return None


def _with_title(paper: Paper) -> str:
    return f"{paper.title}. {paper.text}"
