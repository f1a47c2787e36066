r"""How the parts of a formula look in one line of Unicode; all pure."""

from __future__ import annotations

import re
import unicodedata

from rag.latex.symbols import SUBSCRIPTS, SUPERSCRIPTS

# Stands beside an operator's name until its neighbours are known: `n\log n`, `\log(n)`.
JOINT = "\ue002"

_JOINT_BETWEEN_LETTERS = re.compile(f"(?<=[\\w)\\]}}′⟩‖|]){JOINT}+(?=[\\w√])")
_MULTI_LETTER = re.compile(r"(?:[A-Z]{2,}|[A-Za-z]{3,})\Z")
_PRODUCT = re.compile(r"[\w√.′]+|√?[\w.]*\([^()]*\)")
_ATOM = re.compile(r"[\d.]+|√?\w[⁰-₟′²³¹]*|√\([^()]*\)")
_WORD = re.compile(r"(?:\A|(?<=\s))(?<!\\ )[A-Za-z]{2,}(?=[\s,.;:)]|\Z)")
_HIDDEN_WORDS = re.compile(r"\\[A-Za-z]+|\{[^{}]*\}")
# Over one letter these stay readable where Unicode has no composed letter: x̂, x̃, x̄, x⃗.
_FREE_MARKS = "\u0302\u0303\u0304\u20d7"


def join(text: str) -> str:
    """Operator names part from letters and digits, not from brackets: `n log n`, `log(n)`."""
    return _JOINT_BETWEEN_LETTERS.sub(" ", text).replace(JOINT, "") if JOINT in text else text


def script(content: str, *, up: bool, base: str, follows: str) -> str:
    """A sub- or superscript: Unicode where short, else ASCII (`²`, `ₜ`, `^(-1/d)`, `_max`).

    `base` is what stands before it ("" at the start of a formula), `follows` the next character.
    Digits under a word or at the start join it, as they are typed in a search: `mAP50`, `CO2`.
    """
    content = join(content).strip()
    if not content or (up and content in "*⋆†‡′♮"):
        return content
    if up and content == "∘":
        return "°"
    if not up and content.isdigit() and (not base or _MULTI_LETTER.search(base)):
        return content
    if up and content in ("st", "nd", "rd", "th") and base[-1:].isdigit():
        return content
    table = SUPERSCRIPTS if up else SUBSCRIPTS
    short = content.isdigit() or len(content) == 1 or (len(content) == 2 and content.isalnum())
    if short and all(c in table for c in content):
        return "".join(table[c] for c in content)
    mark = "^" if up else "_"
    bracketed = content[0] == "(" and content.find(")") == len(content) - 1
    word = len(content) == 1 or (not up and content.isalnum() and not follows.isalnum())
    return mark + content if bracketed or word else f"{mark}({content})"


def fraction(top: str, bottom: str, follows: str) -> str:
    """`1/2`, `√3π/2`, `(a + b)/(2n)`; bracketed as a whole where something multiplies it."""
    top, bottom = join(top).strip(), join(bottom).strip()
    top = top if _PRODUCT.fullmatch(top) else f"({top})"
    bottom = bottom if _ATOM.fullmatch(bottom) else f"({bottom})"
    multiplied = follows.isalnum() or follows in ("(", "\\")
    return f"({top}/{bottom})" if multiplied else f"{top}/{bottom}"


def root(content: str, degree: str) -> str:
    """`√3`, `√(n log n)`, `³√x`."""
    content = join(content).strip()
    mark = script(degree, up=True, base="x", follows="") + "√"
    return mark + (content if re.fullmatch(r"[\d.]+|\w", content) else f"({content})")


def accented(letter: str, mark: str) -> str:
    """`letter` under the combining character `mark`; anything but one letter stays bare."""
    letter = letter.strip()
    if len(letter) != 1 or not letter.isalpha():
        return letter
    composed = unicodedata.normalize("NFC", letter + mark)
    return composed if len(composed) == 1 or mark in _FREE_MARKS else letter


def code_point(number: str) -> str:
    """`x2014` or `8212` -> `—`; a space for what is invisible or no character."""
    match = re.fullmatch(r"x([0-9A-Fa-f]{1,6})|([0-9]{1,7})", number)
    point = (int(match[1], 16) if match[1] else int(match[2])) if match else 0
    visible = point < 0x110000 and unicodedata.category(chr(point))[0] not in "CZ"
    return chr(point) if visible else " "


def link(text: str, address: str) -> str:
    """`text (address)`, or one of the two where they say the same."""
    bare = re.sub(r"\A(?:https?://)?(?:www\.)?|/\Z", "", address)
    if not bare or bare in text:
        return text
    return f"{text} ({address})" if text else address


def is_money(content: str, after: str) -> bool:
    """Whether `$content$` is prose between two amounts ("$5 million and $6"), not a formula."""
    if "\n\n" in content:
        return True
    words = len(_WORD.findall(_HIDDEN_WORDS.sub("§", content)))
    open_end = content[-1:].isspace() or content[-1:] in ("-", "–", "—", "~", ",", ";", "/", "(")
    if content.lstrip()[:1].isdigit():
        return words >= 2 or (open_end and (words == 1 or after.isdigit()))
    return words >= 6 or (words >= 3 and "\\" not in content and "=" not in content)
