r"""The source of an abstract cut into what LaTeX gives a meaning to and the text between."""

from __future__ import annotations

import re

from rag.latex.symbols import known_macros

# One set of first characters, so that the search passes over all others in one step.
_TOKEN = re.compile(
    r"""([hw\\`'${}^_~*\-](?:
      (?:(?<=h)ttps?://|(?<=w)ww\.)(?:[^\s<>{}()\[\]\\"`$*]|\\[_%\#&~])+  # keeps its _ and ~
    | (?<=\\)(?:[A-Za-z]+|.|\Z)
    | (?<=`)(?:`|(?<!``)[^`'\n]{1,100}`(?!`)|) | (?<=')'
    | (?<=[${}^_~*])
    | (?<=-)-+
    ))""",
    re.VERBOSE | re.DOTALL,
)
_TEX_EVIDENCE = re.compile(r"\\|\$[^$]+\$|[_^]\{")
# Exports sometimes double every backslash: `\\%`, `\\varepsilon`.
_DOUBLED = re.compile(r"\\\\(?=([A-Za-z]+|[%&#_{}$,;:!]))")
# A comment fills a line, or stands before a macro; "of 76.6\n% of" is neither.
_COMMENT = re.compile(
    r"""(?:\A\s*% | (?<![\d$})\s])(?:[^\S\n]*\n\s*%|[^\S\n]+%(?=[\\{])))[^\n]*(?=\n)
        (?:\n\s*%[^\n]*(?=\n))*""",
    re.VERBOSE,
)
# Any comment begins so; most percentages do not.
_AFTER_SPACE = re.compile(r"%(?<!\S%)")
ESCAPED = re.compile(r"\\([_%#&~{}$])")
LISTED = re.compile(r"\s*[^\s,{}]+(?:\s*,\s*[^\s,{}]+)+\s*")


def tokenize(text: str) -> tuple[list[str], bool]:
    r"""Tokens of `text`, and whether it is LaTeX at all (else its braces are the author's).

    >>> tokenize(r"of 76.6\% mAP$_{50}$")
    (['of 76.6', '\\\\%', ' mAP', '$', '_', '{', '50', '}', '$'], True)
    """
    if "%" in text and _AFTER_SPACE.search(text):
        text = _COMMENT.sub("", text)
    if "\\\\" in text:
        text = _DOUBLED.sub(_undouble, text)
    return [t for t in _TOKEN.split(text) if t], _TEX_EVIDENCE.search(text) is not None


def _undouble(match: re.Match[str]) -> str:
    name = match[1]
    return " " if name.isalpha() and name not in known_macros() else "\\"


class Cursor:
    """A place in a list of tokens; `i` is the next one."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.i = 0

    def peek(self) -> str:
        """The next character, or an empty string at the end."""
        return self.tokens[self.i][0] if self.i < len(self.tokens) else ""

    def skip_space(self) -> None:
        """Read past white space."""
        if self.peek().isspace():
            self.drop(len(self.tokens[self.i]) - len(self.tokens[self.i].lstrip()))

    def drop(self, characters: int) -> None:
        """Read past the first characters of the next token."""
        rest = self.tokens[self.i][characters:]
        if rest:
            self.tokens[self.i] = rest
        else:
            self.i += 1

    def raw_argument(self) -> str:
        """A braced group's source: for addresses and keys."""
        self.skip_space()
        if self.peek() != "{":
            return ""
        start = self.i = self.i + 1
        depth = 1
        while self.i < len(self.tokens) and depth:
            depth += {"{": 1, "}": -1}.get(self.tokens[self.i], 0)
            self.i += 1
        source = "".join(self.tokens[start : self.i - 1 if depth == 0 else self.i])
        return ESCAPED.sub(r"\1", source).strip()

    def option(self) -> str:
        """`[...]` directly after a macro, if it ends within plain text."""
        match = re.match(r"\[([^\]]{0,80})\]", self.tokens[self.i]) if self.peek() == "[" else None
        if match is None:
            return ""
        self.drop(match.end())
        return match[1]
