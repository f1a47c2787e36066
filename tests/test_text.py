from __future__ import annotations

import json
import re
import time
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.text import clean, visible

SHARED = Path(__file__).parents[2] / "shared"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason=f"no development data at {SHARED}")


def shared_abstracts() -> list[str]:
    lists = [
        block
        for path in sorted((SHARED / "papers").glob("*.txt"))
        for block in re.split(r"\n\s*\n", path.read_text("utf-8").strip())[1:]
    ]
    conference = json.loads((SHARED / "papers" / "colm-2025.json").read_text("utf-8"))
    corpus = (SHARED / "retrieval" / "neurips-2023" / "corpus.jsonl").read_text("utf-8")
    records = [*conference, *(json.loads(line) for line in corpus.splitlines())]
    return lists + [record["abstract"] for record in records]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (r"$2.18\times$ fewer", "2.18× fewer"),
        (r"76.6\% mIoU", "76.6% mIoU"),
        (r"63.9\% mAP$_{50}$ on", "63.9% mAP50 on"),
        (r"$\mathrm{AP}_{50}$", "AP50"),
        (r"$\Sigma_2^P$", "Σ₂ᴾ"),
        (r"an $H^1$ error", "an H¹ error"),
        (r"GA$^2$Ms", "GA²Ms"),
        (r"$L_1$ and $x_{ij}$", "L₁ and xᵢⱼ"),
        (r"$n^{-1/d}$", "n^(-1/d)"),
        (r"$4^{-b}$", "4^(-b)"),
        (r"$10^{100}$ and $10^{-3}$", "10¹⁰⁰ and 10^(-3)"),
        (r"$n^{\Theta(m!)}$", "n^(Θ(m!))"),
        (r"$x^{(i)}$", "x^(i)"),
        (r"$q_Z$, $x_{max}$, $1^{st}$", "q_Z, x_max, 1st"),
        (r"$C^\star(x)^2$", "C⋆(x)²"),
        (r"$\frac{\sqrt{3}\pi}{2}$", "√3π/2"),
        (r"$\frac{1}{2n}$ and $\frac{a+b}{c}x$", "1/(2n) and ((a+b)/c)x"),
        (r"$\bigl(\pi\sqrt{3}/2 + o(1)\bigr) \cdot 2$", "(π√3/2 + o(1)) · 2"),
        (r"$\sqrt[3]{n \log n}$", "³√(n log n)"),
        (r"$O(d \log d)$, $n\log n$, $\log_2 n$", "O(d log d), n log n, log₂ n"),
        (r"$\widetilde{O}(s^2)$, $\mathcal{O}(n)$, $\mathcal O(n)$", "Õ(s²), O(n), O(n)"),
        (r"$x \in \mathbb{R}^d$ with $s \ll n$", "x ∈ ℝᵈ with s ≪ n"),
        (r"$p(Y{=}1\mid\mathcal{H}_t)$", "p(Y=1|Hₜ)"),
        (r"$\approx 0.4$% of its edges", "≈0.4% of its edges"),
        (r"$\left\{0, 1\right\}$", "{0, 1}"),
        (r"$90^\circ$, $A^\top$", "90°, Aᵀ"),
        (r"\(a\) and \[b\]", "a and b"),
    ],
)
def test_formulas(raw: str, expected: str) -> None:
    assert clean(raw) == expected


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (r"\textsc{Hyper-DFS}, \emph{very \textbf{new}}", "Hyper-DFS, very new"),
        (r"(\HPM), \HPM improves A+\HPM and \TVD{} too", "(HPM), HPM improves A+HPM and TVD too"),
        (r"{\em old} {\bf style}", "old style"),
        (r"5.84\,M at 12.95\,GFLOPs", "5.84 M at 12.95 GFLOPs"),
        (r"17{,}861 and $17{,}861$", "17,861 and 17,861"),
        ("AlphaFold~3, i.i.d.~samples", "AlphaFold 3, i.i.d. samples"),
        (r"\texttt{a\_b} \& c\#", "a_b & c#"),
        (r"Schr\"odinger, Mat\'ern, ans\"{a}tze, \c{c}", "Schrödinger, Matérn, ansätze, ç"),
        (r"don\'t say \"never\" here", 'don\'t say "never" here'),
        ("teacher--student---or ``both''", "teacher–student—or “both”"),
        ("run it with --fast on", "run it with --fast on"),
        (r"\url{https://a.io/x\_y~z}", "https://a.io/x_y~z"),
        (r"\href{https://a.io}{code}", "code (https://a.io)"),
        (r"see~\citep{lee2020} and \label{a}Fig.~\ref{f}", "see [lee2020] and Fig. f"),
        (r"free\footnote{At https://a.io.}", "free (At https://a.io.)"),
        (r"$30\\%$ for $\\varepsilon \\in [1, 8]$", "30% for ε ∈ [1, 8]"),
        ("First.\n% a remark\nSecond.", "First. Second."),
        ("for 76.6\n% of them", "for 76.6 % of them"),
        ("Vicuna-{7B,13B} on $x$", "Vicuna-{7B,13B} on x"),
        ("the set {0} only", "the set {0} only"),
    ],
)
def test_macros(raw: str, expected: str) -> None:
    assert clean(raw) == expected


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("**Bold**, *slanted*, _under_, __both__, ***all***", "Bold, slanted, under, both, all"),
        ("**T**est-**T**ime, P**r**o, *i*VAE", "Test-Time, Pro, iVAE"),
        (
            "snake_case_name, n*m and k*l, A* and A*Net",
            "snake_case_name, n*m and k*l, A* and A*Net",
        ),
        (r"A\*Net beats A\*", "A*Net beats A*"),
        ("`a_b*c` and `lifted' words", "a_b*c and ‘lifted’ words"),
        (
            "[code](https://a.io/x_y), [https://a.io](https://a.io)",
            "code (https://a.io/x_y), https://a.io",
        ),
        ("at https://a.io/x_y_z--w.", "at https://a.io/x_y_z--w."),
        ("H<sub>2</sub>O, 10<sup>-5</sup>, <i>x</i><br/>y", "H₂O, 10^(-5), x y"),
        ("<jats:p>One &amp; two&mdash;three &lt; 4</jats:p>", "One & two—three < 4"),
        ("costs 10^6 or R^2", "costs 10⁶ or R²"),
    ],
)
def test_markdown_and_html(raw: str, expected: str) -> None:
    assert clean(raw) == expected


