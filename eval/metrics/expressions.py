"""Regular expressions of question sets, searched in answers within a bounded time."""

from __future__ import annotations

import re
import warnings

# An expression that backtracks without end, such as (a+)+b, is given up after so many seconds.
MOST_SECONDS = 1.0

# A brace that begins no {2} or {1,3}, and no name as \N{DOT}, is a brace to `re`; `regex` would
# read x{e} as "x, or nearly".
_LITERAL_BRACE = re.compile(r"(?P<before>(?<!\\)(?:\\\\)*)(?<!\\N)\{(?!\d*,?\d*\})")


def found(pattern: str, text: str) -> bool | None:
    """Whether it matches anywhere in the text: case is ignored, a dot matches line ends too.

    None where that cannot be told: it is no expression of Python's `re`, or takes too long.
    """
    # Like `re`, which cannot be stopped, but for the braces.
    import regex

    bounded = _LITERAL_BRACE.sub(r"\g<before>\\{", pattern)
    flags = regex.IGNORECASE | regex.DOTALL
    try:
        # Of sets that later versions of Python may read otherwise; said when the set is read.
        with warnings.catch_warnings(action="ignore"):
            re.compile(pattern)
            compiled = regex.compile(bounded, flags)
        return compiled.search(text, timeout=MOST_SECONDS) is not None
    except (re.error, regex.error, TimeoutError, OverflowError, RecursionError):
        return None
