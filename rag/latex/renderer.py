r"""LaTeX as authors write it in abstracts -> readable Unicode, whatever the input.

>>> finish(render(r"$\Sigma_2^P$ is hard; $2.18\times$ faster, 76.6\% mAP$_{50}$"))
'Σ₂ᴾ is hard; 2.18× faster, 76.6% mAP50'

`render` leaves unescaped `*`, `_` as `STAR` and `UNDER`, so that a Markdown pass can tell them
from escaped ones and from those in formulas. Text without a backslash, a formula or a braced script
keeps its braces. Nothing raises; groups nested deeper than `MAX_DEPTH` lose their structure, not
their text.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise

from rag.latex import shapes
from rag.latex import symbols as tables
from rag.latex.builders import BUILDERS
from rag.latex.shapes import JOINT
from rag.latex.tokens import ESCAPED, LISTED, Cursor, tokenize

# Private-use characters: `rag.text.visible` has removed them from the input.
STAR, UNDER = "\ue000", "\ue001"
MAX_DEPTH = 30


def render(text: str) -> str:
    """`text` with its LaTeX made readable; Markdown marks are left as `STAR` and `UNDER`."""
    tokens, is_tex = tokenize(text)
    return shapes.join(Renderer(tokens, is_tex).whole(math=False))


def finish(marked: str) -> str:
    """The output of `render` with the marks that no Markdown pass consumed put back."""
    return marked.replace(STAR, "*").replace(UNDER, "_")


class Renderer(Cursor):
    """A recursive descent over tokens; each is read once or twice."""

    def __init__(self, tokens: list[str], is_tex: bool, depth: int = 0) -> None:
        super().__init__(tokens)
        self.is_tex = is_tex
        self.depth = depth
        self.unclosed: set[str] = set()
        # `\"` is an accent, unless the text escapes its quotation marks so.
        self.quotes_escaped = '\\"' in tokens and any(
            a == '\\"' and not (b[0].isalpha() or b[0] in "{\\")
            for a, b in pairwise([*tokens, " "])
        )

    def whole(self, *, math: bool) -> str:
        """Everything, over closing braces that nothing opened."""
        pieces = [self._sequence(math=math)]
        while self.i < len(self.tokens):
            self.i += 1
            pieces += ["" if self.is_tex else "}", self._sequence(math=math)]
        return "".join(pieces)

    def _sequence(self, *, math: bool) -> str:
        """Up to a closing brace (left unread) or the end."""
        out: list[str] = []
        self.depth += 1
        while self.i < len(self.tokens) and self.tokens[self.i] != "}":
            token = self.tokens[self.i]
            self.i += 1
            self._step(token, out, math=math)
        self.depth -= 1
        return "".join(out)

    def _step(self, token: str, out: list[str], *, math: bool) -> None:
        if token[0] == "\\":
            self._command(token[1:], out, math=math)
        elif token == "{":
            out.append(self._group(math=math))
        elif token in ("^", "_") and (math or self.peek() == "{"):
            self._script(out, up=token == "^", math=math)
        elif math:
            out.append({"$": "", "~": " "}.get(token, token).replace("'", "′"))
        elif token == "$":
            self._dollar(out)
        elif token == "~":
            out.append(self._tie(_last(out)))
        else:
            out.append(self._text_token(token, _last(out)))

    def _text_token(self, token: str, before: str) -> str:
        after = self.peek()
        if token in ("*", "_"):
            return STAR if token == "*" else UNDER
        if token in ("``", "''"):
            opens = token == "``" or not before or before.isspace()
            return "“" if opens and after and not after.isspace() else "”"
        if token[0] == "`":
            return token[1:-1] if len(token) > 1 else self._single_quote(before)
        # " --flag" is a command-line option, not a dash.
        if token == "--" and not (before.isspace() and after.isalpha()):
            return "–"
        if token.startswith(("http", "www.")):
            return ESCAPED.sub(r"\1", token)
        return "—" if token == "---" else token

    def _single_quote(self, before: str) -> str:
        if before.isalnum() or self.i >= len(self.tokens):
            return "`"
        closed, n = re.subn(r"(?<=\S)['’](?!\w)", "’", self.tokens[self.i], count=1)
        self.tokens[self.i] = closed
        return "‘" if n else "`"

    def _tie(self, before: str) -> str:
        r"""`AlphaFold~3`, `in ~\cite{x}` are spaces; "~15%", "5~10" mean approximately and to."""
        number = "".join(self.tokens[self.i : self.i + 2])[:2].lstrip("$")[:1].isdigit()
        if number and (not before or before.isspace() or before.isdigit() or before in "([≈∼×"):
            return "~"
        return " " if self.is_tex or before.isalnum() or before in ".,)]" else "~"

    def _group(self, *, math: bool) -> str:
        """After an opening brace; "{7B,13B}", and braces of plain text, are the author's."""
        if self.depth > MAX_DEPTH:
            return "" if self.is_tex or math else "{"
        content = self._sequence(math=math)
        closed = self.i < len(self.tokens)
        self.i += closed
        if math or (self.is_tex and not LISTED.fullmatch(content)):
            return content
        return "{" + content + ("}" if closed else "")

    def argument(self, *, math: bool) -> str:
        """A braced group, a command or a single character."""
        self.skip_space()
        if self.i >= len(self.tokens) or self.tokens[self.i] == "}" or self.depth > MAX_DEPTH:
            return ""
        token = self.tokens[self.i]
        if token == "{":
            self.i += 1
            content = self._sequence(math=math)
            self.i += self.i < len(self.tokens)
            return content
        if token[0] == "\\":
            self.i += 1
            out: list[str] = []
            self.depth += 1
            self._command(token[1:], out, math=math)
            self.depth -= 1
            return "".join(out).strip()
        self.drop(1)
        return token[0]

    def _dollar(self, out: list[str]) -> None:
        """After a `$` in text: a formula up to the next one, or money."""
        width = 2 if self.peek() == "$" else 1
        start = end = self.i + width - 1
        while end < len(self.tokens) and self.tokens[end : end + width] != ["$"] * width:
            end += 1
        content = self.tokens[start:end]
        after = self.tokens[end + width][0] if end + width < len(self.tokens) else ""
        if end >= len(self.tokens) or shapes.is_money("".join(content), after):
            out.append("$")
            return
        self.i = end + width
        out.append(Renderer(content, True, self.depth).whole(math=True).strip())

    def _script(self, out: list[str], *, up: bool, math: bool) -> None:
        base = out.pop() if out else ""
        joint = JOINT if base.endswith(JOINT) else ""
        base = base.removesuffix(JOINT)
        content = self.argument(math=True)
        base = base.rstrip() if math else base
        # A function's name is no word to join digits to: log₂, but mAP50.
        last = "f" if joint else base[-12:]
        out += [base, shapes.script(content, up=up, base=last, follows=self.peek()), joint]

    def _command(self, name: str, out: list[str], *, math: bool) -> None:
        if not name[:1].isalpha():
            self._control_symbol(name, out, math=math)
        elif name in BUILDERS:
            out.append(BUILDERS[name](self, math))
        elif name in tables.SILENT:
            self.skip_space()
            if name in tables.SIZED_DELIMITERS and self.peek() == ".":
                self.drop(1)
        elif name in tables.TEXT_STYLES:
            out.append(self.argument(math=False))
        elif name in tables.MATH_STYLES:
            out.append(self.argument(math=math))
        elif name in tables.MATH_ACCENTS:
            out.append(shapes.accented(self.argument(math=math), tables.MATH_ACCENTS[name]))
        elif name in tables.TEXT_ACCENTS and not math and self.peek() == "{":
            out.append(shapes.accented(self.argument(math=False), tables.TEXT_ACCENTS[name]))
        elif name in tables.FUNCTIONS:
            out.append(JOINT + name + JOINT)
        else:
            self._symbol_or_name(name, out, math=math)

    def _symbol_or_name(self, name: str, out: list[str], *, math: bool) -> None:
        symbol = tables.symbols().get(name)
        if symbol is None:
            content = self.argument(math=math) if self.peek() == "{" else ""
            out.append(
                (JOINT + name + JOINT if math else name) + (" " + content if content else "")
            )
            return
        if not (math and self._spaced(symbol, _last(out))) and (math or symbol.isalpha()):
            self.skip_space()
        self.i += 2 if self.tokens[self.i : self.i + 2] == ["{", "}"] else 0
        if symbol.endswith(".") and self.peek() == ".":
            self.drop(1)
        out.append(symbol)

    def _spaced(self, symbol: str, before: str) -> bool:
        """Whether the space after a symbol, which TeX swallows, is one around an operator."""
        if not symbol.isalpha():
            return before.isspace()
        if self.peek() == " " and self.i + 1 < len(self.tokens) and self.tokens[self.i].isspace():
            operator = tables.symbols().get(self.tokens[self.i + 1][1:], "")
            return bool(operator) and not operator.isalpha()
        return self.i < len(self.tokens) and self.tokens[self.i].lstrip()[:1] in tuple("=<>+-:|/")

    def _control_symbol(self, name: str, out: list[str], *, math: bool) -> None:
        if not name or name in "\\,;:>" or name.isspace():
            out.append(" ")
        elif name in "([":
            out.append(self._bracketed(name))
        elif name in ")]!/-@":
            return
        elif name == "|":
            out.append("‖" if math else "|")
        elif name in tables.TEXT_ACCENTS and not math:
            out.append(self._text_accent(name, _last(out)))
        else:
            out.append(name if unicodedata.category(name)[0] in "PS" else "\\" + name)

    def _bracketed(self, opener: str) -> str:
        closer = "\\" + {"(": ")", "[": "]"}[opener]
        try:
            end = -1 if closer in self.unclosed else self.tokens.index(closer, self.i)
        except ValueError:
            end = -1
        if end < 0:
            self.unclosed.add(closer)
            return opener
        inner = Renderer(self.tokens[self.i : end], True, self.depth)
        self.i = end + 1
        return inner.whole(math=True).strip()

    def _text_accent(self, mark: str, before: str) -> str:
        r"""`\"u`, `\'{e}`, `\'\i`; a mark that fits no letter was an escaped quotation mark."""
        fits = self.peek().isalpha() or self.peek() in ("{", "\\")
        if not fits or (mark == '"' and self.quotes_escaped):
            return mark
        letter = self.argument(math=False)
        composed = shapes.accented(letter, tables.TEXT_ACCENTS[mark])
        possessive = (
            mark == "'" and letter == "s" and before.isalpha() and not self.peek().isalpha()
        )
        return mark + letter if composed == letter or possessive else composed


def _last(out: list[str]) -> str:
    """The last character written, or an empty string."""
    return next((piece[-1] for piece in reversed(out) if piece), "")
