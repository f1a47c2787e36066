"""Plans for questions about one number of one paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from random import Random

from eval.drafting import checks
from eval.drafting.corpus import Corpus, name_of, sentences
from eval.drafting.figures import Figure, figures
from eval.drafting.plan import Check, Plan
from eval.retrieval.terms import key
from rag.facts import names
from rag.types import Evidence, Paper


@dataclass(frozen=True, slots=True)
class Fact:
    """A number in a sentence of a paper."""

    paper: Paper
    sentence: Evidence
    figure: Figure


def plan_facts(corpus: Corpus, random: Random) -> Iterator[Plan]:
    """One fact of each paper in turn, then a second of each, ...; papers in random order."""
    papers = random.sample(corpus.papers, len(corpus.papers))
    for turn in zip_longest(*(facts(paper, random) for paper in papers)):
        yield from (_plan(fact, corpus) for fact in turn if fact is not None)


def facts(paper: Paper, random: Random) -> list[Fact]:
    """The facts of a paper, those worth asking first; among equals a random order.

    A sentence that names its subject is worth more: the question is about nothing else.
    """
    found = [
        Fact(paper, sentence, figure)
        for sentence in sentences(paper)
        for figure in figures(sentence.text)
    ]
    random.shuffle(found)
    name = name_of(paper)
    return sorted(found, key=lambda fact: -_worth(fact, name))


def _worth(fact: Fact, name: str | None) -> float:
    named = name is not None and name.casefold() in fact.sentence.text.casefold()
    return fact.figure.weight + 0.5 * named


def _plan(fact: Fact, corpus: Corpus) -> Plan:
    paper, sentence, figure = fact.paper, fact.sentence, fact.figure
    name = name_of(paper)
    return Plan(
        kind="fact",
        papers=(paper,),
        origin=(sentence,),
        gold=((paper.id,),),
        must_include=figure.patterns,
        note=f"It asks for {' and '.join(figure.values)}",
        prompt="draft_fact",
        opening=figure.opening(sentence.text),
        values={
            "title": paper.title,
            "called": name,
            "context": [] if name else _context(paper, sentence),
            "sentence": figure.taken_out(sentence.text),
            "clause": figure.clause(sentence.text),
        },
        checks=_checks(fact, corpus),
    )


def _checks(fact: Fact, corpus: Corpus) -> tuple[Check, ...]:
    """What a wording of the question must pass."""
    paper, figure, text = fact.paper, fact.figure, fact.sentence.text
    told = [v for other in figures(text) if other.weight > 1 for v in other.values]
    named = name_of(paper) is not None
    return (
        checks.one_question,
        checks.stands_alone,
        checks.asks_for_number,
        # Another number of the sentence would tell what is not asked for, or mix the two up.
        checks.does_not_tell(figure.patterns, told),
        *([checks.tells_paper(own_names(paper, corpus), corpus.frequency)] if named else []),
        checks.speaks_of(figure.about(text), []),
        checks.says_only([paper]),
        checks.no_copy_of([text]),
    )


def _context(paper: Paper, sentence: Evidence) -> Sequence[str]:
    """The sentences before, by which a paper without a name can be described."""
    return [e.text for e in sentences(paper) if e.start < sentence.start][:3]


def own_names(paper: Paper, corpus: Corpus) -> list[str]:
    """What the paper is called, and names that no other paper holds: "TopoPT", "TrimPT"."""
    own = [name_of(paper) or paper.title]
    own += corpus.spellings(key(own[0]))
    return own + sorted(n for n in names(paper.text) if corpus.frequency(n) == 1)
