"""Plans for questions that want every paper with a topic."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from eval.drafting.corpus import Corpus, name_of, name_pattern, sentences, word_pattern
from eval.drafting.plan import Plan
from eval.drafting.topics import KEYWORD, TOPIC, Nearness
from eval.drafting.vocabulary import Term, as_topic, shared_terms
from eval.retrieval.terms import holds, keywords, searchable
from rag import prompts
from rag.types import Evidence, Paper

FEWEST, MOST = 2, 6

# Words of its own by which a paper without a name can be told in an answer.
_TELLING = 3
_SHOWN = 5
# A shorter word stands in many an answer.
_SHORTEST_WORD = 6


def plan_lists(corpus: Corpus, nearness: Nearness, random: Random) -> Iterator[Plan]:
    """A question for each topic that 2 to 6 papers hold; keywords first, then what is in texts."""
    number = 0
    for term in shared_terms(corpus, random, FEWEST, MOST):
        least = KEYWORD if term.keyword else TOPIC
        if nearness.topicality(term.text, term.holders) >= least:
            yield _plan(term, corpus, number)
            number += 1


def _plan(term: Term, corpus: Corpus, number: int) -> Plan:
    papers, topic = term.holders, as_topic(term)
    found = [(paper, _sentence(paper, term, corpus)) for paper in papers]
    listing = [p.id for p in corpus.papers if p not in papers and _lists(p, term, corpus)]
    note = f"Exhaustive: every paper whose title or text holds “{term.text}” in any spelling"
    if listing:
        note += f"; only among the keywords of {', '.join(listing[:_SHOWN])}"
    return Plan(
        kind="list",
        papers=papers,
        origin=tuple(sentence for _, sentence in found if sentence is not None),
        gold=tuple((paper.id,) for paper in papers),
        must_include=tuple(_pattern(p, sentence, papers, corpus) for p, sentence in found),
        note=note,
        wording=prompts.render("draft_list", term=topic, form=number),
    )


def _lists(paper: Paper, term: Term, corpus: Corpus) -> bool:
    """Whether the term is among the paper's keywords."""
    searched = searchable(*keywords(paper))
    return any(holds(searched, spelling) for spelling in corpus.spellings(term.key))


def _sentence(paper: Paper, term: Term, corpus: Corpus) -> Evidence | None:
    """The first sentence of the paper that holds the term."""
    spellings = corpus.spellings(term.key)
    return next(
        (
            sentence
            for sentence in sentences(paper)
            if any(holds(searchable(sentence.text), spelling) for spelling in spellings)
        ),
        None,
    )


def _pattern(
    paper: Paper, sentence: Evidence | None, papers: tuple[Paper, ...], corpus: Corpus
) -> str:
    """What an answer that lists the paper says: its name, or words that only it has."""
    name = name_of(paper)
    if name is not None:
        called = [name, *name.split(" and "), *corpus.acronyms_of(name)]
        return "|".join(dict.fromkeys(map(name_pattern, called)))
    others = [other for other in papers if other.id != paper.id]
    own = corpus.own_words(sentence or Evidence(paper.id, paper.text, 0, len(paper.text)), others)
    long = [word for word in own if len(word) >= _SHORTEST_WORD] or own
    return "|".join(dict.fromkeys(map(word_pattern, long[:_TELLING]))) or name_pattern(paper.title)
