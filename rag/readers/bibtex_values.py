"""BibTeX fields' values -> texts and lists as any reader gives them, and the entry itself."""

from __future__ import annotations

import re

from rag.readers import bibtex_library
from rag.readers.bibtex_entries import MONTHS, Entry
from rag.text import clean

# An entry that a reference list can take over is short.
MAX_BIBTEX = 8_000

_PEOPLE = frozenset(
    "author editor editora editorb editorc translator bookauthor shortauthor shorteditor "
    "commentator annotator introduction foreword afterword holder".split()
)
_NOBODY = frozenset({"others", "et al.", "et al"})
_KEYWORDS = frozenset({"keywords", "keyword", "author_keywords", "keywords-plus", "mesh_terms"})
_VERBATIM = frozenset(
    "doi url eprint file pdf link ee urlraw arxivid localfile bdsk-url-1 bdsk-url-2 "
    "eprinttype archiveprefix eprintclass primaryclass isbn issn pmid".split()
)
# `rag.text.clean` reads LaTeX and cleans both when a paper is made.
_CLEANED_LATER = frozenset({"title", "abstract"})

_TEX = re.compile(r"\\|\$[^$]+\$|[_^]\{")
_BRACES = re.compile(r"[{}]")
# Around a word or more a brace protects capitals; "{a, b}" is a set.
_PROTECTED = re.compile(r"\{([^{},]*)\}")
# What opens an argument or a script, or holds a macro, is LaTeX's; the rest protects capitals.
_LATEX_GROUP = re.compile(r"(?<=[A-Za-z_^}\]])\{|\{(?=[\\}])")
_BRACE = re.compile(r"(?<!\\)[{}]")
_ESCAPED = re.compile(r"\\([_%#&~{}$])")
_URL_MACRO = re.compile(r"\A\\(?:url|href|path|nolinkurl)\s*\{([^{}]*)\}.*\Z", re.S)
_SEPARATOR_OR_BRACE = re.compile(r"(?<!\\)[{},;]")
_SPACES = re.compile(r"\s+")
# "\c s" for "\c{s}"
_SPACED_ACCENT = re.compile(r"(?<!\\)\\([cvrHkubdt])[^\S\n]+([A-Za-z]|\\[ij](?![A-Za-z]))")
# biblatex's own, which LaTeX does not know.
_SIGNS = re.compile(r"\\(hyphen|slash|addcolon|addcomma|adddot|addspace)(?![A-Za-z])\s*(?:\{\})?")
_SIGN = {"hyphen": "-", "slash": "/", "addcolon": ": ", "addcomma": ", ", "adddot": ".",
         "addspace": " "}  # fmt: skip
_BARE_WORD = re.compile(r"[A-Za-z][^\s#{}\",=]*\Z|.*#", re.S)


def fields_of(entry: Entry) -> dict[str, object]:
    """The entry's fields by name, people and keywords as lists, and "id", its key."""
    fields: dict[str, object] = {}
    for name, value in entry.values.items():
        shown = _shown(name, value)
        if shown:
            fields[name] = shown
    fields.pop("id", None)
    if entry.key:
        fields["id"] = entry.key
    if entry.values.get("subtitle") and entry.values.get("title"):
        fields["title"] = _with_subtitle(entry.values["title"], entry.values["subtitle"])
    kind = entry.values.get("eprinttype") or entry.values.get("archiveprefix") or ""
    if "eprint" in fields and kind.strip("{} ").casefold() == "arxiv":
        fields["arxiv"] = fields["eprint"]
    return fields


def people(value: str) -> list[str]:
    r"""Names parted by "and", each as "Given von Family Jr"; "and others" is nobody.

    >>> people(r"van der Berg, J{\"o}rg and {Group, Inc.} and others")
    ['Jörg van der Berg', 'Group Inc.']
    """
    # A comma is left only within a group's name, where it would pass for one after a family's.
    given = bibtex_library.people(_SPACES.sub(" ", value).strip())
    shown = (readable(name).replace(",", "") for name in given)
    return [name for name in shown if name and name.casefold() not in _NOBODY]


