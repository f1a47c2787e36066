"""The headings of a review form: what a section is called, and what may be asked in it."""

from __future__ import annotations

import re
from enum import Enum


class Role(Enum):
    """How the text of a section is read.

    In concerns and questions everything asks, unless it is praise or a courtesy; in mixed text,
    limits and praise only what says so; in a summary only what the authors are invited to.
    """

    NONE = "none"
    PRAISE = "praise"
    CONCERNS = "concerns"
    QUESTIONS = "questions"
    LIMITS = "limits"
    MIXED = "mixed"
    SUMMARY = "summary"


# Every word of a plain "Label:" must be one of these, so that no sentence passes for a heading.
_HEADING_WORDS = frozenset(
    "strength strengths weakness weaknesses and or of the this paper papers work submission "
    "manuscript to for on in with authors author reasons reason accept reject acceptance rejection "
    "main major minor key other additional general detailed specific further potential your my "
    "comments comment feedback remarks remark issues issue concerns concern questions question "
    "suggestions suggestion improvement improvements limitations limitation summary "
    "overview review "
    "pros cons positives negatives positive negative points point aspects aspect merits drawbacks "
    "clarity quality novelty significance originality reproducibility soundness presentation "
    "contribution contributions ethics ethical societal social impact broader considerations "
    "discussion rebuttal response typos typo nits correctness technical empirical theoretical "
    "experimental experiments rating score confidence recommendation decision justification "
    "overall evaluation assessment methods methodology relation prior related addressed address "
    "adequately flag "
    "code conduct first time reviewer responsibility acknowledgement references reference "
    "writing style relevance verdict conclusion claims evidence part list form field flagged "
    "scores details misc miscellaneous after before period please any about what are is criticism "
    "criticisms criticality clarification clarifications edits errata highlights".split()
)
_ASPECT_WORDS = frozenset(
    "clarity quality novelty significance originality reproducibility soundness presentation "
    "contribution contributions correctness technical empirical theoretical experimental "
    "experiments evaluation methods methodology relevance writing style relation prior related "
    "work and of the to in claims evidence".split()
)
# In this order: "summary of weaknesses" holds weaknesses, "summary of the review" an overall view.
_ROLES: tuple[tuple[re.Pattern[str], str, Role], ...] = tuple(
    (re.compile(pattern), name, role)
    for pattern, name, role in (
        (r"\breferences?\b(?! to)", "references", Role.NONE),
        (r"\bstrength.*weakness|\bpros\b.*\bcons\b", "strengths and weaknesses", Role.MIXED),
        (r"positive.*negative|accept.*reject", "strengths and weaknesses", Role.MIXED),
        (
            r"\bweakness|\bcons\b|negative (?:points|aspects)|\bnegatives\b|drawback|"
            r"reasons? to reject"
            r"|reasons? for rejecti|\bcritici",
            "weaknesses",
            Role.CONCERNS,
        ),
        (r"\bquestion|clarification|rebuttal|for (?:the )?authors", "questions", Role.QUESTIONS),
        (r"\bethic|code of conduct", "ethics", Role.LIMITS),
        (r"limitation|(?:societal|social|broader) impact", "limitations", Role.LIMITS),
        (r"\bconcerns?\b|\bissues?\b", "weaknesses", Role.CONCERNS),
        (
            r"suggestion|improvement|\bminor\b|\btypos?\b|\bnits\b|\bedits\b|errata",
            "suggestions",
            Role.QUESTIONS,
        ),
        (
            r"\bstrength|\bpros\b|positive|reasons? to accept|reasons? for accept|\bmerits?\b|"
            r"highlights",
            "strengths",
            Role.PRAISE,
        ),
        (r"acknowledge?ment|responsibility|first time", "form", Role.NONE),
        (
            r"\bsummary of (?:the |my |your )?review|justification|overall|recommendation|verdict"
            r"|conclusion",
            "overall",
            Role.MIXED,
        ),
        (r"\bsummary|overview|contributions? of", "summary", Role.SUMMARY),
        (r"\brating|\bscore|confidence|decision", "rating", Role.NONE),
        (
            r"\breview\b|comments?\b|feedback|remarks?\b|discussion|\bdetails\b|\bpoints?\b",
            "comments",
            Role.MIXED,
        ),
    )
)
_LONGEST_VALUE = 200
_NOT_WORDS = re.compile(r"[^a-z]+")
_VALUE = re.compile(
    r"\W*(?:\d[\d.\s/:]*(?:\W.{0,160})?|yes|no|n/?a|none|excellent|good|fair|poor)\W*", re.I
)
_RATED = re.compile(
    r"(?:[\w-]+ ){0,3}(?:rating|score|confidence|soundness|presentation|contribution|"
    r"recommendation|"
    r"overall|correctness|novelty|significance|originality|clarity|quality|reproducibility|conduct|"
    r"flag\w*|decision|excitement|expertise|impact|ethics?(?: \w+){0,3})",
    re.I,
)


def normalised(name: str) -> str:
    """A heading without marks, case and numbers: "clarity_quality" is "clarity quality"."""
    return _NOT_WORDS.sub(" ", name.lower().replace("&", " and ")).strip()


def known_heading(name: str) -> tuple[str, Role] | None:
    """The usual name and the role of a section so headed; None where no review form has it."""
    words = normalised(name).split()
    if not words or len(words) > 10 or not _HEADING_WORDS.issuperset(words):
        return None
    joined = " ".join(words)
    for pattern, canonical, role in _ROLES:
        if pattern.search(joined):
            return canonical, role
    return (joined, Role.MIXED) if is_aspect(name) else None


def is_aspect(name: str) -> bool:
    """Whether it names a side of the paper ("clarity") that praise and concern alike have."""
    words = normalised(name).split()
    only_small = all(word in ("and", "of", "the", "to", "in") for word in words)
    return not only_small and _ASPECT_WORDS.issuperset(words)


def is_rating(label: str, value: str) -> bool:
    """Whether a "label: value" is a mark and not text: "Soundness: 3 good", "Rating: 5"."""
    rated = len(value) <= _LONGEST_VALUE and _RATED.fullmatch(label.strip(" *_#")) is not None
    return rated and _VALUE.fullmatch(value) is not None
