"""Plans for questions that need two papers: both hold a rare term, or they are neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, combinations
from random import Random

from eval.drafting import checks
from eval.drafting.corpus import Corpus, name_of, sentences, word_pattern
from eval.drafting.plan import Check, Plan
from eval.drafting.topics import KEYWORD, TOPIC, Nearness
from eval.drafting.vocabulary import BOILERPLATE, shared_terms
from eval.retrieval.terms import holds, is_content, key, searchable, words
from rag.types import Evidence, Paper

# Papers that a term may have; with more it is a field, not something two papers have in common.
MOST_HOLDERS = 4
# Two papers that share a term are compared where each is among so many neighbours of the other.
_NEAR = 8
# Papers looked at on each side to see whether two are each other's neighbours.
_NEIGHBOURS = 3
_LEAST_SHARED = 2
# Words of a sentence that tell it from the other paper, one of which a right answer says.
_TELLING = 4
_SHORTEST_WORD = 5
# A sentence with fewer has nothing left to be asked for.
_FEWEST_WORDS = 8

_Pair = tuple[Evidence, Evidence]


def plan_comparisons(corpus: Corpus, nearness: Nearness, random: Random) -> Iterator[Plan]:
    """Two papers at a time, both with a name: no paper twice before every other had its turn."""
    later: list[Plan] = []
    pairs: set[frozenset[str]] = set()
    used: set[str] = set()
    found = chain(_by_term(corpus, nearness, random), _by_nearness(corpus, nearness, random))
    for plan in found:
        ids = frozenset(paper.id for paper in plan.papers)
        if ids in pairs:
            continue
        pairs.add(ids)
        if ids & used:
            later.append(plan)
        else:
            used |= ids
            yield plan
    yield from later


def _by_term(corpus: Corpus, nearness: Nearness, random: Random) -> Iterator[Plan]:
    for term in shared_terms(corpus, random, 2, MOST_HOLDERS):
        least = KEYWORD if term.keyword else TOPIC
        # A single word ("ranking", "3D") is rarely the same thing in two papers.
        if " " not in term.key or nearness.topicality(term.text, term.holders) < least:
            continue
        spellings = corpus.spellings(term.key)
        for first, second in combinations(term.holders, 2):
            if not _near(first, second, nearness):
                continue
            one, other = (_holding(paper, spellings) for paper in (first, second))
            if one and other:
                yield from _plan((first, second), (one, other), term.text, corpus)


def _by_nearness(corpus: Corpus, nearness: Nearness, random: Random) -> Iterator[Plan]:
    """Each other's neighbours, by the sentences that have the rarest words in common."""
    by_id = {paper.id: paper for paper in corpus.papers}
    for paper in random.sample(corpus.papers, len(corpus.papers)):
        for other_id in nearness.neighbours(paper, _NEIGHBOURS):
            if paper.id in nearness.neighbours(by_id[other_id], _NEIGHBOURS):
                pair, topic = _closest(paper, by_id[other_id], corpus)
                both = (paper, by_id[other_id])
                if topic and nearness.topicality(topic, both) >= TOPIC:
                    yield from _plan(both, pair, topic, corpus)


def _near(first: Paper, second: Paper, nearness: Nearness) -> bool:
    return second.id in nearness.neighbours(first, _NEAR) and first.id in nearness.neighbours(
        second, _NEAR
    )


def _holding(paper: Paper, spellings: frozenset[str]) -> Evidence | None:
    """The longest sentence of the paper that holds the term: it says most about it."""
    found = [
        sentence
        for sentence in sentences(paper)
        if any(holds(searchable(sentence.text), spelling) for spelling in spellings)
    ]
    return max(found, key=lambda sentence: len(sentence.text), default=None)


def _closest(first: Paper, second: Paper, corpus: Corpus) -> tuple[_Pair, str]:
    """The two sentences with the rarest words in common, and these words."""

    def shared(pair: _Pair) -> list[str]:
        other = {word.stem for word in words(pair[1].text)}
        found = {
            word.stem: pair[0].text[word.start : word.end]
            for word in words(pair[0].text)
            if word.stem in other and is_content(word.stem)
        }
        rare = [s for s in found.keys() - BOILERPLATE if corpus.frequency(s) <= MOST_HOLDERS]
        if len(rare) < _LEAST_SHARED:
            return []
        return [found[stem] for stem in sorted(rare, key=lambda s: (corpus.frequency(s), s))]

    pairs = [(one, other) for one in sentences(first) for other in sentences(second)]
    best = max(pairs, key=lambda pair: len(shared(pair)))
    return best, " and ".join(shared(best)[:2])


def _plan(papers: tuple[Paper, Paper], pair: _Pair, topic: str, corpus: Corpus) -> Iterator[Plan]:
    """The plan, if both papers have a name and both sentences words of their own."""
    first, second = (name_of(paper) for paper in papers)
    if first is None or second is None or key(first) == key(second):
        return
    patterns = [
        _pattern(sentence, other, f"{first} {second} {topic}", corpus)
        for sentence, other in zip(pair, reversed(papers), strict=True)
    ]
    if not all(patterns) or any(len(e.text.split()) < _FEWEST_WORDS for e in pair):
        return
    sides = zip((first, second), pair, strict=True)
    yield Plan(
        kind="compare",
        papers=papers,
        origin=pair,
        gold=tuple((paper.id,) for paper in papers),
        must_include=tuple(patterns),
        note=f"Both are about {topic}",
        prompt="draft_compare",
        values={"topic": topic, "sides": [{"name": n, "sentence": e.text} for n, e in sides]},
        checks=_checks(papers, (first, second), pair, patterns, topic),
    )


def _checks(
    papers: tuple[Paper, Paper],
    names: tuple[str, str],
    pair: _Pair,
    patterns: Sequence[str],
    topic: str,
) -> tuple[Check, ...]:
    """What a wording of the question must pass."""
    return (
        checks.one_question,
        checks.stands_alone,
        checks.does_not_tell(patterns),
        checks.says_all(names),
        checks.speaks_of(topic, names),
        checks.says_only(papers),
        checks.no_copy_of([sentence.text for sentence in pair]),
    )


def _pattern(sentence: Evidence, other: Paper, said: str, corpus: Corpus) -> str:
    """Words of the sentence that neither the other paper nor the question holds."""
    known = set(key(said).split())
    own = [
        word
        for word in corpus.own_words(sentence, [other])
        if len(word) >= _SHORTEST_WORD
        and key(word) not in known
        and key(word) not in BOILERPLATE
        and not word.endswith("ly")
    ]
    return "|".join(dict.fromkeys(word_pattern(word) for word in own[:_TELLING]))
