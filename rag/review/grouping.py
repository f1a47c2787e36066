"""The sentences of one paragraph or point -> the spans that ask, one for each matter."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag.review.headings import Role
from rag.review.sentences import Sentence

ALL_ASK = frozenset({Role.CONCERNS, Role.QUESTIONS})
_PRAISES = frozenset({Role.PRAISE, Role.SUMMARY})
_REFERS_BACK = re.compile(
    r"\b(?:this|that|these|those|it|its|such|they|them|there|here|so)\b", re.I
)


class _Group:
    """Sentences of one matter.

    `waiting` follow its question and may lead to the next one; `praise` is kept only if the matter
    goes on after it.
    """

    def __init__(self) -> None:
        self.sentences: list[Sentence] = []
        self.waiting: list[Sentence] = []
        self.praise = False
        self.asked = False
        self.objected = False
        self.requested = False

    def take(self, sentence: Sentence) -> None:
        self.sentences += [*self.waiting, sentence]
        self.waiting = []
        self.praise = False
        self.asked = self.asked or sentence.signs.question
        self.requested = self.requested or sentence.signs.requests
        self.objected = self.objected or sentence.signs.asks or sentence.signs.negative


def groups(plain: str, sentences: Sequence[Sentence], role: Role) -> list[tuple[int, int]]:
    """Spans `(start, end)` of the matters in `sentences`, in order.

    Where all asks, a paragraph without any word of asking is one matter unless it praises.
    """
    if role in ALL_ASK:
        kept = [not s.signs.void for s in sentences]
    else:
        kept = _asking(plain, sentences, role)
    found: list[_Group] = []
    current = _Group()
    for sentence, keep in zip(sentences, kept, strict=True):
        if not keep:
            current = _closed(current, found)
        elif sentence.signs.reference:
            if current.sentences:
                current.take(sentence)
        elif sentence.signs.praise and not sentence.signs.faint:
            current.praise = bool(current.sentences)
        elif _begins_another(sentence, current):
            lead = [] if sentence.signs.further or not sentence.signs.question else current.waiting
            current.waiting = current.waiting[len(lead) :]
            current = _closed(current, found)
            for leading in [*lead, sentence]:
                current.take(leading)
        elif current.asked and not sentence.signs.question and not sentence.signs.backward:
            current.waiting.append(sentence)
        else:
            current.take(sentence)
    _closed(current, found)
    return [(g.sentences[0].start, g.sentences[-1].end) for g in _that_ask(found, sentences)]


def _closed(current: _Group, found: list[_Group]) -> _Group:
    sentences = current.sentences + current.waiting
    while sentences and _merely_praises(sentences[-1]) and not sentences[-1].signs.backward:
        sentences.pop()
    if sentences:
        current.sentences = sentences
        found.append(current)
    return _Group()


def _merely_praises(sentence: Sentence) -> bool:
    return sentence.signs.praise and not sentence.signs.negative


def _begins_another(sentence: Sentence, current: _Group) -> bool:
    if sentence.signs.requests and current.requested:
        return True
    if sentence.signs.question and current.asked:
        return not sentence.signs.depends
    if sentence.signs.turn and current.sentences and all(map(_merely_praises, current.sentences)):
        return True
    anew = sentence.signs.further or (current.praise and sentence.signs.turn)
    return anew and sentence.signs.negative and current.objected and not sentence.signs.depends


def _that_ask(found: list[_Group], sentences: Sequence[Sentence]) -> list[_Group]:
    """Without the groups that only state, if others ask or the rest is praise."""
    asking = [g for g in found if any(s.signs.asks for s in g.sentences)]
    if asking:
        return [g for g in found if any(s.signs.asks or s.signs.negative for s in g.sentences)]
    return [] if any(map(_merely_praises, sentences)) else found


def _asking(plain: str, sentences: Sequence[Sentence], role: Role) -> list[bool]:
    """Which sentences ask by their words, or lead to or go on about one that does."""
    kept: list[bool] = []
    for n, sentence in enumerate(sentences):
        asks = sentence.signs.asks and _asks_in(role, sentence)
        goes_on = sentence.signs.backward or (sentence.signs.fault and role in _PRAISES)
        after = bool(kept) and kept[-1] and goes_on
        kept.append(asks or (after and not sentence.signs.void and not sentence.signs.praise))
        before = sentences[n - 1] if n else None
        if asks and sentence.signs.question and before is not None and not before.signs.void:
            words = plain[sentence.start : sentence.end]
            refers = _REFERS_BACK.search(words) is not None
            kept[n - 1] = kept[n - 1] or (refers and not before.signs.praise)
    return kept


def _asks_in(role: Role, sentence: Sentence) -> bool:
    signs = sentence.signs
    if role is Role.SUMMARY:
        return signs.invites
    turned = signs.question or signs.invites or (signs.turn and signs.fault)
    return role is not Role.PRAISE or turned
