r"""Text for reading and searching: invisible characters out, markup turned into readable Unicode.

>>> clean(r"\textsc{Hyper-DFS} is **2.18$\times$** faster")
'Hyper-DFS is 2.18× faster'
"""

from __future__ import annotations

import html
import re
import unicodedata

from rag.latex import STAR, UNDER, finish, render

# Part of the store's fingerprint: raise it with every change of what `clean` returns.
CLEANING_VERSION: int = 1

# Sequences that steer a terminal: CSI (ECMA-48 5.4), and OSC, DCS, SOS, PM, APC up to their end.
_TERMINAL_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)|\x1b[ -/]*[0-~]"
)
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f"  # controls that are not white space
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"  # soft hyphen, fillers, selectors
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufeff\uffa0"  # zero-width, bidirectional
    "\ud800-\udfff\ue000-\uf8ff"  # lone surrogates, private use
    "\ufdd0-\ufdef\ufe00-\ufe0f\ufff0-\ufffc\ufffe\uffff"  # noncharacters, variation selectors
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"  # shorthand and musical format controls
    "\U000e0000-\U0010ffff]"  # tags, supplementary selectors and private use
)
_SPACE = re.compile(r"[^\S ]")
_LIGATURES = str.maketrans(
    {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"}
)

# Plain searches: over a text without any they take a tenth of the time of one expression.
_MARKS = (*"\\$*_{}~`^<&#", "--", "''")
_LIGATURE = re.compile("[ﬀ-ﬆ]")
_COMMENT = re.compile(r"\n[^\S\n]*%")
_ENTITY = re.compile(r"&(?:[A-Za-z][A-Za-z0-9]{1,30}|#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6});")
_ANCHOR = re.compile(
    r"<a\s[^<>]{0,300}?href=[\"']([^\"'<>]{1,500})[\"'][^<>]{0,300}>([^<>]{0,300})</a>", re.I
)
_AUTOLINK = re.compile(r"<((?:https?://|mailto:)[^\s<>]{1,500})>")
_SCRIPT = re.compile(r"<(su[bp])>([^<>]{0,200})</\1>", re.I)
# Only names of formatting elements: "<human, action, object>" and "</evidence>" are the author's.
_INLINE_TAG = re.compile(
    r"</?(?:(?:jats|mml):[a-z-]{1,30}|i|b|u|em|strong|span|small|tt|code|sub|sup|sc|italic|bold|font)"
    r"(?:\s[^<>]{0,300})?/?>",
    re.I,
)
_BLOCK_TAG = re.compile(
    r"</?(?:jats:(?:p|title|sec|list|list-item)|p|br|div|h[1-6]|ul|ol|li|blockquote|hr)(?:\s[^<>]{0,300})?/?>",
    re.I,
)
_LINK = re.compile(
    r"\[([^\[\]\n]{1,300})\]\(\s*(?:\\?url\{)?((?:https?://|www\.|mailto:)[^\s()<>{}]{1,500})\}?\s*\)"
)
_HEADING = re.compile(r"^[^\S\n]*#{1,6}[^\S\n]+", re.M)
_DELIMITERS = re.compile(f"{STAR}+|{UNDER}+")
_PLAIN_POWER = re.compile(r"(?<=[\w)\]])\^([0-9]+)(?![\w.(^])")
_HALF_TEX_QUOTE = re.compile(r'“([^“”"]{1,300})"')
_SUPERSCRIPT_DIGITS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def visible(text: str) -> str:
    """`text` without what cannot be seen, NFC-normalised, white space as ordinary spaces.

    Out go control, bidirectional, zero-width, tag and private-use characters, variation selectors,
    lone surrogates and terminal sequences: they can hide instructions or steer a terminal.
    """
    if text.isascii() and text.isprintable():
        return text
    return _SPACE.sub(" ", _visible_lines(text))


def clean(raw: str) -> str:
    """LaTeX, Markdown and HTML in `raw` as readable Unicode on one line. Never raises.

    Unknown macros keep their name; what only looks like markup ("$5", "<|endoftext|>", "[bold]",
    snake_case) stays as it is.
    """
    text = _visible_lines(raw)
    if _has_markup(text):
        text = _visible_lines(_from_markup(text))
    return " ".join(text.split())


def _has_markup(text: str) -> bool:
    return (
        any(mark in text for mark in _MARKS)
        or (not text.isascii() and _LIGATURE.search(text) is not None)
        or ("%" in text and _COMMENT.search(text) is not None)
    )


def _visible_lines(text: str) -> str:
    if text.isascii() and (text.isprintable() or text.replace("\n", "").isprintable()):
        return text
    if "\x1b" in text or "\x9b" in text:
        text = _TERMINAL_SEQUENCE.sub("", text)
    text = _INVISIBLE.sub("", text)
    return unicodedata.normalize("NFC", text)


def _from_markup(text: str) -> str:
    if "&" in text:
        # Invisible characters must not come back in as entities.
        text = _visible_lines(_ENTITY.sub(lambda m: html.unescape(m[0]), text))
    if "<" in text:
        text = _without_tags(text)
    if "](" in text:
        text = _LINK.sub(r"\\href{\2}{\1}", text)
    if "#" in text:
        text = _HEADING.sub("", text)
    if not text.isascii() and _LIGATURE.search(text):
        text = text.translate(_LIGATURES)
    text = finish(_without_emphasis(render(text)))
    if "^" in text:
        text = _PLAIN_POWER.sub(lambda m: m[1].translate(_SUPERSCRIPT_DIGITS), text)
    return _HALF_TEX_QUOTE.sub("“\\1”", text) if "“" in text else text


def _without_tags(text: str) -> str:
    text = _ANCHOR.sub(r"\\href{\1}{\2}", text)
    text = _AUTOLINK.sub(r"\1", text)
    text = _SCRIPT.sub(lambda m: ("_" if m[1].lower() == "sub" else "^") + "{" + m[2] + "}", text)
    return _INLINE_TAG.sub("", _BLOCK_TAG.sub(" ", text))


def _without_emphasis(marked: str) -> str:
    """Drop the `STAR` and `UNDER` runs that open and close emphasis, by CommonMark's rules.

    https://spec.commonmark.org/0.31.2/#emphasis-and-strong-emphasis
    """
    if STAR not in marked and UNDER not in marked:
        return marked
    runs = list(_DELIMITERS.finditer(marked))
    left = [len(run[0]) for run in runs]
    open_runs: dict[str, list[int]] = {STAR: [], UNDER: []}
    for n, run in enumerate(runs):
        before, after = marked[run.start() - 1 : run.start()], marked[run.end() : run.end() + 1]
        opens, closes = _flanks(run[0][0], before, after)
        stack = open_runs[run[0][0]]
        while closes and left[n] and stack:
            matched = min(left[n], left[stack[-1]])
            left[n] -= matched
            left[stack[-1]] -= matched
            if not left[stack[-1]]:
                stack.pop()
        # A single star after a letter is a product or a name: "n*m and k*l", "A*Net".
        if opens and left[n] and not (before.isalnum() and (len(run[0]) == 1 or after.isdigit())):
            stack.append(n)
    kept = iter(left)
    return _DELIMITERS.sub(lambda run: run[0][: next(kept)], marked)


def _flanks(mark: str, before: str, after: str) -> tuple[bool, bool]:
    """Whether a delimiter run between these characters can open and can close emphasis."""
    space_before, space_after = before.isspace() or not before, after.isspace() or not after
    sign_before = not space_before and not before.isalnum()
    sign_after = not space_after and not after.isalnum()
    opens = not space_after and (not sign_after or space_before or sign_before)
    closes = not space_before and (not sign_before or space_after or sign_after)
    if mark == UNDER:
        # After a bracket or a mathematical sign it is a subscript: "|A|_F", "∑_(t=1)".
        subscript = sign_before and unicodedata.category(before) in ("Pe", "Pf", "Sm", "So")
        opens_under = opens and not subscript and (not closes or sign_before)
        return opens_under, closes and (not opens or sign_after)
    return opens, closes
