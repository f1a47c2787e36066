r"""RIS files of any dialect, and PubMed's own format (nbib, MEDLINE), as a stream of records.

>>> lines = ["TY  - JOUR\n", "TI  - On A\n", "AB  - We do\n", "it.\n", "ER  - \n"]
>>> [record] = records(lines, "a.ris", {})
>>> record.title, record.abstract
('On A', 'We do\nit.')
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from rag.papers import MIN_WORDS
from rag.readers.fields import record_from
from rag.readers.ris_fields import Tagged, fields_of
from rag.types import Record, Rejected, Source

# Two letters and two blanks; exporters also write a tab, and some a single blank throughout.
_TAG = re.compile(r"[ \t]{0,3}([A-Z][A-Z0-9])(?: {2,4}| ?\t+)-(?:[ \t]|(?=\s*\Z)|(?=\S))(.*)", re.S)
_TIGHT_TAG = re.compile(r"[ \t]{0,3}([A-Z][A-Z0-9]) -(?:[ \t]|(?=\s*\Z))(.*)", re.S)
_MEDLINE_TAG = re.compile(r"(?=.{4}- )([A-Z][A-Z0-9]{1,3}) *- (.*)", re.S)
_START = re.compile(r"[ \t]{0,3}TY(?: {1,4}| ?\t+)-")
_MEDLINE_START = re.compile(r"PMID ?- ?\d")
_END = re.compile(r"[ \t]{0,3}ER[ \t]*-?\s*\Z")

# What makes a record without TY one; other tags behind ER belong to the one before (Ovid's NL).
_CORE = frozenset("TI T1 AB N2 CT BT ST".split())
# Between records stand numbers ("1.", "<3>"), the exporter's remarks and links to full texts.
_DIVIDER = re.compile(
    r"[\W\d]*\Z|https?://\S+\Z"
    r"|(?:Provider|Database|Content|Date|Export|Search|Set|Results?|Link)\b[^:]{0,60}:.{0,1000}\Z",
    re.S,
)

_LOOKS = re.compile(r"^[ \t]{0,3}TY(?: {1,4}| ?\t+)-|^PMID ?- ?\d", re.M)
_LOOKS_TAGGED = re.compile(r"^(?:TI|T1|AB|N2|AU|A1|PY|Y1|JO|JF|T2|ER) {2}-(?: |$)", re.M)


def looks_like(head: str) -> bool:
    """Whether a record of RIS or of PubMed begins, or at least three lines have their tags."""
    return _LOOKS.search(head) is not None or len(_LOOKS_TAGGED.findall(head)) >= 3


def records(
    lines: Iterable[str], file: str, columns: Mapping[str, str]
) -> Iterator[Record | Rejected]:
    """The records, and text between them that is none as `Rejected`."""
    for position, group in enumerate(_groups(lines), start=1):
        source = Source(file, position)
        if group.tags:
            yield record_from(fields_of(group.tags), source, group.line, columns)
        else:
            start = " ".join(group.text.split())[:60]
            reason = f"Text outside any record: {start!r}. A record begins with a TY line."
            yield Rejected(file, position, reason, group.line)


@dataclass(slots=True)
class _Group:
    """A record's lines; without any tags, text between two records."""

    line: int
    tags: list[Tagged] = field(default_factory=list)
    text: str = ""

    def has_core(self) -> bool:
        return any(tag.name in _CORE for tag in self.tags)


class _Cutter:
    """Cuts the lines into groups; `take` returns those that a line has ended."""

    def __init__(self) -> None:
        self.group: _Group | None = None
        self.is_open = False  # begun by TY or PMID
        self.is_medline = False
        self.tight = False
        self.blank_before = False
        self.loose: list[str] = []
        self.loose_line = 0

    def take(self, number: int, line: str) -> Iterator[_Group]:
        if not line.strip():
            self.blank_before = True
            if self.group is not None:
                self.group.tags[-1].lines.append("")
            return
        if _START.match(line) or _MEDLINE_START.match(line):
            yield from self._begin(number, line)
        elif _END.match(line):
            yield from self._close()
        elif (tag := self._tag(line)) is not None:
            yield from self._tagged(number, *tag)
        elif self.group is not None and self._continues(self.group):
            self.group.tags[-1].lines.append(line.strip())
        else:
            if not self.loose:
                self.loose_line = number
            self.loose.append(line)
        self.blank_before = False

    def end(self) -> Iterator[_Group]:
        """What is still open."""
        yield from self._close()
        yield from self._text()

    def _begin(self, number: int, line: str) -> Iterator[_Group]:
        yield from self._close()
        yield from self._text()
        self.is_medline = line.startswith("PMID")
        self.tight = not self.is_medline and _TAG.match(line) is None
        self.group, self.is_open = _Group(number), True
        name, _, value = line.partition("-")
        self.group.tags.append(Tagged(name.strip(), [value.strip()]))

    def _tag(self, line: str) -> tuple[str, str] | None:
        match = _MEDLINE_TAG.match(line) if self.is_medline and self.is_open else None
        match = match or _TAG.match(line)
        if match is None and (self.tight or not self.is_open):
            match = _TIGHT_TAG.match(line)
        return (match[1], match[2].strip()) if match else None

    # An ER with a text ends nothing: TY begins the next record in any case.
    def _tagged(self, number: int, name: str, value: str) -> Iterator[_Group]:
        if self.group is not None and not self.is_open and self._repeats(name):
            yield from self._close()
        if self.group is None:
            if name in _CORE:
                yield from self._text()
            self.group, self.is_open = _Group(number), False
        self.group.tags.append(Tagged(name, [value]))

    def _repeats(self, name: str) -> bool:
        """Without TY and ER, records are parted by blank lines and begin with the same tag."""
        return self.blank_before and self.group is not None and self.group.tags[0].name == name

    def _continues(self, group: _Group) -> bool:
        """Behind ER, text after a blank line is no part of a stray tag."""
        return self.is_open or not self.blank_before or group.has_core()

    def _close(self) -> Iterator[_Group]:
        group, was_open = self.group, self.is_open
        self.group, self.is_open = None, False
        if group is None:
            return
        # A lone tag or two behind ER are of the record before.
        if was_open or group.has_core() or len(group.tags) > 2:
            yield group

    def _text(self) -> Iterator[_Group]:
        lines = [line for line in self.loose if not _DIVIDER.match(line.strip())]
        self.loose = []
        text = "\n".join(lines)
        if len(text.split()) >= MIN_WORDS:
            yield _Group(self.loose_line, text=text)


def _groups(lines: Iterable[str]) -> Iterator[_Group]:
    cutter = _Cutter()
    for number, line in enumerate(lines, start=1):
        yield from cutter.take(number, line)
    yield from cutter.end()
