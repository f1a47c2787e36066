"""A review's sections, parted by the headings of a conference site's form or the reviewer's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rag.review.headings import Role, is_aspect, is_rating, known_heading, normalised

# A longer line is text, whatever its markup.
_MAX_HEADING = 90
_ATX = re.compile(r"[^\S\n]{0,3}(#{1,6})[^\S\n]*([^\n]*?)[^\S\n]*#*[^\S\n]*")
_RULE = re.compile(r"[^\S\n]{0,3}(?:={3,}|-{3,}|_{3,}|\*{3,}|—{2,})[^\S\n]*")
_BOLD = re.compile(
    r"[^\S\n]*(?:\*\*|__)[^\S\n]*([^*_\n]{1,80}?)[^\S\n]*(?:\*\*|__)[^\S\n]*:?[^\S\n]*"
)
_MARKER = re.compile(r"[^\S\n]*(?:[-*+•]|\(?\d{1,2}[.)]|[A-H][.)])[^\S\n]+")
_LABEL = re.compile(
    r"(?P<mark>[*_#<>\[\s]*)(?P<name>[A-Za-z][A-Za-z "
    r",&/()'’_-]{1,79}?)\s*[*_\]]*\s*[:：][*_\]]*[^\S\n]*"
)
_RULED = "=-_*—"
# A heading without marks is capitalised.
_FIRST_WORD = re.compile(r"\W*(?:\d{1,2}\W+)?[A-Z]")
# Words that head nothing else; others could begin any bullet ("Presentation: ...").
_MAIN = frozenset("strengths weaknesses questions".split())


@dataclass(frozen=True, slots=True)
class Section:
    """The text `[start, end)` below a heading; `name` is "" where there was none.

    A sub-heading begins another section of the same name.
    """

    name: str
    role: Role
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Heading:
    """A line that heads: `body` is where its section's text begins, `level` compares headings."""

    title: str
    level: tuple[str, int]
    start: int
    body: int


def find_sections(text: str) -> tuple[Section, ...]:
    """The sections of a review in order; headings, rules and marks ("Rating: 5") belong to none.

    Known names are those of the usual forms (see `known_heading`) as Markdown headings, underlined,
    bold or capital lines, or labels with a colon. Text before any heading is `Role.MIXED`.
    """
    sections: list[Section] = []
    name, role, level, start = "", Role.MIXED, ("", 0), 0
    for heading in _headings(text):
        if heading.start > start:
            sections.append(Section(name, role, start, heading.start))
        start = heading.body
        if not heading.title:
            continue
        known = known_heading(heading.title)
        below = level[0] != "" and role is not Role.NONE and _is_below(heading.level, level)
        if known is not None and not (below and is_aspect(heading.title)):
            (name, role), level = known, heading.level
        elif not below and level != ("", 0):
            name, role, level = normalised(heading.title), Role.MIXED, heading.level
    if start < len(text):
        sections.append(Section(name, role, start, len(text)))
    return tuple(section for section in sections if text[section.start : section.end].strip())


def _is_below(level: tuple[str, int], top: tuple[str, int]) -> bool:
    return level[0] != top[0] or level[1] > top[1]


def _headings(text: str) -> Iterator[_Heading]:
    at, previous = 0, (0, "")
    for line in text.splitlines(keepends=True):
        end = at + len(line)
        bare = line.rstrip()
        heading = None
        if bare and bare.lstrip()[0] in _RULED and _RULE.fullmatch(bare):
            yield _underlined(previous, bare, at, end)
            bare = ""
        elif _may_head(bare):
            heading = _heading(bare, at, end)
        if heading is not None:
            yield heading
            bare = ""
        previous = (at, bare)
        at = end


def _may_head(line: str) -> bool:
    """Whether a line has a heading's marks or is short and begins with a word of headings."""
    start = line[: 2 * _MAX_HEADING]
    if "#" in start[:4] or ":" in start or "：" in start or "**" in start or "__" in start:
        return True
    return len(line) <= _MAX_HEADING and _FIRST_WORD.match(line) is not None


def _underlined(above: tuple[int, str], rule: str, at: int, end: int) -> _Heading:
    """The heading that a rule makes of the line above; alone it parts sections without a title."""
    start, title = above
    heads = (
        rule.strip()[0] in "-="
        and 0 < len(title.strip()) <= _MAX_HEADING
        and (title.rstrip()[-1] not in ".?!,;" and _MARKER.match(title) is None)
    )
    if not heads:
        return _Heading("", ("", 0), at, end)
    return _Heading(title.strip(" *#:"), ("line", 1 + (rule.strip()[0] == "-")), start, end)


def _heading(line: str, at: int, end: int) -> _Heading | None:
    bare = line.strip()
    if not bare:
        return None
    if bare[0] == "#":
        atx = _ATX.fullmatch(line) if len(line) <= 4 * _MAX_HEADING else None
        if atx is not None:
            return _atx(atx, at, end)
    return _label(line, at, end) or _whole_line(bare, at, end)


def _atx(atx: re.Match[str], at: int, end: int) -> _Heading:
    """Text may stand behind a title: "## Weaknesses: none"."""
    label = _LABEL.match(atx[2])
    # "Review of: A Title" is a title.
    titled = label is None or label["name"].lower().endswith((" of", " for"))
    if (
        label is not None
        and not titled
        and known_heading(label["name"])
        and atx[2][label.end() :].strip(" *")
    ):
        return _Heading(label["name"], ("#", len(atx[1])), at, at + atx.start(2) + label.end())
    return _Heading(atx[2].strip(" *_:") or "-", ("#", len(atx[1])), at, end)


def _label(line: str, at: int, end: int) -> _Heading | None:
    marker = _MARKER.match(line)
    offset = marker.end() if marker is not None else 0
    label = _LABEL.match(line, offset, offset + 2 * _MAX_HEADING)
    if label is None:
        return None
    rest = line[label.end() :]
    if marker is None and is_rating(label["name"], rest):
        return _Heading("", ("", 0), at, end)
    known = known_heading(label["name"])
    if known is None or (rest.strip(" *_") and not _may_run_on(label, known[0], marker is None)):
        return None
    return _Heading(label["name"], ("label", 0), at, at + label.end() if rest.strip(" *_") else end)


def _may_run_on(label: re.Match[str], canonical: str, unmarked: bool) -> bool:
    """Whether text may follow on a label's line: not after what could begin any remark."""
    words = normalised(label["name"]).split()
    if words[0] in ("the", "my", "your"):
        return False
    if canonical in _MAIN:
        return words[-1] not in ("question", "concern", "issue", "weakness") or len(words) == 1
    return unmarked and not is_aspect(label["name"])


def _whole_line(bare: str, at: int, end: int) -> _Heading | None:
    if len(bare) > _MAX_HEADING:
        return None
    bold = _BOLD.fullmatch(bare)
    title = bold[1].rstrip(": ") if bold is not None else bare
    marker = _MARKER.match(title)
    title = title[marker.end() :] if marker is not None else title
    known = known_heading(title)
    if bold is not None and (known or (title[-1:] not in ".?!,;" and len(title.split()) <= 8)):
        return _Heading(title, ("bold", 0), at, end) if known or marker is None else None
    if known is not None and title[:1].isupper() and title[-1:] not in ".?!,;)":
        return _Heading(title.rstrip(": "), ("bare", 0), at, end)
    return None
