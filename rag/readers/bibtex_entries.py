"""Text that holds BibTeX entries -> their fields, by bibtexparser, with what it cannot read mended.

A fault in one entry costs that entry at most: what stays unreadable is `Broken`, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from rag.readers.bibtex_library import Block, blocks
from rag.readers.bibtex_repair import (
    BRACE,
    ENTRY_START,
    FIELD_AHEAD,
    JOINT,
    is_torn,
    joined,
    mended,
)


@dataclass(frozen=True, slots=True)
class Entry:
    """`values` are the fields' texts by lower-case name, still LaTeX; `written` as they stood.

    `line` is where it begins in the text, from 0.
    """

    kind: str
    key: str
    values: Mapping[str, str]
    written: Mapping[str, str]
    line: int


@dataclass(frozen=True, slots=True)
class Broken:
    """An entry that cannot be read, and `reason`, why; `line` counts from 0."""

    kind: str
    key: str
    reason: str
    line: int


# Styles define the months; in full, as plain.bst and biblatex print them.
MONTHS = {
    name[:3].lower(): name
    for name in (
        "January February March April May June July August September October November December"
    ).split()
}

_NEXT_FIELD = re.compile(r"\s*([A-Za-z][\w:-]*)\s*=\s*(?=\S)")
_QUOTE_OR_BRACE = re.compile(r"(?<!\\)[{}\"]")
_WORD = re.compile(r"[^\s#{}\",=]+")
_SPACE = re.compile(r"\s*")
# Characters by which macros may lengthen a value: "b = a # a", "c = b # b" ... would fill memory.
_MAX_EXPANSION = 20_000


def parse(text: str, macros: dict[str, str]) -> Iterator[Entry | Broken]:
    """The entries in `text`, which begins with one or with none; `@string` is put into `macros`."""
    found = blocks(text)
    at = next((n for n, block in enumerate(found) if block.role != "comment"), None)
    if at is None:
        return
    first, rest = found[at], found[at + 1 :]
    leads = text.lstrip(" \t\n})").startswith("@")
    if leads and rest and is_torn(rest[0]):
        whole = joined(first, rest[0])
        if whole is None:
            yield from _broken(first, text, "a brace too many closes it before its last field")
        else:
            yield from _entry(whole, text, macros, leads=True)
    elif leads:
        read = mended(text) if first.role == "failed" else first
        if read is None:
            yield from _broken(first, text)
        else:
            yield from _entry(read, text, macros, leads=True)
    else:
        rest = found[at:]
    for block in rest:
        if block.role != "failed":
            yield from _entry(block, text, macros, leads=False)
        elif _starts_entry(block):
            yield from _broken(block, text)


def evaluate(raw: str, macros: Mapping[str, str]) -> Iterator[tuple[str | None, str, str]]:
    """A field's value, and further fields where the comma before them is missing.

    Yields (name, text, as written); the first name is None. Macros are put in, `#` joins.

    >>> list(evaluate('jan # " 1" title = {On {A}}', MONTHS))
    [(None, 'January 1', 'jan # " 1"'), ('title', 'On {A}', '{On {A}}')]
    """
    name: str | None = None
    start = 0
    while True:
        text, end = _value(raw, start, macros)
        ahead = _NEXT_FIELD.match(raw, end)
        if ahead is None:
            written = raw[start:].strip()
            whole = not raw[end:].strip()
            yield name, text if whole else _unquoted(written), written
            return
        yield name, text, raw[start:end].strip()
        name, start = ahead[1], ahead.end()


def _value(raw: str, at: int, macros: Mapping[str, str]) -> tuple[str, int]:
    """The text of `part # part ...` from `at`, and where it ends."""
    parts: list[str] = []
    room = _MAX_EXPANSION
    while True:
        at = _after_space(raw, at)
        part, end = _part(raw, at, macros)
        room -= len(part) - (end - at)
        parts.append(part if room > 0 else raw[at:end])
        after = _after_space(raw, end)
        if end == at or raw[after : after + 1] != "#":
            return "".join(parts), end
        at = after + 1


def _part(raw: str, at: int, macros: Mapping[str, str]) -> tuple[str, int]:
    if raw[at : at + 1] in ("{", '"'):
        end = _closing(raw, at)
        return raw[at + 1 : end], min(end + 1, len(raw))
    word = _WORD.match(raw, at)
    if word is None:
        return "", at
    name = word[0].lower()
    return macros.get(name) or MONTHS.get(name) or word[0], word.end()


def _closing(raw: str, at: int) -> int:
    """Where the brace or quotation mark that opens at `at` is closed."""
    depth = 0
    quoted = raw[at] == '"'
    for match in (_QUOTE_OR_BRACE if quoted else BRACE).finditer(raw, at + quoted):
        if match[0] == '"':
            if depth <= 0:
                return match.start()
        else:
            depth += 1 if match[0] == "{" else -1
            if depth == 0 and not quoted:
                return match.start()
    return len(raw)


def _after_space(raw: str, at: int) -> int:
    match = _SPACE.match(raw, at)
    return match.end() if match else at


def _unquoted(written: str) -> str:
    """A value with a quotation mark too many, or bare words, as it stands."""
    is_quoted = len(written) > 1 and written[0] == written[-1] == '"'
    return written[1:-1] if is_quoted else written


def _entry(
    block: Block, text: str, macros: dict[str, str], *, leads: bool
) -> Iterator[Entry | Broken]:
    if block.role == "string":
        [(name, raw)] = block.fields
        _, value, _ = next(evaluate(raw, macros))
        if len(value) <= _MAX_EXPANSION:
            macros.setdefault(name.lower(), value)
        return
    # "@word (" may stand in any text.
    if block.role != "entry" or not (leads or block.fields):
        return
    if block.line in _commented_lines(text):
        return
    values: dict[str, str] = {}
    written: dict[str, str] = {}
    for field, raw in block.fields:
        for further, value, source in evaluate(raw.replace(JOINT, ""), macros):
            lower = (further or field).strip().lower()
            if lower and not values.get(lower):
                values[lower], written[lower] = value.strip(), source
    yield Entry(block.kind, block.key.replace(JOINT, ""), values, written, block.line)


@lru_cache(maxsize=1)
def _commented_lines(text: str) -> frozenset[int]:
    """Lines that begin with `%`: biber's comments; BibTeX itself would read an entry there."""
    if "%" not in text:
        return frozenset()
    lines = enumerate(text.split("\n"))
    return frozenset(number for number, line in lines if line.lstrip().startswith("%"))


def _starts_entry(block: Block) -> bool:
    """Whether what failed is an entry, and no "@" of some text."""
    start = ENTRY_START.match(block.raw)
    return (
        start is not None
        and bool(start[3])
        and FIELD_AHEAD.match(block.raw, start.end()) is not None
    )


def _broken(block: Block, text: str, reason: str | None = None) -> Iterator[Broken]:
    if block.line in _commented_lines(text):
        return
    start = ENTRY_START.match(block.raw)
    kind, key = (start[1].lower(), start[3].replace(JOINT, "")) if start else ("", "")
    yield Broken(kind, key, reason or _why(block.why), block.line)


def _why(said: str) -> str:
    if said.startswith("Expected a `=`"):
        return "a field has no value, or a comma is missing or one too many"
    if said.startswith("Expected comma"):
        return "no comma follows its key"
    return "it is never closed, so a brace or a quotation mark is missing"
