"""Numbers and names in a text: what a statement may not say unless its paper does.

>>> sorted(numbers("17,861 images, ten classes, 63.9% mAP50"))
['10', '17861', '63.9']
>>> sorted(names("TopoPT beats LitePT-S on SemanticKITTI"))
['litepts', 'semantickitti', 'topopt']
"""

from __future__ import annotations

import re
import unicodedata

from rag.scripts import CJK

_ANY_NUMBER = re.compile(r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+")
# A number that stands alone: not the digits inside a name such as mAP50 or ResNet18; but Chinese
# may touch it ("达到63.9%").
_NUMBER = re.compile(rf"(?<![^\W{CJK}])(?<![.])(?:{_ANY_NUMBER.pattern})")
# "10⁵" is a power of ten, not 105 as NFKC would have it.
_SUPERSCRIPT = re.compile("[⁰¹²³⁴-⁹]+")
# Letters that may follow a number directly as its unit or size: 7B, 5.84M, 32x, 10k, 3D.
_UNIT = re.compile(rf"[A-Za-z]{{1,4}}(?![^\W{CJK}])")
_WORDS = re.compile(rf"[^\W_{CJK}]+(?:[-'’][^\W_{CJK}]+)*")
_WORD_NUMBERS = {
    word: str(value)
    for value, word in enumerate(
        "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
        "sixteen seventeen eighteen nineteen twenty".split(),
        start=2,
    )
} | {
    word: str(value)
    for word, value in zip(
        "thirty forty fifty sixty seventy eighty ninety".split(), range(30, 100, 10), strict=True
    )
}
# Spelled-out factors: "tenfold", "doubles"; a statement may say 2× where the paper says "double".
_FACTORS = {"double": "2", "doubles": "2", "doubled": "2", "twice": "2", "triple": "3", "half": "2"}
_FOLD = re.compile(r"\A(?P<word>[a-z]+)-?fold\Z")
_HYPHENS = re.compile("[\u2010-\u2015\u2212]")


def numbers(text: str) -> frozenset[str]:
    """Every number, as plain digits: "17,861" -> 17861, "0.50" -> 0.5, "ten" -> 10."""
    text = _compatible(text)
    found: set[str] = set()
    for match in _NUMBER.finditer(text):
        after = text[match.end() : match.end() + 6]
        if after[:1].isalpha() and not _UNIT.match(after) and after[:1].isascii():
            continue
        found.add(_plain(match.group()))
    for word in _WORDS.findall(text.lower()):
        found |= _spelled(word).union(*(_spelled(part) for part in word.split("-")))
    return frozenset(found)


def names(text: str) -> frozenset[str]:
    """Words that can only be names: inner capitals (TopoPT, mIoU), acronyms, letters with digits.

    Compared without case, hyphens or a plural s: "SAEs" and "SAE" are one.
    """
    found = set()
    for word in _WORDS.findall(_HYPHENS.sub("-", unicodedata.normalize("NFKC", text))):
        if _is_name(word):
            found.add(name_key(word))
    return frozenset(found)


def name_key(word: str) -> str:
    """The form under which two spellings of a name are equal."""
    key = re.sub(r"[-'’]", "", _HYPHENS.sub("-", unicodedata.normalize("NFKC", word)))
    return (key.removesuffix("s") if len(key) > 2 else key).casefold()


def holds_name(text: str, key: str) -> bool:
    """Whether `text` holds the name, on its own or as a part of another ("LLM" in "MLLMs").

    Part of a word without a capital is none: "world" holds no "RL".
    """
    plain = _HYPHENS.sub("-", unicodedata.normalize("NFKC", text))
    joined = re.sub(r"[-'’]", "", plain)
    own = re.compile(rf"(?<![^\W_]){re.escape(key)}s?(?![^\W_])")
    if own.search(joined.casefold()) or own.search(plain.casefold()):
        return True
    inside = re.finditer(re.escape(key), joined, re.IGNORECASE)
    return any(any(not c.islower() for c in match[0]) for match in inside)


def missing(statement: str, sources: str) -> tuple[str, ...]:
    """Numbers and names of `statement` that `sources` does not hold, sorted."""
    lost = {n for n in numbers(statement) if n not in _all_numbers(sources)}
    lost |= {n for n in names(statement) if not holds_name(sources, n)}
    return tuple(sorted(lost))


def _all_numbers(text: str) -> frozenset[str]:
    """Numbers that may be repeated from a source: also digits inside its names ("top-10")."""
    return numbers(text) | {_plain(match[0]) for match in _ANY_NUMBER.finditer(_compatible(text))}


def _compatible(text: str) -> str:
    """NFKC, with "10⁵" as "10^5"."""
    return unicodedata.normalize("NFKC", _SUPERSCRIPT.sub(r"^\g<0>", text))


def _is_name(word: str) -> bool:
    if any(c.isalpha() and c >= "\u0400" for c in word):
        return False  # another script spells a name in its own way
    parts = re.split(r"[-'’]", word)
    if any(sum(c.isupper() for c in part) >= 2 for part in parts):
        return True
    if any(re.search(r"[a-z][A-Z]", part) for part in parts):
        return True
    has_letter = any(c.isalpha() for c in word)
    return has_letter and any(c.isdigit() for c in word) and word[0].isupper()


def _plain(number: str) -> str:
    number = number.replace(",", "")
    if "." in number:
        number = number.rstrip("0").rstrip(".")
    whole, point, rest = number.partition(".")
    return (whole.lstrip("0") or "0") + point + rest


def _spelled(word: str) -> set[str]:
    if word in _WORD_NUMBERS:
        return {_WORD_NUMBERS[word]}
    if word in _FACTORS:
        return {_FACTORS[word]}
    fold = _FOLD.match(word)
    if fold and fold["word"] in _WORD_NUMBERS:
        return {_WORD_NUMBERS[fold["word"]]}
    return set()
