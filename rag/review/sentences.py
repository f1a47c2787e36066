"""The sentences of a review with what each does: ask, object, praise, or neither."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from rag.review import courtesies, cues
from rag.sentences import sentence_spans

# Pandoc's rule: no space inside the dollars, and no digit after them, so that prices stay prices.
# https://pandoc.org/MANUAL.html#math
_MATH = re.compile(
    r"\$\$(?=\S)[^$]{1,2000}?(?<=\S)\$\$|(?<![\\$])\$(?=\S)[^$\n]{0,400}?(?<=[^\s\\$])\$(?!\d)"
    r"|\\\([^\n]{1,400}?\\\)|\\\[[^\]]{1,400}?\\\]|`[^`\n]{1,200}`|https?://[^\s<>]{1,300}(?<![.,;:?!)\]])"
)
_LINE_END = re.compile(r"(?<![^\S\n])[^\S\n]*+\n\s*+")
# Reviewers go on in lower case: "on the test set? how similar are ..."
_QUESTION_END = re.compile(r"(?<!\?)\?++[\"”'’)]*+\s++(?=[a-z(\"“'‘\d\\$*_])")
_ASKS_AT_END = re.compile(r"[?？][?？!！.。\s\"”'’»)）\]」』*_]*\Z")
_QUESTION_MARK = re.compile(r"[?？]")
# Said of the other place: "the concerns above that are unclear".
_VAGUE = re.compile(r"\bunclear\b|\bconcern\w*|\bweakness\w*", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_][\w’'-]*|\d+")
# Looked at for cues; a longer sentence says early what it is.
_LONGEST = 1500
_LONGEST_REFERENCE = 500
_MOST_WORDS_OF_COURTESY = 25


@dataclass(frozen=True, slots=True)
class Signs:
    """What the words of a sentence show.

    `fault` and `wish` are explicit, `negative` may be either; `void` are courtesies, pointers to
    another section and verdicts; `depends` is a question without matter of its own; `further`,
    `backward` and `turn` are by the first words: "Moreover", "For example", "However". `faint`:
    such praise as may lead to a question. `reference` is an entry of a list of references;
    `invites` speaks to the authors even in a summary; `requests` begins by asking for something
    of its own.
    """

    question: bool
    fault: bool
    wish: bool
    negative: bool
    praise: bool
    faint: bool
    void: bool
    further: bool
    depends: bool
    backward: bool
    turn: bool
    reference: bool
    invites: bool
    requests: bool

    @property
    def asks(self) -> bool:
        """Whether it asks for an answer by its words, in whatever section it stands."""
        return not self.void and (self.question or self.fault or self.wish)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence `[start, end)` of the review."""

    start: int
    end: int
    signs: Signs


def masked(text: str) -> str:
    """`text` with mathematics, code and addresses as letters, so that "$x?$" ends nothing."""
    return _MATH.sub(lambda found: "x" * len(found[0]), text)


def read_sentences(plain: str, start: int, end: int, *, wrapped: bool) -> list[Sentence]:
    """The sentences of `plain[start:end]`, masked text. `wrapped`: a line's end ends none."""
    spans = _spans(plain, start, end, wrapped)
    return [Sentence(first, last, _signs(plain[first:last])) for first, last in spans]


def _spans(plain: str, start: int, end: int, wrapped: bool) -> Iterator[tuple[int, int]]:
    for first, last in _lines(plain, start, end, wrapped):
        for span in sentence_spans(plain[first:last]):
            cuts = [first + span.start]
            for stop in _QUESTION_END.finditer(plain, first + span.start, first + span.end):
                inside = stop.end() < first + span.end
                if inside and not _is_enclosed(plain, cuts[-1], stop.start()):
                    cuts.append(stop.end())
            for here, there in pairwise([*cuts, first + span.end]):
                yield here, here + len(plain[here:there].rstrip())