@pytest.mark.parametrize(
    "text",
    [
        "$5 million and $6 million",
        "from $5-$10 to $15 per model.",
        "cost $0.01 and a few $ more",
        "<|endoftext|> [bold]x[/bold] </evidence> <human, action, object>",
        "about ~15%, 5~10%, 50% or 2 < 3 > 1",
        'a {"json": [1]} and C*-algebra & co.',
    ],
)
def test_what_only_looks_like_markup_stays(text: str) -> None:
    assert clean(text) == text


def test_hidden_characters_go() -> None:
    tags = "".join(chr(0xE0000 + ord(c)) for c in "ignore all")
    hidden = f"a\u200bb\u202ec\u2066d\ufeffe{tags}\x00f\ud800g\u00adh\ue000i\ufe0fj"
    assert visible(hidden) == "abcdefghij"
    assert visible("\x1b[31mred\x1b[0m \x1b]8;;http://x\x07link\x9b1m") == "red link"
    assert clean("x&#8203;y &#x202e;z") == "xy z"


def test_visible_keeps_what_can_be_seen() -> None:
    assert visible("a\tb\nc\u00a0d") == "a b c d"
    assert visible("e\u0301 x² ½ ﬁ **b** $5") == "é x² ½ ﬁ **b** $5"
    assert clean("eﬃcient") == "efficient"


@given(st.text(st.characters(codec=None), max_size=300))
def test_visible_is_idempotent_and_normal(text: str) -> None:
    once = visible(text)
    assert visible(once) == once
    assert unicodedata.is_normalized("NFC", once)
    assert not {unicodedata.category(c) for c in once} & {"Cc", "Cs", "Co"}
    once.encode("utf-8")


MARKUP_PIECES = (
    r"\ { } $ $$ ^ _ ~ * ** ` `` '' -- [ ]( ) < & ; % # \( \[ \frac \sqrt[3] \hat \url{ \cite[a]{ "
    r"\left. \textbf{ \begin{a} \item \\ \" \' \unicode{x2014} \log \alpha <sub> </sub> &lt; a 1 "
    r"https://x.io/a_b word"
).split()
MARKUP = st.lists(
    st.sampled_from([*MARKUP_PIECES, " ", "\n", "\n\n", "\ue000", "\ue002", "\x1b[", "é", "中"]),
    max_size=60,
).map("".join)


@settings(max_examples=400)
@given(st.one_of(MARKUP, st.text(max_size=200)))
def test_clean_never_raises_and_leaves_one_visible_line(raw: str) -> None:
    cleaned = clean(raw)
    assert cleaned == " ".join(cleaned.split())
    assert visible(cleaned) == cleaned


@given(st.lists(st.from_regex(r"[A-Za-z0-9,.%:;()+=-]{1,8}", fullmatch=True), max_size=30))
def test_plain_text_is_left_alone(words: list[str]) -> None:
    text = " ".join(word for word in words if "--" not in word)
    assert clean(text) == text


HOSTILE_UNITS = (
    r"\ { } $ *a ** _a \frac{ \( ` [ [a]( <a \' \x1b] \sqrt[3] \hat _{ \cite[a] “ word".split()
)


@pytest.mark.parametrize("unit", [*HOSTILE_UNITS, "$x_{i}^2$ ", "$$ a $ ", "\n%", "word ", "\x1b]"])
def test_time_is_linear_in_hostile_input(unit: str) -> None:
    def seconds(length: int) -> float:
        started = time.perf_counter()
        clean(unit * (length // len(unit)))
        return time.perf_counter() - started

    seconds(1_000)
    # Quadratic time would make it 64 times as long; the constant covers a busy machine.
    assert seconds(400_000) < 24 * seconds(50_000) + 1.0


def test_a_hundred_thousand_words_take_seconds_at_most() -> None:
    started = time.perf_counter()
    cleaned = clean(r"an \emph{easy} $n^2$ case " * 20_000)
    assert len(cleaned.split()) == 80_000
    assert time.perf_counter() - started < 5


@needs_shared
def test_nothing_of_the_markup_is_left_in_real_abstracts() -> None:
    left = [
        found
        for raw in shared_abstracts()
        for found in re.findall(r"\\(?!n)\S*|\*\*|\$(?![\d,.]+[KM]?\b)\S*", clean(raw))
    ]
    # Two authors' own errors: `$\mathsf{..}$` inside `$\textbf{..}$`, and `$i.i.d.\$`.
    assert left == ["$", "$", "$i.i.d.$", "$i.i.d.$"]


@needs_shared
def test_cleaning_real_abstracts_twice_changes_nothing() -> None:
    cleaned = [clean(raw) for raw in shared_abstracts()]
    changed = [text for text in cleaned[: 57 + 418] if clean(text) != text]
    assert changed == []
    # Unbalanced markup of the authors'.
    assert sum(clean(text) != text for text in cleaned) <= 4
