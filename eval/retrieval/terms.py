"""Terms as runs of word stems, found in texts whatever their case, plural or hyphens.

>>> key("On-policy distillations")
'on polici distil'
>>> holds(searchable("It uses on-policy distillation."), key("On-Policy Distillation"))
True
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rag.lexical import STOP_WORDS, tokens
from rag.types import Paper

_WORD = re.compile(r"[^\W_]+")
# "Sparse Autoencoder (SAE)", "GAMs" too.
_ACRONYM = re.compile(r"\((?P<acronym>[A-Z][A-Za-z]{0,8}[A-Z])s?\)")
_LONGEST_NAME = 5


@dataclass(frozen=True, slots=True)
class Word:
    """A word's stem and its place in the text."""

    stem: str
    start: int
    end: int


def words(text: str) -> list[Word]:
    """The words of `text`, stop words too; hyphens part words."""
    return [Word(stem(match[0]), match.start(), match.end()) for match in _WORD.finditer(text)]


@functools.cache
def stem(word: str) -> str:
    """The stem under which a word is compared: "Autoencoders" -> "autoencod"."""
    found = tokens(word)
    return found[0] if found else unicodedata.normalize("NFKC", word).casefold()


def key(text: str) -> str:
    """The form under which two spellings of a term are equal."""
    return " ".join(word.stem for word in words(text))


def searchable(*texts: str) -> str:
    """Texts in which `holds` looks for terms; none goes from one text into the next."""
    return "".join(f" {key(text)} |" for text in texts)


def holds(searched: str, term: str) -> bool:
    """Whether a term (see `key`) stands in a text (see `searchable`), as whole words."""
    return bool(term) and f" {term} " in searched


def searchable_paper(paper: Paper) -> str:
    """Title and text of a paper, for `holds`; an answer cannot be drawn from its keywords."""
    return searchable(paper.title, paper.text)


def keywords(paper: Paper) -> list[str]:
    """The keywords of a paper's metadata: a list, or a text parted by semicolons or commas."""
    value = next((v for k, v in paper.metadata.items() if k.casefold() == "keywords"), [])
    parts = value if isinstance(value, list) else [str(value)]
    mark = ";" if any(";" in part for part in parts) else ","
    return [word for part in parts for piece in part.split(mark) if (word := piece.strip())]


def is_content(word: str) -> bool:
    """Whether a stem says something by itself: no stop word, no bare number, no single letter."""
    return len(word) > 1 and not word.isnumeric() and word not in STOP_WORDS


class Spellings:
    """Terms and the acronyms that texts introduce for them: "Sparse Autoencoder (SAE)".

    An acronym that stands for several terms ("SLM") stands for none of them here.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._long: dict[str, str] = {}
        several: set[str] = set()
        for long_form, acronym in _introduced(texts):
            if self._long.setdefault(acronym, long_form) != long_form:
                several.add(acronym)
        for acronym in several:
            del self._long[acronym]
        self._acronyms = {long_form: acronym for acronym, long_form in self._long.items()}

    def of(self, term: str) -> frozenset[str]:
        """A term (see `key`) with its acronym, or the long form of which it is one."""
        others = (self._acronyms.get(term), self._long.get(term))
        return frozenset({term, *(other for other in others if other)})

    def acronym(self, term: str) -> str | None:
        """The stem of the term's acronym."""
        return self._acronyms.get(term)


def _introduced(texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """("spars autoencod", "sae") for every "Sparse Autoencoder (SAE)"."""
    for text in texts:
        for match in _ACRONYM.finditer(text):
            for long_form in _long_forms(text[: match.start()]):
                if _abbreviates(match["acronym"].lower(), [w.lower() for w in long_form]):
                    yield key(" ".join(long_form)), stem(match["acronym"])
                    break


def _long_forms(before: str) -> Iterator[list[str]]:
    """The last two, three ... words, so far as one sentence goes."""
    last = _WORD.findall(before[-120:].rpartition(". ")[2])
    for n in range(2, min(_LONGEST_NAME, len(last)) + 1):
        yield last[-n:]


def _abbreviates(letters: str, long_form: Sequence[str]) -> bool:
    """Whether the letters stand in the words in order, every word giving at least its first."""
    if not long_form:
        return not letters
    first, *rest = long_form
    return any(
        _gives(first, letters[:n]) and _abbreviates(letters[n:], rest)
        for n in range(1, len(letters) + 1)
    )


def _gives(word: str, letters: str) -> bool:
    """("autoencoder", "ae") -> True: the first letter is the word's, the others follow in it."""
    characters = iter(word)
    return word[:1] == letters[:1] and all(letter in characters for letter in letters)
