"""Sentence boundaries in cleaned abstracts; conservative, since a quote may be long but not torn.

>>> sentence_spans("It gets 63.9% mAP50. See Fig. 3.")
[Span(start=0, end=20), Span(start=21, end=32)]
"""

from __future__ import annotations

import re

from rag.types import Span

# A full stop with the closing marks and bracketed references that belong to its sentence. It
# begins with one set of characters, so that the search passes over all others in one step.
_STOP = re.compile(
    r"[.!?…؟۔।॥‽。！？｡．](?:(?<=[.!?…؟۔।॥‽])(?<![.!?…؟۔।॥‽]{2})"
    r"[.!?…؟۔।॥‽]*+[\"'”’»)\]}]*+(?:\[[0-9][0-9,;–\- ]{0,30}\])*+(?=\s)"
    # Authors forget the space: "during training.We propose".
    r"|(?<=[a-z]{3}[.!?])(?=[A-Z][a-z]*[ ,])"
    r"|(?<=[。！？｡．])[。！？｡．]*+[\"'”’」』）】》〉)\]]*+)"
)
_TO_LAST_WORD = re.compile(r".*[\s(\[{\"'“‘/—–]", re.S)
_FIRST_WORD = re.compile(r"[\w'’-]+")
_DOTTED = re.compile(r"(?:[A-Za-z]\.)+[A-Za-z]?")
_MIXED_CASE_NAME = re.compile(r"[a-z]+-?[A-Z]|[a-z]{1,3}-[A-Z]")
# Longest abbreviation looked back for, in characters.
_LOOK_BACK = 24

# What follows belongs to them: the sentence never ends there.
_NEVER_LAST = frozenset(
    "e.g i.e eg ie cf vs viz resp esp approx ca fig figs eq eqs eqn sec secs tab tabs ref "
    "refs app thm lem prop alg ch chap vol no nos pp dr prof mr mrs ms st mt dept univ incl "
    "excl sp spp def cor ed eds trans ver min max".split()
)
# Only before a number are these abbreviations: "No. 3", but "the answer is no."
_BEFORE_NUMBER = frozenset(
    "no nos app ch prop min max ref refs def cor ed ms st sec tab alg p pp vol".split()
)
# The sentence may end there; it does when one of `_STARTERS` follows.
_RARELY_LAST = frozenset(
    "al w.r.t i.i.d u.s u.k u.n e.u a.k.a a.m p.m jr sr inc ltd co corp".split()
)
_STARTERS = frozenset(
    "a an the this that these those we our they their it its i he she in on at to for from by "
    "with as if when while where since because although though however moreover furthermore "
    "additionally also thus therefore hence then here there both each all most many some "
    "several such no not experiments extensive results experimental code unlike despite given "
    "using based motivated existing recent previous prior specifically finally first second "
    "third empirically but and or yet so nevertheless instead inspired building through "
    "across under over after before".split()
)


def sentence_spans(text: str) -> list[Span]:
    """The sentences of `text` in order, without surrounding white space, covering all other text.

    Stops after abbreviations, initials and inside numbers, versions and addresses end nothing, nor
    does a stop before a lower-case word. However long, a sentence is one span.
    """
    spans: list[Span] = []
    start = 0
    for stop in _STOP.finditer(text):
        if stop[0][0] in "。！？｡．" or _ends_sentence(text, start, stop):
            _add(spans, text, start, stop.end())
            start = stop.end()
    _add(spans, text, start, len(text))
    return spans


def _add(spans: list[Span], text: str, start: int, end: int) -> None:
    sentence = text[start:end]
    stripped = sentence.lstrip()
    if stripped:
        first = start + len(sentence) - len(stripped)
        spans.append(Span(first, first + len(stripped.rstrip())))


def _ends_sentence(text: str, start: int, stop: re.Match[str]) -> bool:
    following = text[stop.end() : stop.end() + 40].lstrip()
    if not following:
        return True
    before = text[max(start, stop.start() - _LOOK_BACK) : stop.start()]
    if not text[stop.end()].isspace():
        return _starts_anew(following) and _last_word(before).isalpha()
    goes_on = following[0].islower() and not _MIXED_CASE_NAME.match(following)
    if goes_on or following[0] in ",;:)]}%=+" or not before.strip():
        return False
    if stop[0][0] != "." or stop[0].startswith(".."):
        return True
    return not _is_list_number(text, start, stop) and not _is_abbreviation(before, following)


def _is_list_number(text: str, start: int, stop: re.Match[str]) -> bool:
    """Whether the sentence so far is only a number: "2. Second item"."""
    return (
        stop[0] == "."
        and stop.start() - start <= 5
        and text[start : stop.start()].strip().isdigit()
    )


def _is_abbreviation(before: str, following: str) -> bool:
    word = _last_word(before).strip(",;:")
    # "CF" is counterfactual fairness, "Cf" an abbreviation.
    lowered = word.lower() if len(word) < 2 or not word.isupper() or "." in word else word
    if lowered in _BEFORE_NUMBER:
        return following[0].isdigit() or (word[0].isupper() and lowered in ("st", "ms"))
    if lowered in _NEVER_LAST:
        return True
    # "J. Smith", "U.S. data"; but "vitamin C. We ..."
    initial = len(word) == 1 and word.isupper() and word.isascii()
    if lowered in _RARELY_LAST or initial or _DOTTED.fullmatch(word + "."):
        return not _starts_anew(following)
    return False


def _last_word(before: str) -> str:
    left = _TO_LAST_WORD.match(before)
    return before[left.end() :] if left else before


def _starts_anew(following: str) -> bool:
    """Whether it begins with a capitalised word that usually begins a sentence."""
    first = _FIRST_WORD.match(following)
    return first is not None and first[0][0].isupper() and first[0].lower() in _STARTERS
