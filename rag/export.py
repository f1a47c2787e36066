"""A store's papers for other places: JSON Lines that restore them whole, or BibTeX.

Both are made a paper at a time, in the order of the IDs.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rag.bibliography import authors, year
from rag.errors import UsageError
from rag.keys import text_key
from rag.papers import content_hash
from rag.readers.exported import MARK, VERSION, looks_like
from rag.store import Place, Store
from rag.text import clean
from rag.types import Paper

FORMATS = ("jsonl", "bibtex")

# What BibTeX cannot have in a key.
_NOT_IN_KEY = re.compile(r"[\s,{}()\"#%'=~\\@]+")
_SPECIAL = re.compile(r"[\\{}$&#%_~^<>*`]|--|''")
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "*": "$*$",
    "`": r"\textasciigrave{}",
    "--": "-{}-",
    "''": "'{}'",
}


def lines(store: Store, form: str) -> Iterator[str]:
    """The papers as "jsonl" or as "bibtex", without ends of lines; ingesting them gives them again.

    JSON Lines keep IDs (other ones too), titles, texts, metadata and places; BibTeX keeps what a
    reference has, and the abstract.

    Raises:
        UsageError: another format.
    """
    if form not in FORMATS:
        raise UsageError(f"There is no format {form[:40]!r}. Choose one of {', '.join(FORMATS)}.")
    if form == "jsonl":
        for paper in store.papers():
            yield json.dumps(paper_record(paper, store.catalog.places(paper.id)))
        return
    used: set[str] = set()
    for paper in store.papers():
        yield bibtex_entry(paper, _free(_NOT_IN_KEY.sub("-", paper.id), used))


def paper_record(paper: Paper, places: list[Place]) -> dict[str, Any]:
    """A paper with all that a store knows of it, as `rag.readers.exported` reads it."""
    # Where a part was lost when it was stored (half a surrogate pair), the cleaned text is whole.
    original = paper.original if clean(paper.original) == paper.text else paper.text
    return {
        MARK: VERSION,
        "id": paper.id,
        "title": paper.title,
        "title_derived": paper.title_derived,
        "abstract": original,
        "metadata": dict(paper.metadata),
        "other_ids": sorted({place.record_id for place in places if place.record_id}),
        "sources": [_source(place, paper) for place in places],
    }


def bibtex_entry(paper: Paper, key: str) -> str:
    """A paper as an entry with its abstract; LaTeX's own signs are escaped.

    A derived title is left out: it is derived again.
    """
    metadata = paper.metadata
    keywords = metadata.get("keywords")
    fields = {
        "title": "" if paper.title_derived else f"{{{latex(paper.title)}}}",
        "author": " and ".join(_person(name) for name in authors(paper)),
        "year": year(paper),
        "booktitle": latex(str(metadata.get("venue", ""))),
        "keywords": latex("; ".join(keywords)) if isinstance(keywords, list) else "",
        "doi": latex(str(metadata.get("doi", ""))),
        "eprint": latex(str(metadata.get("arxiv", ""))),
        "archiveprefix": "arXiv" if metadata.get("arxiv") else "",
        "url": _balanced(str(metadata.get("url", ""))),
        "abstract": latex(paper.text),
    }
    kind = "inproceedings" if fields["booktitle"] else "misc"
    body = ",\n".join(f"  {name} = {{{value}}}" for name, value in fields.items() if value)
    return f"@{kind}{{{key},\n{body}\n}}\n"


def latex(text: str) -> str:
    r"""Plain text for LaTeX: "50% of A_1" -> "50\% of A\_1"."""
    return _SPECIAL.sub(lambda match: _LATEX.get(match[0], f"\\{match[0]}"), text)


def write(path: Path, exported: Iterator[str], on_paper: Callable[[], None] | None = None) -> int:
    """Write an export to a file, whole or not at all; how many papers it has.

    Raises:
        UsageError: the path is a folder, or another file that no export wrote.
        OSError: it cannot be written.
    """
    if path.is_dir() or (path.exists() and not _is_export(path)):
        raise UsageError(f"{path} is something else already. Choose a new name with --out FILE.")
    beside = path.with_name(f".{path.name[:200]}.{os.getpid()}.unfinished")
    count = 0
    try:
        with beside.open("w", encoding="utf-8", newline="\n") as file:
            for line in exported:
                file.write(f"{line}\n")
                count += 1
                if on_paper is not None:
                    on_paper()
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    return count


def _is_export(path: Path) -> bool:
    with path.open(encoding="utf-8", errors="replace") as file:
        head = file.read(200)
    return not head.strip() or looks_like(head) or (path.suffix == ".bib" and head[0] == "@")


def _source(place: Place, paper: Paper) -> dict[str, Any]:
    found: dict[str, Any] = {"file": place.source.file, "position": place.source.position}
    for name, value in (("id", place.record_id), ("doi", place.doi), ("arxiv", place.arxiv)):
        if value is not None:
            found[name] = value
    if place.text_key not in (None, text_key(content_hash(paper.text))):
        found["text_hash"] = f"{place.text_key & (1 << 64) - 1:016x}"
    return found


def _person(name: str) -> str:
    """A name that BibTeX does not part where it has a comma or an "and"."""
    shown = latex(name)
    return f"{{{shown}}}" if re.search(r",|\sand\s", name, re.I) else shown


def _balanced(address: str) -> str:
    return address.replace("{", "%7B").replace("}", "%7D")


def _free(key: str, used: set[str]) -> str:
    found, number = key or "paper", 2
    while found.casefold() in used:
        found, number = f"{key}-{number}", number + 1
    used.add(found.casefold())
    return found
