"""JSON arrays, objects and lines of records; all but objects that hold few are read as a stream."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from rag.readers.fields import kind_of, record_from
from rag.readers.json_fields import flat_fields
from rag.readers.json_shape import WHOLE, Shape, shape_of, shape_of_long
from rag.readers.json_text import BROKEN, JsonText, TooLongError
from rag.types import Record, Rejected, Source

# Characters that tell JSONL from one document.
_SAMPLE = 65_536
# Records nested too deeply, one after the other, that are no list of records any more.
_MOST_TOO_DEEP = 100
# A record that follows a broken one begins at most so long before where the decoder stumbled.
_OVERRUN = 128

_LOOKS_LIKE_JSON = re.compile(r"\s*(?:\{\s*[\"}]|\[\s*[\[{\"\]])")
_FIRST_KEY = re.compile(r"[\[\s]*\{\s*(\"(?:[^\"\\]|\\.){0,100}\")\s*:")
_ARRAY_OF_OBJECTS = re.compile(r":\s{0,100}\[(?=\s{0,100}\{)")
_OBJECT_IN_ARRAY = re.compile(r"\[\s*\{")

_Outcomes = Iterator[Record | Rejected]


def looks_like(head: str) -> bool:
    """Whether a text begins as a JSON object or array does ("[12] We ..." does not)."""
    return _LOOKS_LIKE_JSON.match(head) is not None


def records(
    blocks: Iterable[str], file: str, columns: Mapping[str, str], *, lines: bool = False
) -> _Outcomes:
    """Every record of a JSON text; `position` counts from 1.

    `blocks` is the text in pieces of any length. An array is a list of records; an object is one,
    or holds lists of them or records under their IDs; several documents may follow each other, as
    in JSONL. What is no record (broken JSON, no object, no abstract) comes out as `Rejected`.
    `lines` says that the file's ending promises JSONL.
    """
    text = JsonText(blocks)
    walk = _Walk(text, file, columns)
    start = text.peek()
    text.fill(_SAMPLE)
    if (lines and not _begins_array(text)) or (start != "[" and _is_jsonl(text)):
        return walk.lines()
    return walk.documents()


@dataclass(slots=True)
class _Walk:
    """The way through a text: its values become records, which are counted.

    `over` says that what follows cannot be read.
    """

    text: JsonText
    file: str
    columns: Mapping[str, str]
    position: int = 0
    too_deep: int = 0
    over: bool = False

    def lines(self) -> _Outcomes:
        """Each line is a document; a broken one costs no other."""
        while self.text.peek():
            end, line = self.text.line_end(), self.text.line()
            document = self.text.text[self.text.at : end]
            self.text.at = end
            try:
                value = json.loads(document)
            except BROKEN as error:
                yield self._rejected(f"The line is not JSON: {_reason(error)}.", line)
            else:
                yield self._record(value, line)

    def documents(self) -> _Outcomes:
        """Arrays and objects: usually one, else one after the other."""
        while not self.over and (start := self.text.peek()):
            if start == "[":
                yield from self._array()
            elif start == "{":
                yield from self._object()
            else:
                yield from self._element(None)
            if self.text.peek() == ",":
                self.text.at += 1

    def _array(self) -> _Outcomes:
        """The elements one by one, so that those before and after a break are not lost."""
        next_record = self._record_start()
        self.text.at += 1
        while not self.over:
            following = self.text.peek()
            if not following:
                self.over = True
                reason = "The JSON array has no end: it may be cut off. Check the export."
                yield self._rejected(reason, self.text.line())
            elif following == "]":
                self.text.at += 1
                return
            else:
                yield from self._element(next_record)
                if self.text.peek() == ",":
                    self.text.at += 1

    def _element(self, next_record: re.Pattern[str] | None) -> _Outcomes:
        line = self.text.line()
        try:
            value = self.text.value()
        except BROKEN as error:
            yield self._broken(error, line, next_record)
        else:
            self.too_deep = 0
            yield self._record(value, line)

    def _object(self) -> _Outcomes:
        """A record, or an object that holds records."""
        self.text.forget()
        start, line = self.text.at, self.text.line()
        try:
            value = self.text.value(WHOLE)
        except TooLongError:
            shape = shape_of_long(self.text.text, start)
        except BROKEN as error:
            yield from self._broken_object(error, line)
            return
        else:
            shape = shape_of(value, self.columns)
            if shape is Shape.RECORD:
                yield self._record(value, line)
                return
            self.text.at = start
        yield from self._members(shape)

    def _members(self, shape: Shape) -> _Outcomes:
        self.text.at += 1
        while not self.over:
            following, line = self.text.peek(), self.text.line()
            if following == "}":
                self.text.at += 1
                return
            try:
                key = self._key()
                yield from self._member(shape, key)
            except BROKEN as error:
                yield self._broken(error, line, None)
            if self.text.peek() == ",":
                self.text.at += 1

    def _key(self) -> str:
        key = self.text.value()
        if not isinstance(key, str) or self.text.peek() != ":":
            raise json.JSONDecodeError("Expecting a name and ':'", self.text.text, self.text.at)
        self.text.at += 1
        return key

    def _member(self, shape: Shape, key: str) -> _Outcomes:
        following, line = self.text.peek(), self.text.line()
        self.text.fill(_SAMPLE)
        if shape is Shape.NESTED and following == "{":
            yield from self._members(Shape.LISTS)
        elif shape is Shape.LISTS and _OBJECT_IN_ARRAY.match(self.text.text, self.text.at):
            yield from self._array()
        else:
            value = self.text.value()
            if shape is Shape.KEYED:
                yield self._record(value, line, key)
            elif isinstance(value, list) and any(isinstance(part, dict) for part in value):
                for part in value:
                    yield self._record(part, line)

    def _broken_object(self, error: Exception, line: int) -> _Outcomes:
        """What of the lists in a broken object can be read, or that it cannot."""
        if self.position:
            yield self._broken(error, line, self._record_start())
            return
        reason, rejected = self.text.reason(error), 0
        while not self.over and self.text.find(_ARRAY_OF_OBJECTS, self.text.at):
            self.text.at += 1
            self.text.peek()
            for outcome in self._array():
                rejected += isinstance(outcome, Rejected)
                yield outcome
        self.over = True
        if not rejected:
            yield self._rejected(f"The file is not JSON: {reason}.", line)

    def _broken(self, error: Exception, line: int, next_record: re.Pattern[str] | None) -> Rejected:
        """Says that a record is broken, and moves to the next one, if there is any."""
        start, reason = self.text.at + 1, self.text.reason(error)
        if isinstance(error, json.JSONDecodeError):
            start = max(start, error.pos - _OVERRUN)
        self.too_deep = self.too_deep + 1 if isinstance(error, RecursionError) else 0
        self.over = (
            next_record is None
            or self.too_deep > _MOST_TOO_DEEP
            or not self.text.find(next_record, start)
        )
        then = "what follows it was not read" if self.over else "reading goes on with the next one"
        return self._rejected(
            f"Record {self.position + 1}, from line {line}, is broken or cut off: {reason}; "
            f"{then}. Check the export.",
            line,
        )

    def _record_start(self) -> re.Pattern[str] | None:
        """How the records of the list at the place begin, if they are objects."""
        self.text.fill(_SAMPLE)
        first = _FIRST_KEY.match(self.text.text, self.text.at)
        return re.compile(r"\{\s*" + re.escape(first[1]) + r"\s*:") if first else None

    def _record(self, value: object, line: int, key: str | None = None) -> Record | Rejected:
        if not isinstance(value, Mapping):
            return self._rejected(f"It is {kind_of(value)}, not an object with an abstract.", line)
        self.position += 1
        source = Source(self.file, self.position)
        # Under "0", "1", ... stand the rows of a data frame.
        if key in (str(self.position - 1), str(self.position)):
            key = None
        return record_from(flat_fields(value), source, line, self.columns, key)

    def _rejected(self, reason: str, line: int) -> Rejected:
        self.position += 1
        return Rejected(self.file, self.position, reason, line)


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg.removesuffix(' at')} at column {error.colno}"
    return "nested too deeply" if isinstance(error, RecursionError) else "a number is too long"


def _begins_array(text: JsonText) -> bool:
    """Whether an array of records begins, in spite of an ending that promises JSONL."""
    if not text.text.startswith("[", text.at):
        return False
    if _OBJECT_IN_ARRAY.match(text.text, text.at):
        return True
    first, _, _ = text.text[text.at : text.at + _SAMPLE].partition("\n")
    try:
        json.loads(first)
    except BROKEN:
        return True
    return False


def _is_jsonl(text: JsonText) -> bool:
    """Whether most lines are objects of their own, and not parts of one document."""
    sample = text.text[text.at : text.at + _SAMPLE]
    lines = [line.strip() for line in sample.split("\n") if line.strip()]
    objects = [line.startswith("{") and line.endswith("}") for line in lines]
    if len(text.text) > text.at + _SAMPLE or not text.ended:  # the last is cut
        objects[-1:] = [lines[-1].startswith("{")] if lines else []
    return len(lines) > 1 and sum(objects) * 2 > len(lines)
