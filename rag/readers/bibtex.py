r"""BibTeX and BibLaTeX files: entries cut from the stream, related ones brought together.

>>> lines = ["@misc{a, title = {On {A}}, abstract = {We do it.}, author = {Day, C{\\'e}}}"]
>>> [record] = records(lines, "a.bib", {})
>>> record.id, record.title, record.metadata["authors"]
('a', 'On A', ['Cé Day'])
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from rag.readers.bibtex_entries import Broken, Entry, parse
from rag.readers.bibtex_family import Family
from rag.readers.bibtex_repair import BRACE, JOINT
from rag.readers.bibtex_values import fields_of, written
from rag.readers.fields import record_from
from rag.types import Record, Rejected, Source

_TYPE = r"@[^\S\n]*[A-Za-z][\w-]{0,40}"
# After a closing brace an entry may follow on the same line.
_HEAD = re.compile(rf"[^\S\n]*(?:[}})][}})\s]*)?{_TYPE}[^\S\n]*[{{(]")
# A line that begins so is an entry even where the one before was not closed.
_SURE_HEAD = re.compile(
    rf"[^\S\n]*(?:[}})][}})\s]*)?{_TYPE}[^\S\n]*[{{(]\s*"
    r"(?:[^\s,={}()\"]*\s*(?:,|\Z)|[\w:.-]+\s*=)"
)
_META_HEAD = re.compile(r"[^\S\n]*@[^\S\n]*(?:string|comment|preamble)[^\S\n]*[{(]", re.I)
_TYPE_ALONE = re.compile(rf"[^\S\n]*{_TYPE}\s*\Z")
# The library knows letters, digits and `_` in a type, and no space before it.
_TYPE_NAME = re.compile(r"@[^\S\n]*([A-Za-z][\w-]{0,40})(?=[^\S\n]*[{(])")
_LOOKS = re.compile(
    rf"^[^\S\n]*(?:{_TYPE}\s{{0,20}}[{{(][^\S\n]{{0,20}}[^\s,={{}}\"]{{0,200}}\s{{0,20}},\s{{0,80}}"
    r"[A-Za-z][\w-]{0,40}\s{0,40}=|@(?:string|preamble|comment)\s{0,20}[{(])",
    re.M | re.I,
)


def looks_like(head: str) -> bool:
    """Whether an entry with a first field, or a `@string` or the like, begins a line."""
    return "@" in head and _LOOKS.search(head) is not None


def records(
    lines: Iterable[str], file: str, columns: Mapping[str, str]
) -> Iterator[Record | Rejected]:
    """The entries, each with what it inherits by `crossref` and `xdata`.

    One that waits for a later entry comes after it, or at the end. In memory stay those, and the
    books and proceedings that others may refer to.
    """
    macros: dict[str, str] = {}
    family = Family()
    position = 0
    for block_line, text in _blocks(lines):
        for entry in parse(text, macros):
            position += 1
            source, line = Source(file, position), block_line + entry.line
            if isinstance(entry, Broken):
                yield _unread(entry, source, line)
                continue
            for whole, place, at in family.add(entry, source, line):
                yield _record(whole, place, at, columns)
    for whole, place, at in family.rest():
        yield _record(whole, place, at, columns)


def _record(
    entry: Entry, source: Source, line: int, columns: Mapping[str, str]
) -> Record | Rejected:
    if entry.kind == "xdata":
        reason = "An @xdata entry holds fields for other entries; it is no paper."
        return Rejected(source.file, source.position, reason, line)
    found = record_from(fields_of(entry), source, line, columns)
    if isinstance(found, Rejected):
        return found
    own = {"entrytype": entry.kind, "bibtex": written(entry)}
    return replace(found, metadata={**found.metadata, **own})


def _unread(entry: Broken, source: Source, line: int) -> Rejected:
    named = f"@{entry.kind} {entry.key[:80]}".strip()
    reason = f"{named} cannot be read: {entry.reason}. Mend it in the file."
    return Rejected(source.file, source.position, reason, line)


def _blocks(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """The text cut before every line that begins an entry, with the line's number."""
    start, block = 1, list[str]()
    depth = counted = 0
    for number, line in _with_whole_heads(lines):
        if "@" in line and _HEAD.match(line):
            begins = _SURE_HEAD.match(line) or _META_HEAD.match(line)
            if not begins:
                # Within an open entry "@word (" may begin a line of some text.
                depth, counted = depth + _depth(block[counted:]), len(block)
            if begins or depth <= 0:
                if block:
                    yield start, _normalised(block)
                start, block, depth, counted = number, [], 0, 0
        block.append(line)
    if block:
        yield start, _normalised(block)


def _with_whole_heads(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Numbered lines; a type alone, with its brace on the next line, is put before the brace."""
    waiting: tuple[int, str] | None = None
    for number, line in enumerate(lines, start=1):
        if waiting is not None:
            first, text = waiting
            waiting = None
            if line.lstrip()[:1] in ("{", "("):
                # The line end goes behind, so that the lines are still as many.
                yield first, f"{text.rstrip()}{line.lstrip()}"
                yield number, "\n"
                continue
            yield first, text
        if "@" in line and _TYPE_ALONE.match(line):
            waiting = number, line
        else:
            yield number, line
    if waiting is not None:
        yield waiting


def _depth(lines: Iterable[str]) -> int:
    """Braces opened less those closed."""
    return sum(1 if brace == "{" else -1 for line in lines for brace in BRACE.findall(line))


def _normalised(block: list[str]) -> str:
    head = _TYPE_NAME.sub(lambda match: "@" + match[1].replace("-", "_"), block[0], count=1)
    # Any other "@word{" that begins a line is of a text, where the library would see an entry.
    rest = [f"{JOINT}{line}" if _HEAD.match(line) else line for line in block[1:]]
    return "".join([head, *rest])