def keywords(value: str) -> list[str]:
    """Parts between semicolons, or else between commas; not those within braces."""
    cuts: dict[str, list[int]] = {",": [], ";": []}
    depth = 0
    for match in _SEPARATOR_OR_BRACE.finditer(value):
        if match[0] in cuts:
            if depth <= 0:
                cuts[match[0]].append(match.start())
        else:
            depth += 1 if match[0] == "{" else -1
    ends = [*(cuts[";"] or cuts[","]), len(value)]
    starts = [0, *(end + 1 for end in ends)]
    parts = (readable(value[start:end]) for start, end in zip(starts, ends, strict=False))
    return [part for part in parts if part]


def readable(value: str) -> str:
    """LaTeX as plain text, without the braces that protect capitals."""
    return clean(_unprotected(value))


def written(entry: Entry) -> str:
    """The entry in BibTeX as its source wrote it, without the abstract, on lines of its own.

    Macros are put in, since their definitions stay behind; the longest fields go where it would
    have more than `MAX_BIBTEX` characters.
    """
    lines = {
        name: f"  {name} = {_value(entry, name)}" for name in entry.written if name != "abstract"
    }
    start, end = f"@{entry.kind}{{{entry.key}", "\n}"
    size = len(start) + len(end) + sum(len(line) + 2 for line in lines.values())
    for name in sorted(lines, key=lambda name: -len(lines[name])):
        if size <= MAX_BIBTEX:
            break
        size -= len(lines.pop(name)) + 2
    return ",\n".join([start, *lines.values()]) + end


def _value(entry: Entry, name: str) -> str:
    raw = _SPACES.sub(" ", entry.written[name]).strip()
    if _BARE_WORD.match(raw) and raw.lower() not in MONTHS and raw[:1] not in ("{", '"'):
        return f"{{{_SPACES.sub(' ', entry.values[name])}}}"
    return raw


def _shown(name: str, value: str) -> str | list[str]:
    if name in _CLEANED_LATER:
        return _unprotected(value, sets=name == "abstract").strip()
    if name in _PEOPLE:
        return people(value)
    if name in _KEYWORDS:
        return keywords(value)
    if name in _VERBATIM or name.startswith("bdsk-"):
        return _verbatim(value)
    return readable(value)


def _unprotected(value: str, *, sets: bool = False) -> str:
    """Braces out where they are no LaTeX; in an abstract, `sets` of several things keep theirs."""
    if "\\" in value:
        value = _SIGNS.sub(lambda match: _SIGN[match[1]], value)
        value = _SPACED_ACCENT.sub(r"\\\1{\2}", value)
    if "{" not in value:
        return value
    if sets:
        outer = value.strip()
        if outer.startswith("{") and outer.endswith("}") and _closes_last(outer):
            value = outer[1:-1]
    if _TEX.search(value):
        # `clean` takes out the rest, but for lists, which it takes for the author's.
        return value if sets or "," not in value else _without_groups(value)
    return _PROTECTED.sub(r"\1", value) if sets else _BRACES.sub("", value)


def _without_groups(value: str) -> str:
    out: list[int] = []
    opened: list[int | None] = []
    for match in _BRACE.finditer(value):
        at = match.start()
        if match[0] == "{":
            opened.append(None if _LATEX_GROUP.match(value, at) else at)
        elif opened and (start := opened.pop()) is not None:
            out += [start, at]
    left = set(out)
    return "".join(char for at, char in enumerate(value) if at not in left)


def _closes_last(text: str) -> bool:
    depth = 0
    for match in _BRACE.finditer(text):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return match.end() == len(text)
    return False


def _verbatim(value: str) -> str:
    text = value.strip()
    macro = _URL_MACRO.match(text)
    return _BRACES.sub("", _ESCAPED.sub(r"\1", macro[1] if macro else text)).strip()


def _with_subtitle(title: str, subtitle: str) -> str:
    joint = "" if title.rstrip("}").endswith(("?", "!", ":", ".")) else ":"
    return f"{_unprotected(title)}{joint} {_unprotected(subtitle)}"
