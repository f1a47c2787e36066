"""The one place that knows bibtexparser: text -> its blocks, and names -> people."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from bibtexparser.library import Library
    from bibtexparser.model import Block as Parsed
    from bibtexparser.model import Field

Role = Literal["entry", "string", "comment", "failed"]


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a BibTeX text; its `line` counts from 0.

    `kind` is the entry's type in lower case, `fields` its names and values as written (a string's
    are its one). `raw` is the source, for a comment only its text. `why` is what the library says
    of one that failed.
    """

    role: Role
    raw: str
    line: int
    kind: str = ""
    key: str = ""
    fields: tuple[tuple[str, str], ...] = ()
    why: str = ""


def blocks(text: str) -> list[Block]:
    """What `text` consists of, in order; keys and fields that occur twice are no failure."""
    return [_block(block) for block in _parser()(text).blocks]


def people(names: str) -> list[str]:
    """Names parted by "and", each as "Given von Family Jr", still with its braces and LaTeX."""
    from bibtexparser.middlewares.names import (
        parse_single_name_into_parts,
        split_multiple_persons_names,
    )

    parts = (
        parse_single_name_into_parts(name, strict=False)
        for name in split_multiple_persons_names(names)
    )
    return [part.merge_first_name_first for part in parts]


@cache
def _parser() -> Callable[[str], Library]:
    from bibtexparser.entrypoint import parse_string

    # It logs every broken entry; they are reported with the file's other rejected records.
    logging.getLogger("bibtexparser").setLevel(logging.CRITICAL + 1)

    def parse(text: str) -> Library:
        return parse_string(text, parse_stack=[])

    return parse


def _block(block: Parsed) -> Block:
    from bibtexparser import model

    inner: Parsed | None = block
    while isinstance(inner, model.DuplicateBlockKeyBlock | model.DuplicateFieldKeyBlock):
        inner = inner.ignore_error_block
    raw, line = block.raw or "", block.start_line or 0
    if isinstance(inner, model.Entry):
        fields = _fields(inner.fields)
        return Block("entry", raw, line, inner.entry_type.lower(), inner.key, fields)
    if isinstance(inner, model.String):
        return Block("string", raw, line, fields=((inner.key, inner.value),))
    if isinstance(inner, model.ParsingFailedBlock):
        if raw[:9].lower().startswith(("@comment", "@preamble")):
            return Block("comment", "", line)
        return Block("failed", raw, line, why=getattr(inner.error, "abort_reason", ""))
    # What stands between the entries may turn out to be torn off from one.
    return Block("comment", inner.comment if isinstance(inner, model.ImplicitComment) else "", line)


def _fields(found: Sequence[Field]) -> tuple[tuple[str, str], ...]:
    return tuple((field.key, field.value) for field in found)
