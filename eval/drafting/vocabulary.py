"""Terms that a few papers share: keywords, names, and runs of content words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from eval.drafting.corpus import Corpus, sentences
from eval.retrieval.terms import is_content, key, keywords, stem, words
from rag.facts import names
from rag.types import Paper

# Papers whose terms are looked at; how many hold a term is counted in all.
MOST_PAPERS = 1_000
_LONGEST = 3
# "multi-objective", "zero-shot": what something is, not what a paper is about; "self-attention" is.
_ATTRIBUTE = re.compile(r"\W*|\w+(?:-\w+)+(?<!ing)(?<!tion)(?<!ment)(?<!ness)(?<!ity)(?<!s)")
_UNCOUNTED = re.compile(r"(?:s|ing|ion|ment|ity|ness|ism|ance|ence|y)\Z")
_BRACKETED = re.compile(r"\s*\([^()]*\)")

# Words of every abstract: a run that holds one is no topic.
BOILERPLATE = frozenset(
    stem(word)
    for word in "paper work study approach method model result experiment extensive propose "
    "introduce show demonstrate state art performance existing various several different novel new "
    "significantly substantially consistently improve outperform baseline benchmark code "
    "dataset data public available evaluate evaluation analysis based using use used however "
    "recent first two three high low large small better best strong task problem framework "
    "setting neither ordinary particular particularly usual propos again desir itself general "
    "real world order case number given find finding provide enable achieve input output "
    "rather keep current make directly whole term extra bring without within across well "
    "often still level set example instance during between under per after among over before "
    "against toward while until upon above below up down out off through poorly understood "
    "effective central synthetic empirical theoretical practical experimental standard prior "
    "previous".split()
)


@dataclass(frozen=True, slots=True)
class Term:
    """A term as a paper writes it, its key (`terms.key`), and the papers that hold it.

    `keyword`: some paper lists it among its keywords, so that it is a topic for certain.
    """

    text: str
    key: str
    holders: tuple[Paper, ...]
    keyword: bool


def shared_terms(corpus: Corpus, random: Random, fewest: int, most: int) -> list[Term]:
    """Terms that `fewest` to `most` papers hold, in random order.

    Keywords come first, but single words last: "calibration" is a topic here and a step there. Of
    terms with the same holders the longest stands for all.
    """
    sampled = random.sample(corpus.papers, min(MOST_PAPERS, len(corpus.papers)))
    found: dict[tuple[str, ...], Term] = {}
    for term, text, keyword in _candidates(sampled):
        holders = corpus.holders(term)
        if not fewest <= len(holders) <= most:
            continue
        ids = tuple(paper.id for paper in holders)
        known = found.get(ids)
        if known is None or (keyword, len(text)) > (known.keyword, len(known.text)):
            found[ids] = Term(text, term, tuple(holders), keyword)
    terms = list(found.values())
    random.shuffle(terms)
    return sorted(terms, key=lambda term: (" " not in term.key, not term.keyword))


def _candidates(papers: list[Paper]) -> Iterator[tuple[str, str, bool]]:
    """(key, text, whether it is a keyword) of what at least two of the papers hold."""
    seen: dict[str, int] = {}
    listed: dict[str, str] = {}
    texts: dict[str, str] = {}
    for number, paper in enumerate(papers):
        for keyword in keywords(paper):
            plain = _BRACKETED.sub("", keyword)
            listed.setdefault(key(plain), plain)
        for term, text in _runs(paper):
            first = seen.setdefault(term, number)
            if first not in (number, -1):
                seen[term] = -1
                texts.setdefault(term, text)
    yield from ((t, text, True) for t, text in listed.items() if not _ATTRIBUTE.fullmatch(text))
    yield from ((term, text, False) for term, text in texts.items() if term not in listed)


def _runs(paper: Paper) -> Iterator[tuple[str, str]]:
    """Two or three words that follow each other within a clause, and single names."""
    for sentence in sentences(paper):
        for clause in re.split(r"[,;:()]", sentence.text):
            found = words(clause)
            for n in range(1, _LONGEST + 1):
                for i in range(len(found) - n + 1):
                    run = found[i : i + n]
                    text = clause[run[0].start : run[-1].end]
                    if _may_be_topic([word.stem for word in run], text):
                        yield " ".join(word.stem for word in run), text


def as_topic(term: Term) -> str:
    """The term as it follows "papers about": in the plural where a text has it so, or has "a"."""
    if _UNCOUNTED.search(term.text) or not re.fullmatch(r"[\w -]+", term.text):
        return term.text
    texts = [paper.text for paper in term.holders]
    one = re.escape(term.text)
    if any(re.search(rf"\b{one}s\b", text, re.IGNORECASE) for text in texts):
        return term.text + "s"
    counted = any(re.search(rf"\ban? (?:[\w-]+ )?{one}\b(?![ -][a-z]+)", t, re.I) for t in texts)
    return term.text + "s" * counted


def _may_be_topic(stems: list[str], text: str) -> bool:
    if "." in text or "/" in text or _ATTRIBUTE.fullmatch(text):
        return False
    if len(stems) == 1:
        return bool(names(text)) and stems[0] not in BOILERPLATE
    return all(is_content(s) and s not in BOILERPLATE for s in stems)
