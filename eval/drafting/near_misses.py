"""Plans for questions that no paper answers, though one seems to.

Two ways: a paper claims "fewer parameters" and no number stands in it that could say how many; or
a neighbour reports a measure on a data set, one of which the paper never speaks of.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

from eval.drafting import checks
from eval.drafting.corpus import Corpus, name_of, sentences
from eval.drafting.facts import Fact, facts, own_names
from eval.drafting.figures import figures
from eval.drafting.plan import Plan
from eval.drafting.topics import Nearness
from eval.retrieval.terms import key
from rag import prompts
from rag.facts import holds_name, name_key, names
from rag.types import Paper

# Neighbours whose numbers are asked of a paper; further ones are about something else.
_NEIGHBOURS = 4

# What a paper found of itself: "outperforms GAMs", "fewer parameters", not "to improve".
_CLAIM = re.compile(
    r"(?<!\bto )(?<!\bcan )(?<!\bwill )(?<!\bnot )(?<!\bor )\b(?P<claim>(?:fewer|faster|quicker|"
    r"(?:lower|higher)(?= [a-z -]{3,40} than )|"
    r"more (?:efficient|accurate|precise)(?= [a-z -]{0,40}than )|"
    r"outperforms?|improves|reduces|lowers|beats|cuts|exceeds)"
    r"(?: (?:and|or|in|than) [a-z-]+| [A-Za-z-]+){0,3})"
)
_OWN = re.compile(
    r"\b(?:experiments?|experimental|empirical|results?|evaluations?|show|shows|demonstrate|we|our)\b",
    re.IGNORECASE,
)
# A bound answers "by how much" as well as a number does; and what was before is not the paper's.
_OTHERWISE = re.compile(
    r"\b(?:factor|order|bound|exponential\w*|logarithmic\w*|linear(?:ly)?|quadratic\w*|twice|half|"
    r"magnitude|prior|previous|however|while|although|whether)\b|[ΘΩO]\(|\^",
    re.IGNORECASE,
)
_COUNTED = re.compile(r"fewer (?P<words>[a-z-]+s)\b")
# What an answer would have to make up.
_ANY_MEASURE = r"(?<![\w.,])\d[\d.,]*\s*\\?(?:%|percent|×|x\b|times|-?fold)"
_ON = re.compile(r"\bon (?P<data>[^\W_]+(?:[-.][^\W_]+)*(?: [A-Z][\w-]*)*)")
_CHECKS = (checks.one_question, checks.stands_alone, checks.asks_for_number, checks.no_number)


def plan_near_misses(corpus: Corpus, nearness: Nearness, random: Random) -> Iterator[Plan]:
    """Claims without their number and borrowed numbers by turns, one of each paper at first."""
    papers = [p for p in random.sample(corpus.papers, len(corpus.papers)) if name_of(p)]
    rest: list[Plan] = []
    for paper in papers:
        found = [*_unstated(paper, corpus), *_borrowed(paper, corpus, nearness, random)]
        first = random.choice(found) if found else None
        rest += [plan for plan in found if plan is not first]
        if first is not None:
            yield first
    yield from rest


def _unstated(paper: Paper, corpus: Corpus) -> Iterator[Plan]:
    """Claims of a paper none of whose sentences holds a number that was measured."""
    found, name = sentences(paper), name_of(paper) or ""
    if any(figure.weight > 1 for e in found for figure in figures(e.text)):
        return
    for sentence in found:
        claim = _claim(sentence.text, name)
        if claim is None:
            continue
        counted = _COUNTED.match(claim)
        yield Plan(
            kind="unanswerable",
            papers=(paper,),
            origin=(sentence,),
            must_not_include=(_ANY_MEASURE,),
            note=f"Near-miss ({paper.id}): it says “{claim}” without a number",
            prompt="draft_unstated",
            opening=f"How many {counted['words']}" if counted else "By how much",
            values={
                "title": paper.title,
                "called": name,
                "sentence": sentence.text,
                "claim": claim,
            },
            checks=(
                *_CHECKS,
                checks.says_only([paper]),
                checks.tells_paper(own_names(paper, corpus), corpus.frequency),
                checks.no_copy_of([sentence.text]),
            ),
        )


def _claim(sentence: str, name: str) -> str | None:
    """The words in which a sentence claims something of its own work, without a number."""
    claim = _CLAIM.search(sentence)
    if claim is None or figures(sentence) or _OTHERWISE.search(sentence):
        return None
    own = _OWN.search(sentence) or name.casefold() in sentence.casefold()
    return claim["claim"] if own else None


def _borrowed(paper: Paper, corpus: Corpus, nearness: Nearness, random: Random) -> Iterator[Plan]:
    """Numbers that neighbours report on what the paper has no word of."""
    by_id = {p.id: p for p in corpus.papers}
    for other_id in nearness.neighbours(paper, _NEIGHBOURS):
        for fact in facts(by_id[other_id], random):
            measured = _measure(fact)
            if measured is not None and _half_known(measured, paper, corpus):
                yield _borrow(fact, paper, *measured)


def _half_known(measured: tuple[str, str], paper: Paper, corpus: Corpus) -> bool:
    """Whether the paper speaks of one of the two (measure, data set), and nobody of the other.

    Nobody: neither the paper itself nor another one that speaks of the paper.
    """
    asked = key(name_of(paper) or "")
    speaking = [p for p in corpus.papers if p.id == paper.id or corpus.holds(p, asked)]
    told = [any(_speaks_of(p, name, corpus) for p in speaking) for name in measured]
    own = [_speaks_of(paper, name, corpus) for name in measured]
    return sum(told) == sum(own) == 1


def _speaks_of(paper: Paper, name: str, corpus: Corpus) -> bool:
    return corpus.holds(paper, key(name)) or holds_name(paper.text, name_key(name))


def _measure(fact: Fact) -> tuple[str, str] | None:
    """What is measured on which data: "____% mIoU on ScanNet" -> ("mIoU", "ScanNet")."""
    opening = fact.figure.opening(fact.sentence.text)
    measure = opening.removeprefix("What ")
    _, blank, after = fact.figure.clause(fact.sentence.text).partition("____")
    data = _ON.search(after)
    if measure in (opening, "is") or not blank or data is None or not names(data["data"]):
        return None
    return measure, data["data"]


def _borrow(fact: Fact, paper: Paper, measure: str, data: str) -> Plan:
    return Plan(
        kind="unanswerable",
        papers=(paper,),
        origin=(fact.sentence,),
        # The neighbour's number, given as this paper's, is the mistake to look for.
        must_not_include=fact.figure.patterns,
        note=f"Near-miss ({paper.id}): {fact.paper.id} reports it, {paper.id} has no word of it",
        wording=prompts.render("draft_borrowed", measure=measure, called=name_of(paper), data=data),
    )
