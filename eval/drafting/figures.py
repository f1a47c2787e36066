"""Numbers in a sentence that a question can ask for, and the patterns that find them again.

>>> [figure.values for figure in figures("It has 5.84 M parameters and beats CIFAR-10 nets.")]
[('5.84',)]
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rag.facts import numbers

_NUMBER = r"[-−]?(?:\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?)"
# No digits of a name (mAP50, CIFAR-10), a formula (4^b, 1/d), a longer number or a tolerance (±).
_ALONE = r"(?<![\w.,^/±−–-])(?<!± )(?<!\w\()"
_ENDS = r"(?![\w^/±]|[-–]\w|[.,]\d|\s?±\s?\d+\s?%)"
_UNIT = r"\s?(?:%|×|percent\b|percentage points|points\b|p\.p\.|[kKMBT](?![\w-])|million|billion)"
_FIGURE = re.compile(rf"{_ALONE}{_NUMBER}(?P<unit>{_UNIT})?{_ENDS}")
_PAIR = re.compile(
    rf"\bfrom (?P<first>{_NUMBER})(?:{_UNIT})? to (?P<second>{_NUMBER})(?:{_UNIT})?{_ENDS}"
)
_WORD_NUMBERS = dict(
    zip(
        "three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety".split(),
        [*range(3, 20), *range(20, 100, 10)],
        strict=True,
    )
)
_SPELLED = re.compile(rf"(?<![\w-])(?:{'|'.join(_WORD_NUMBERS)})(?![\w-])", re.IGNORECASE)
# "53 workflows", "ten planning domains": what is counted follows, in the plural.
_COUNTED = re.compile(r"\s(?:[a-z][\w-]*\s){0,2}[a-z][\w-]*[^\Ws]s\b(?!-)")
_COUNTED_WORDS = re.compile(
    r"\s?(?:[kKMBT]\b|million\b|billion\b)?\s"
    r"(?P<words>(?:[a-z][\w-]*\s){0,2}?[a-z][\w-]*[^\Ws]s|[A-Z]+s)\b(?!-)"
)
_MORE = re.compile(
    r"\s(?:more|less|better|worse|[a-z]{3,}er|improvement|increase|gain|drop|reduction|decrease)\b"
)
_BY = re.compile(r"\bby (?:about |around |roughly |up to |over |more than |nearly |almost )?\Z")
# "AlphaFold 3", "turn 10", "Figure 2": the number belongs to what stands before it.
_NUMBERED = re.compile(
    r"(?:\b[A-Z][\w-]*|\b(?:turn|table|figure|section|top|stage|layer|level|step|version|equation|"
    r"theorem|lemma|order|type|year|factor of))\s\Z"
)
_MEASURE_AFTER = re.compile(r"\s(?P<measure>[A-Za-z]*[A-Z][\w@-]*)\b(?<!OF)(?!\s[A-Z])")
_MEASURE_BEFORE = re.compile(
    r"(?<![\w-])(?P<measure>(?:(?!an? |the )[a-z][a-z-]* )?(?:accuracy|rate|score|error|drift|"
    r"AUROC|F1|precision|recall|speed-?up|performance|loss|perplexity|ratio|cost|latency))"
    r"(?: score| rate)? "
    r"(?:of|is|was|reaches) (?:about |around |up to |over |only )?\Z"
)
_CLAUSES_END = re.compile(r"[,;:](?=\s)")
_BRACKETS = re.compile(r"\([^()]*\)")
_UNIT_FIRST = re.compile(rf"\A{_UNIT}")
_CLAUSES = re.compile(r"[,;:]\s|[()]")


@dataclass(frozen=True, slots=True)
class Figure:
    """One number, or a pair "from ... to ...": `spans` are their places in the sentence.

    `weight` is higher for what is worth asking: measured values before counts before small counts.
    """

    spans: tuple[tuple[int, int], ...]
    values: tuple[str, ...]
    weight: float

    def taken_out(self, sentence: str) -> str:
        """The sentence with a blank for each number: "It has ____ M parameters"."""
        for start, end in reversed(self.spans):
            sentence = f"{sentence[:start]}____{sentence[end:]}"
        return sentence

    def opening(self, sentence: str) -> str:
        """How a question for it begins: "By what factor", "How many parameters", "What"."""
        if len(self.spans) > 1:
            return "From what value to what value"
        (start, end), *_ = self.spans
        before, after = sentence[:start], sentence[end:]
        if re.match(r"\s?×", after):
            return "By what factor"
        if re.match(r"\stimes\b", after):
            return "How many times"
        if re.match(r"\s?(?:percentage points|points|p\.p\.)", after):
            return "By how many percentage points"
        if unit := re.match(r"\s?(?:%|percent\b)", after):
            compared = _MORE.match(after, unit.end()) or _BY.search(before)
            return "By what percentage" if compared else _what(before, after[unit.end() :])
        counted = _COUNTED_WORDS.match(after)
        return f"How many {counted['words']}" if counted else _what(before, after)

    def clause(self, sentence: str) -> str:
        """What stands around the number, to the next comma or bracket, with the blank."""
        return next(
            (part for part in _CLAUSES.split(self.taken_out(sentence)) if "____" in part), "____"
        ).strip(" .")

    def about(self, sentence: str) -> str:
        """The words beside the number that say what it counts or measures.

        "up to 100× fewer edges between them" -> "edges between them": what is compared follows;
        else the four words on each side.
        """
        (start, _), (_, end) = self.spans[0], self.spans[-1]
        before, after = (
            _CLAUSES_END.split(_BRACKETS.sub(" ", part))[i]
            for part, i in ((sentence[:start], -1), (_UNIT_FIRST.sub("", sentence[end:]), 0))
        )
        if compared := _MORE.match(f" {after.strip()}"):
            more = after.strip()[compared.end() - 1 :].split()
            return " ".join(more[:4]) or compared[0].strip()
        return " ".join([*before.split()[-4:], *after.split()[:4]])

    @property
    def patterns(self) -> tuple[str, ...]:
        """A regular expression for each number."""
        return tuple(dict.fromkeys(number_pattern(value) for value in self.values))


def _what(before: str, after: str) -> str:
    """("a failure rate of", "") -> "What failure rate"; ("", " mIoU on X") -> "What mIoU"."""
    measure = _MEASURE_AFTER.match(after) or _MEASURE_BEFORE.search(before)
    return f"What {measure['measure']}" if measure else "What is"


def figures(sentence: str) -> list[Figure]:
    """What can be asked for in `sentence`, in reading order."""
    found = list(_pairs(sentence))
    taken = [span for figure in found for span in figure.spans]
    for figure in (*_measured(sentence), *_spelled(sentence)):
        (start, end), *_ = figure.spans
        if not any(start < other_end and other_start < end for other_start, other_end in taken):
            found.append(figure)
    return sorted(found, key=lambda figure: figure.spans)


def number_pattern(value: str) -> str:
    r"""A regular expression that finds a number, but not inside a longer one.

    "17,861" -> (?<![\d.,])17[,\s]?861(?!\d|[.,]\d); "50.40" also finds 50.4, and "8" finds eight.
    """
    plain = value.lstrip("-−").casefold()
    if plain in _WORD_NUMBERS:
        return rf"\b{plain}\b|{_guarded(str(_WORD_NUMBERS[plain]))}"
    spelled = next((word for word, n in _WORD_NUMBERS.items() if str(n) == plain), None)
    return _guarded(plain) + (rf"|\b{spelled}\b" if spelled else "")


def _guarded(plain: str) -> str:
    whole, point, rest = plain.partition(".")
    kept = rest.rstrip("0")
    zeros = len(rest) - len(kept)
    decimals = rf"(?:\.0{{1,{zeros}}})?" if point else ""
    if kept:
        decimals = rf"\.{kept}{'0?' * zeros}"
    digits = "0?" if whole == "0" and kept else whole.replace(",", r"[,\s]?")
    return rf"(?<![\d.,]){digits}{decimals}(?!\d|[.,]\d)"


def _pairs(sentence: str) -> Iterator[Figure]:
    for match in _PAIR.finditer(sentence):
        spans = (match.span("first"), match.span("second"))
        if numbers(match["first"]) != numbers(match["second"]):
            yield Figure(spans, (match["first"], match["second"]), weight=3.0)


def _measured(sentence: str) -> Iterator[Figure]:
    for match in _FIGURE.finditer(sentence):
        end = match.start("unit") if match["unit"] else match.end()
        value = sentence[match.start() : end]
        if _NUMBERED.search(sentence[: match.start()]) or not numbers(value):
            continue
        if match["unit"] or "." in value or "," in value:
            # "7B", "128k" mostly say which model or setting, not what came out.
            size = (match["unit"] or "").strip() in ("k", "K", "B", "M", "T")
            yield Figure(((match.start(), end),), (value,), weight=1.5 if size else 3.0)
        elif value.isdigit() and _COUNTED.match(sentence, end):
            yield Figure(((match.start(), end),), (value,), weight=2.0 if len(value) > 1 else 1.5)


def _spelled(sentence: str) -> Iterator[Figure]:
    for match in _SPELLED.finditer(sentence):
        if _COUNTED.match(sentence, match.end()):
            yield Figure((match.span(),), (match[0],), weight=1.0)
