"""Entries with a fault that is plain to see, read in spite of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from rag.readers.bibtex_library import Block, blocks

# Put where bibtexparser must not see what it would; of private use, so it is in no text.
JOINT = "\ue010"

ENTRY_START = re.compile(r"@\s*([A-Za-z][\w-]*)\s*([{(])\s*([^\s,={}]*)")
FIELD_AHEAD = re.compile(r"[\s,})]*[A-Za-z][\w:-]*\s*=\s*[{\"\w]")
BRACE = re.compile(r"(?<!\\)[{}]")

# Braces too many in one entry; with more it is no entry.
_MAX_TEARS = 5
_SWALLOWED = re.compile(r"\n[^\S\n]*[A-Za-z][\w-]*\s*=\s*[{\"]")
_HEAD = r"(@\w+\s*[{(]\s*)"
_NO_COMMA = re.compile(rf"{_HEAD}([^\s,={{}}]+)([^\S\n]*\n[^\S\n]*[A-Za-z][\w-]*\s*=)")
_NO_KEY = re.compile(rf"{_HEAD}([A-Za-z][\w-]*\s*=\s*[{{\"])")
_ESCAPED_BRACE = re.compile(r"\\(?=[{}])")
_COMMENT_LINE = re.compile(r"^[^\S\n]*%.*", re.M)


def is_torn(after: Block) -> bool:
    """Whether fields follow an entry's end: a brace too many has closed it early."""
    return after.role == "comment" and FIELD_AHEAD.match(after.raw) is not None


def joined(entry: Block, torn_off: Block) -> Block | None:
    """The entry without the braces that closed it early; None if they cannot be told."""
    raw, after = entry.raw, torn_off.raw
    for _ in range(_MAX_TEARS):
        whole = f"{raw[:-1]}{after}"
        found = blocks(whole)
        if not found or found[0].role != "entry":
            return None
        if len(found) == 1 or not is_torn(found[1]):
            return replace(found[0], line=entry.line)
        raw, after = found[0].raw, found[1].raw
    return None


def mended(text: str) -> Block | None:
    """The entry at the head of `text`, read in spite of its fault; None if it cannot be."""
    for tried, closed in _repairs(text):
        found = next((block for block in blocks(tried) if block.role != "comment"), None)
        if found is None or found.role != "entry":
            continue
        # With its end put in, a value that was left open may hold the fields that follow.
        if not (closed and any(_SWALLOWED.search(value) for _, value in found.fields)):
            return found
    return None


def _repairs(text: str) -> Iterator[tuple[str, bool]]:
    """Ways to mend an entry, and whether its end was put in.

    A missing comma behind the key; comment lines between fields, which biber allows; braces after
    a backslash, which BibTeX counts and bibtexparser does not; a missing last brace.
    """
    keyed = _NO_COMMA.sub(r"\1\2,\3", _NO_KEY.sub(r"\1,\2", text, count=1), count=1)
    plain = _without_comments(keyed)
    strict = _ESCAPED_BRACE.sub("\\\\" + JOINT, plain)
    ways = dict.fromkeys((keyed, plain, strict))
    for way in ways:
        if way != text:
            yield way, False
    start = ENTRY_START.search(text)
    closer = ")" if start is not None and start[2] == "(" else "}"
    for way in ways:
        yield f"{way.rstrip()}\n{closer}", True


def _without_comments(text: str) -> str:
    """Lines that begin with `%` outside of any value left empty."""
    if _COMMENT_LINE.search(text) is None:
        return text
    depth = 0
    kept = []
    for line in text.split("\n"):
        if depth <= 1 and line.lstrip().startswith("%"):
            kept.append("")
            continue
        depth += sum(1 if brace == "{" else -1 for brace in BRACE.findall(line))
        kept.append(line)
    return "\n".join(kept)
