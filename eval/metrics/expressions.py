"""Regular expressions of question sets, searched in answers within a bounded time."""

from __future__ import annotations

import re

# An expression that backtracks without end, such as (a+)+b, is given up after so many seconds.
MOST_SECONDS = 1.0

# A brace that begins no {2} or {1,3} is a brace to `re`; `regex` would read x{e} as "x, or nearly".
_LITERAL_BRACE = re.compile(r"(?P<before>(?<!\\)(?:\\\\)*)\{(?!\d*,?\d*\})")


def found(pattern: str, text: str) -> bool | None:
    """Whether it matches anywhere in the text: case is ignored, a dot matches line ends too.

    None where that cannot be told: it is no expression of Python's `re`, or takes too long.
    """
    # Like `re`, which cannot be stopped, but for the braces.
    import regex

    try:
        re.compile(pattern)
        bounded = _LITERAL_BRACE.sub(r"\g<before>\\{", pattern)
        flags = regex.IGNORECASE | regex.DOTALL
        return regex.search(bounded, text, flags, timeout=MOST_SECONDS) is not None
    except (re.error, regex.error, TimeoutError, OverflowError, RecursionError):
        return None
