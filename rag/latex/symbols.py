r"""Tables for `rag.latex.renderer`: what each macro means.

Symbols come from pylatexenc's `latex2text` database; the entries here are those it lacks or renders
in a form that is harder to search for (`\phi` -> `φ`, not `ϕ`).
"""

from __future__ import annotations

from functools import cache

# Their argument is ordinary text, whatever surrounds the macro.
TEXT_STYLES = frozenset(
    "textbf textit emph texttt textsc textrm textsf textnormal textup textsl textmd text mbox hbox "
    "fbox underline uline ul sout uwave enquote centering title section subsection paragraph "
    "textsubscript textsuperscript so hl smash phantomtext".split()
)
# Their argument is of the same kind as what surrounds the macro.
MATH_STYLES = frozenset(
    "mathrm mathbf mathsf mathit mathtt mathcal mathscr mathfrak mathnormal boldsymbol bm pmb "
    "ensuremath overline underbrace overbrace mathbin mathrel mathord mathclose mathopen "
    "operatornamewithlimits boxed overrightarrow bold".split()
)
# Switches and hints without an argument, of no meaning to a reader.
SILENT = frozenset(
    "em bf it rm sf tt sc sl cal bfseries itshape ttfamily rmfamily sffamily scshape "
    "mdseries upshape normalfont tiny scriptsize footnotesize small normalsize large Large "
    "LARGE huge textstyle displaystyle scriptstyle limits nolimits xspace noindent protect "
    "relax romannumeral nonumber centering left right middle big Big bigg Bigg bigl bigr "
    "Bigl Bigr biggl biggr Biggl Biggr bigm Bigm".split()
)
SIZED_DELIMITERS = frozenset({"left", "right", "middle"})
SPACES = frozenset(
    "quad qquad newline linebreak par enspace thinspace medspace thickspace space hfill break "
    "smallskip medskip bigskip newpage item".split()
)
# Their one argument is for the typesetter.
DROPPED_ARGUMENT = frozenset(
    "label vspace hspace color bibliographystyle bibliography begin end includegraphics input "
    "pagestyle thispagestyle footnotemark phantom hphantom vphantom index usepackage".split()
)
CITATIONS = frozenset(
    "cite citep citet citealp citealt citeauthor citeyear citeyearpar parencite textcite autocite "
    "Citet Citep nocite".split()
)
REFERENCES = frozenset("ref eqref cref Cref autoref pageref".split())
# Set upright in formulas, with a space to its neighbours where letters would run together.
FUNCTIONS = frozenset(
    "log ln lg exp min max sup inf lim limsup liminf argmin argmax sin cos tan cot sec csc arcsin "
    "arccos arctan sinh cosh tanh coth det dim ker deg gcd hom arg Pr poly polylog diag sign "
    "trace tr rank softmax mod".split()
)

# Combining character that each accent macro puts over its letter.
MATH_ACCENTS = {
    "hat": "\u0302", "widehat": "\u0302", "tilde": "\u0303", "widetilde": "\u0303", "bar": "\u0304",
    "dot": "\u0307", "ddot": "\u0308", "check": "\u030c", "breve": "\u0306", "acute": "\u0301",
    "grave": "\u0300", "mathring": "\u030a", "vec": "\u20d7",
}  # fmt: skip
TEXT_ACCENTS = {
    "'": "\u0301", "`": "\u0300", '"': "\u0308", "^": "\u0302", "~": "\u0303", "=": "\u0304",
    ".": "\u0307", "c": "\u0327", "v": "\u030c", "H": "\u030b", "k": "\u0328", "r": "\u030a",
    "u": "\u0306", "d": "\u0323", "b": "\u0331",
}  # fmt: skip

_OWN_SYMBOLS = {
    "epsilon": "ε", "varepsilon": "ε", "phi": "φ", "varphi": "φ", "ast": "*", "sim": "∼",
    "dots": "…", "ldots": "…", "cdots": "⋯", "to": "→", "iff": "⇔", "implies": "⇒", "mid": "|",
    "vert": "|", "lvert": "|", "rvert": "|", "Vert": "‖", "lVert": "‖", "rVert": "‖",
    "coloneqq": ":=", "ne": "≠", "top": "⊤", "intercal": "⊤", "natural": "♮", "backslash": "\\",
    "textbackslash": "\\", "textasciitilde": "~", "textasciicircum": "^", "textunderscore": "_",
    "lbrace": "{", "rbrace": "}", "i": "i", "j": "j", "prime": "′", "circ": "∘", "setminus": "∖",
    "smallsetminus": "∖", "colon": ":", "textgreater": ">", "textless": "<", "textbar": "|",
    "textdegree": "°", "degree": "°", "textpercent": "%", "percent": "%", "textdollar": "$",
    "ie": "i.e.", "eg": "e.g.", "etal": "et al.", "iid": "i.i.d.", "wrt": "w.r.t.", "etc": "etc.",
    "vs": "vs.", "LaTeX": "LaTeX", "TeX": "TeX", "gtrsim": "≳", "lesssim": "≲", "n": "\\n",
    "slash": "/", "copyright": "©", "S": "§", "checkmark": "✓", "xmark": "✗", "cmark": "✓",
    "textquotesingle": "'", "quote": '"',
}  # fmt: skip

SUPERSCRIPTS = dict(
    zip(
        "0123456789+-=()abcdefghijklmnoprstuvwxyzABDEGHIJKLMNOPRTUVWβγδθφχ⊤",
        "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻᴬᴮᴰᴱᴳᴴᴵᴶᴷᴸᴹᴺᴼᴾᴿᵀᵁⱽᵂᵝᵞᵟᶿᵠᵡᵀ",
        strict=True,
    )
)
SUBSCRIPTS = dict(
    zip(
        "0123456789+-=()aehijklmnoprstuvxβγρφχ",
        "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓᵦᵧᵨᵩᵪ",
        strict=True,
    )
)
_BLACKBOARD_IN_BMP = dict(zip("CHNPQRZ", "ℂℍℕℙℚℝℤ", strict=True))


@cache
def symbols() -> dict[str, str]:
    """Macro name without its backslash -> the character it stands for."""
    from pylatexenc.latex2text import get_default_latex_context_db

    database = get_default_latex_context_db()
    table: dict[str, str] = {}
    for category in ("latex-base", "latex-approximations", "advanced-symbols"):
        for name, spec in database.d[category]["macros"].items():
            text = spec.simplify_repl
            # `\today` would make the same abstract another paper tomorrow.
            if name == "today":
                continue
            if name.isalpha() and isinstance(text, str) and text.strip() and "%" not in text:
                table.setdefault(name, text)
    return table | _OWN_SYMBOLS


@cache
def known_macros() -> frozenset[str]:
    """Every macro name that `rag.latex.renderer` renders otherwise than by its name."""
    named: list[frozenset[str]] = [
        TEXT_STYLES, MATH_STYLES, SILENT, SPACES, DROPPED_ARGUMENT, CITATIONS, REFERENCES,
        FUNCTIONS, frozenset(MATH_ACCENTS), frozenset(symbols()),
        frozenset({"frac", "sqrt", "url", "href", "unicode", "mathbb", "operatorname"}),
        frozenset({"textcolor"}),
    ]  # fmt: skip
    return frozenset[str]().union(*named)


def blackboard(text: str) -> str:
    """`R` -> `ℝ`, `E` -> `𝔼`; what has no double-struck form stays."""
    return "".join(
        _BLACKBOARD_IN_BMP.get(c, chr(0x1D538 + ord(c) - ord("A"))) if "A" <= c <= "Z" else c
        for c in text
    )
