"""The papers as the drafts see them: sentences, terms, and what each paper can be called."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from eval.retrieval.terms import Spellings, holds, is_content, key, searchable_paper, stem, words
from rag.sentences import sentence_spans
from rag.types import Evidence, Paper

# A longer title is no name that anyone would say.
_LONGEST_NAME = 5


class Corpus:
    """Papers with an index of their words; made once for all drafts."""

    def __init__(self, papers: Iterable[Paper]) -> None:
        self.papers: tuple[Paper, ...] = tuple(papers)
        self._searched = {paper.id: searchable_paper(paper) for paper in self.papers}
        self._frequency: Counter[str] = Counter()
        for text in self._searched.values():
            self._frequency.update(set(text.split()))
        self._spellings = Spellings(paper.text for paper in self.papers)

    def frequency(self, stem: str) -> int:
        """How many papers hold a word of this stem."""
        return self._frequency[stem]

    def spellings(self, term: str) -> frozenset[str]:
        """A term (see `eval.retrieval.terms.key`), and its acronym or its long form."""
        return self._spellings.of(term)

    def acronyms_of(self, name: str) -> list[str]:
        """The acronym that some paper gives a name, in capitals: "Internal Safety Collapse"."""
        short = self._spellings.acronym(key(name))
        return [short.upper()] if short else []

    def holds(self, paper: Paper, term: str) -> bool:
        """Whether title or text of a paper hold the term in one of its spellings."""
        searched = self._searched[paper.id]
        return any(holds(searched, spelling) for spelling in self.spellings(term))

    def holders(self, term: str) -> list[Paper]:
        """The papers that hold the term, by ID."""
        return [paper for paper in self.papers if self.holds(paper, term)]

    def own_words(self, sentence: Evidence, shared: Sequence[Paper] = ()) -> list[str]:
        """Content words of a paper's sentence that no paper of `shared` holds, most telling first.

        By occurrences in the paper for each paper that holds the word. Words as they stand there,
        each stem once; ties in reading order.
        """
        within = Counter(self._searched[sentence.paper_id].split())
        found: dict[str, str] = {}
        for word in words(sentence.text):
            if is_content(word.stem) and not any(
                holds(self._searched[paper.id], word.stem) for paper in shared
            ):
                found.setdefault(word.stem, sentence.text[word.start : word.end])
        return [found[s] for s in sorted(found, key=lambda s: -within[s] / self._frequency[s])]


def sentences(paper: Paper) -> list[Evidence]:
    """The sentences of a paper: `paper.text[start:end] == text`."""
    return [
        Evidence(paper.id, paper.text[span.start : span.end], span.start, span.end)
        for span in sentence_spans(paper.text)
    ]


def name_of(paper: Paper) -> str | None:
    """What a question can call the paper; None where its title is a sentence or was cut off.

    "BEARCUBS: A benchmark for ..." -> "BEARCUBS".
    """
    name = paper.title.partition(":")[0].strip()
    if name.endswith("…") or len(name.split()) > _LONGEST_NAME or not re.search(r"\w", name):
        return None
    return name


def name_pattern(name: str) -> str:
    r"""A regular expression for a name, whatever parts its words: "H-LRU" -> H[\s-]?LRU."""
    parts = [re.escape(part) for part in re.split(r"[\s-]+", name) if part]
    return r"(?<!\w)" + r"[\s-]?".join(parts)


def word_pattern(word: str) -> str:
    """A regular expression for a word and its inflections: "retains" -> retain."""
    found = stem(word)
    kept = found if word.casefold().startswith(found) and len(found) > 3 else word
    return r"\b" + re.escape(kept)
