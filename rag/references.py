"""The papers that a question counts ("the second one") or names by ID, as far as code can tell.

Pure; English only: a question in another language is translated first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rag.followup import Mention, Turn


@dataclass(frozen=True, slots=True)
class Resolved:
    """A question with titles in place of references.

    `named`: papers that it is about. `among`: the only papers that it may be answered from
    ("which of these ..."), or none for all.
    """

    text: str
    named: tuple[Mention, ...] = ()
    among: tuple[Mention, ...] = ()


_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth".split()
_RELATIVE = ("former", "latter", "last")
_NUMBERS = "one two three four five six seven eight nine ten".split()
_ORDINAL = rf"(?:{'|'.join(_ORDINALS)}|\d{{1,2}}(?:st|nd|rd|th)|last|former|latter)"
_HEAD = r"(?:one|paper|article|work|abstract|study|source|result|reference)"
_VERB = (
    r"(?:(?:differ|compare|do|does|is|has|have|had|say|reach|achieve|propose)s?\b"
    r"|(?:use|report|show)s?\b(?!\s+(?:of|on|to|in|for)\b))"  # no "first use of"
)

_BY_ORDER = re.compile(
    rf"\b(?P<the>the\s+)?(?P<word>{_ORDINAL})\s+{_HEAD}\b"
    rf"|\bthe\s+(?P<bare>{_ORDINAL})(?=\s*(?:[?.!,;:]|\Z)|\s+{_VERB}|\s+and\s+the\s+{_ORDINAL}\b)"
    r"|\b(?:paper|source|reference)\s+#?(?P<number>[0-9]{1,18})\b(?![.%]\w)"
    r"|(?:\bnumber\s+#?|(?<!\w)#)(?P<sign>[0-9]{1,2})\b(?![.%]\w)",
    re.IGNORECASE,
)
# Behind an ordinal that counts no papers shown: "the first work to use", "first one-shot".
_LISTED = r"(?!(?:these|those|them)\b|(?:the|this|that|your)\s+(?:list|answer)\b)"
_QUALIFIED = re.compile(rf"-|\s+(?:to|on|of|that)\s+{_LISTED}", re.IGNORECASE)
# And where it may be the first, the last or the best there is at all.
_NARROWED = re.compile(
    rf"\s+(?:in|for|by|from|with|using|about|which|who|where)\s+{_LISTED}", re.IGNORECASE
)
_CLOSED = re.compile(r"\s*(?:[?.!,;:]|\Z)|['’]s\b|\s+about\s*(?:[?.!,;:]|\Z)", re.IGNORECASE)
# Before one that is asked for itself: "which was the first?", "which method is number 1?".
_WHICH_IS = re.compile(r"\b(?:which|who)\s+(?:is|was)\s*\Z", re.IGNORECASE)
_WHICH_ONE_IS = re.compile(r"\b(?:which|who)\b[^?.!,;]*\b(?:is|was)\s*\Z", re.IGNORECASE)
_WHAT_IS = re.compile(r"\bwhat(?:\s+(?:is|was)|['’]s)\s*\Z", re.IGNORECASE)
# "its first paper", "a second study".
_OWN = re.compile(r"(?:\b(?:its|their|his|her|my|our|an?|very|whose)|['’]s)\s+\Z", re.IGNORECASE)
_SEVERAL = re.compile(
    rf"\b(?P<which>(?:which|what|any|all|each|both|one|none|some|how\s+many|either|neither)(?:\s+ones?)?"
    rf"\s+of\s+)(?P<them>(?:these|those|them|the\s+(?:{'|'.join(_NUMBERS)}))"
    rf"(?:\s+(?:{'|'.join(_NUMBERS)}))?(?:\s+{_HEAD}s?)?)\b"
    rf"|\b(?P<plural>(?:these|those|the\s+two|both|all\s+(?:these|those|of\s+them))\s+"
    r"(?:papers|articles|works|abstracts|studies))\b",
    re.IGNORECASE,
)
_COMPARISON = re.compile(r"\b(?:differs?|different|compares?)\b(?!\s+(?:from|to|with)\b)", re.I)
# Titles end like this where they were cut from the text.
_CUT = re.compile(r"\s*…\Z")
# In brackets, letters and digits without a blank: an ID, and neither a citation nor an interval.
_MARKED = re.compile(r"\[(?P<id>(?=[^\]]*\d)(?=[^\]]*[^\W\d_])\w[\w.:/-]{0,199})\]")
# An ID of figures alone would be taken for every 10 and every year; these are no other number.
_FIGURES = re.compile(r"[\W\d_]+\Z")
_REGISTERED = re.compile(r"\d{4}\.\d{4,5}\Z|10\.\d{4,9}/")  # arXiv, DOI
_ID_LIKE = re.compile(r"\[(?P<marked>[^\[\]\n]{1,200})\]|(?<![\w-])(?P<bare>[\w][\w.:/-]*\w)")


def resolve(
    question: str, history: Sequence[Turn], find: Callable[[str], Mention | None]
) -> Resolved:
    """Put titles where the question counts papers ("the second one") or gives their IDs.

    They are counted as the latest answer that showed enough of them did. `find` looks an ID up.
    """
    among: list[Mention] = []
    named: list[Mention] = []

    def several(match: re.Match[str]) -> str:
        shown = _shown(history, 2)
        if len(shown) < 2:
            return match[0]
        among.extend(shown)
        return f"{match['which']}these papers" if match["which"] else "these papers"

    def one(match: re.Match[str]) -> str:
        mention = _counted(match, history, find) if _refers(match) else None
        if mention is None:
            return match[0]
        named.append(mention)
        return title_of(mention)

    text = _BY_ORDER.sub(one, _SEVERAL.sub(several, question))
    text = _compared(text, named, history)
    text = _with_ids(text, named, history, find)
    return Resolved(text, tuple(dict.fromkeys(named)), tuple(dict.fromkeys(among)))


def title_of(mention: Mention) -> str:
    """The title in quotes, without the sign that it was cut."""
    return f"“{_CUT.sub('', mention.title)}”"


def unknown(
    question: str, history: Sequence[Turn], listed: int, find: Callable[[str], Mention | None]
) -> str:
    """What is said where the question refers to a paper that there is not; else nothing.

    `listed` papers were counted in a list beside those of `history`. What may be no reference to
    a paper at all is let pass: an ordinal or a "source 3" before anything was shown, a "#12".
    """
    most = max([listed, *(len(turn.papers) for turn in history)])
    for match in _BY_ORDER.finditer(question):
        if _refers(match) and _counted(match, history, find) is None:
            said = _no_such(match, most)
            if said:
                return said
    before = _by_id(history)
    for match in _MARKED.finditer(question):
        if match["id"] not in before and find(match["id"]) is None:
            return (
                f"There is no paper [{match['id']}] in the store. Where no paper is meant, leave "
                "out the brackets."
            )
    return ""


def _no_such(match: re.Match[str], most: int) -> str:
    """Why an ordinal or a number counts no paper, of `most` that were listed."""
    papers = f"{most} paper{'' if most == 1 else 's'}"
    if number := match["number"]:
        if int(number) <= most and int(number):
            return ""
        if most:
            return f"There is no paper {number}: the list has {papers}, and none has this ID."
        if match[0].lower().startswith("paper"):
            return f"There is no paper {number}: none has this ID, and none was listed yet."
        return ""
    said = (match["word"] or match["bare"] or "last").lower()
    if not most or said in _RELATIVE or _place(said) <= most:
        return ""
    return f"There is no {said} one: the list has {papers}. Count again, or give an ID."


def _place(said: str) -> int:
    """The number that an ordinal or a number says."""
    return _ORDINALS.index(said) + 1 if said in _ORDINALS else int(re.sub(r"\D", "", said))


def _shown(history: Sequence[Turn], least: int) -> tuple[Mention, ...]:
    """The papers of the latest turn that showed at least so many."""
    return next((t.papers for t in reversed(history) if len(t.papers) >= least), ())


def _refers(match: re.Match[str]) -> bool:
    """Whether an ordinal or a number counts the papers shown, and not works in general."""
    before, behind = match.string[: match.start()], match.string[match.end() :]
    closed = _CLOSED.match(behind) is not None
    if _QUALIFIED.match(behind) or _WHICH_IS.search(before):
        return False
    if match["word"] and not match["the"]:
        return closed and not _OWN.search(before)
    extreme = match["sign"] or (match["word"] or "").lower() in ("first", "1st", "last")
    if extreme and not closed and _NARROWED.match(behind):
        return False
    return not (_WHICH_ONE_IS if closed else _WHAT_IS).search(before)


def _counted(
    match: re.Match[str], history: Sequence[Turn], find: Callable[[str], Mention | None]
) -> Mention | None:
    said = (match["word"] or match["bare"] or match["number"] or match["sign"]).lower()
    if said in ("former", "latter"):
        pair = _shown(history, 2)
        return pair[said == "latter"] if pair else None
    if said == "last":
        shown = _shown(history, 1)
        return shown[-1] if shown else None
    before = _by_id(history).get(said) if match["number"] else None
    place = _place(said)
    shown = _shown(history, place)
    if before is None and shown and place > 0:
        return shown[place - 1]
    return before or (find(said) if match["number"] else None)


def _by_id(history: Sequence[Turn]) -> dict[str, Mention]:
    """The papers shown so far."""
    return {paper.paper_id: paper for turn in history for paper in turn.papers}


def _compared(text: str, named: list[Mention], history: Sequence[Turn]) -> str:
    """Say what the one paper counted is compared with: the others shown beside it."""
    if len(named) != 1 or not _COMPARISON.search(text):
        return text
    others = [p for p in _shown(history, 2) if p.paper_id != named[0].paper_id][:2]
    if not others:
        return text
    named.extend(others)
    listed = " and ".join(title_of(other) for other in others)

    def completed(match: re.Match[str]) -> str:
        return f"{match[0]} {'with' if match[0].lower().startswith('comp') else 'from'} {listed}"

    return _COMPARISON.sub(completed, text, count=1)


def _with_ids(
    text: str,
    named: list[Mention],
    history: Sequence[Turn],
    find: Callable[[str], Mention | None],
) -> str:
    """Put titles where IDs stand: marked as [ID], or words that hold a digit or were shown."""
    before = _by_id(history)

    def titled(match: re.Match[str]) -> str:
        said = match["marked"] or match["bare"]
        if not match["marked"] and _FIGURES.match(said) and not _REGISTERED.match(said):
            return match[0]
        mention = before.get(said)
        if mention is None and (match["marked"] or any(c.isdigit() for c in said)):
            mention = find(said)
        if mention is None:
            return match[0]
        named.append(mention)
        # A title that its ID spells already ("TopoPT", topopt) needs no quotes.
        same = said.casefold() == mention.title.casefold()
        return mention.title if same else title_of(mention)

    return _ID_LIKE.sub(titled, text)