def _lines(plain: str, start: int, end: int, wrapped: bool) -> Iterator[tuple[int, int]]:
    if not wrapped:
        for line_end in _LINE_END.finditer(plain, start, end):
            if line_end.end() < end and not plain[line_end.end()].islower():
                if start < line_end.start():
                    yield start, line_end.start()
                start = line_end.end()
    if start < end:
        yield start, end


def _is_enclosed(plain: str, start: int, at: int) -> bool:
    """Whether a bracket opened since `start` (in the last 300 characters) is still open at `at`."""
    before = plain[max(start, at - 300) : at]
    return before.count("(") > before.count(")")


@lru_cache(maxsize=4096)
def _signs(sentence: str) -> Signs:
    text = sentence[:_LONGEST]
    question = _ASKS_AT_END.search(sentence[-20:]) is not None or bool(cues.ASKS.search(text))
    mark = _QUESTION_MARK.search(text)
    question = question or (mark is not None and mark.start() > 3)
    fault = cues.PROBLEM.search(text) is not None
    wish = bool(cues.REQUEST.search(text) or cues.WONDER.search(text))
    contrast = cues.CONTRAST.search(text) is not None
    asks = question or fault or wish
    return Signs(
        question=question,
        fault=fault,
        wish=wish,
        negative=fault or wish or cues.NEGATIVE.search(text) is not None,
        praise=not asks and not contrast and cues.PRAISE.search(text) is not None,
        faint=cues.PRAISE.search(cues.FAINT_PRAISE.sub("", text)) is None,
        void=_is_void(text, question),
        further=cues.ADDITIVE.search(text) is not None,
        depends=question and (_has_no_matter(text) or bool(cues.CONTINUES.search(text))),
        backward=cues.BACKWARD.search(text) is not None,
        turn=cues.TURN.search(text) is not None,
        reference=is_reference(text),
        invites=wish and cues.INVITES.search(text) is not None,
        requests=_requests(text),
    )


def _requests(text: str) -> bool:
    opening = cues.OPENS_REQUEST.search(text)
    if opening is None or _has_no_matter(text):
        return False
    if opening["wonders"] is None and cues.STANDS_IN.search(text, opening.end()):
        return False
    return cues.RESUMES.search(text, opening.end()) is None


def is_reference(text: str) -> bool:
    """Whether it is a bibliographic reference or an address and says nothing else."""
    if (
        len(text) > _LONGEST_REFERENCE
        or _QUESTION_MARK.search(text)
        or courtesies.REFERENCE.search(text) is None
    ):
        return False
    return courtesies.SPEAKS.search(text) is None and cues.REQUEST.search(text) is None


def _is_void(text: str, question: bool) -> bool:
    if courtesies.EMPTY.search(text) or not any(c.isalnum() for c in text):
        return True
    if question:
        return False
    words = len(text.split())
    if words <= _MOST_WORDS_OF_COURTESY:
        pointer = courtesies.POINTER.search(text)
        if pointer is not None:
            rest = text[: pointer.start()] + " " + text[pointer.end() :]
            return len(rest.split()) <= 16 and not _has_substance(rest)
    return courtesies.VERDICT.search(text) is not None and not _has_matter_beside_verdict(text)


def _has_substance(rest: str) -> bool:
    rest = _VAGUE.sub("", rest)
    return bool(cues.PROBLEM.search(rest) or courtesies.MATTER_BESIDE_POINTER.search(rest))


def _has_matter_beside_verdict(text: str) -> bool:
    """Whether a verdict also wishes for something of substance ("if they add experiments with")."""
    return courtesies.MATTER_IN_VERDICT.search(text) is not None


def _has_no_matter(text: str) -> bool:
    words = [word.lower() for word in _WORD.findall(text)]
    return len(words) <= _MOST_WORDS_OF_COURTESY and not any(
        word not in courtesies.COURTESY_WORDS for word in words
    )
