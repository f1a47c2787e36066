"""A place in a JSON text that is read in blocks: values are decoded there, one after the other."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

# Raised by the decoder: JSONDecodeError or an overlong number, and nesting beyond Python's stack.
BROKEN = (ValueError, RecursionError)

_NOT_SPACE = re.compile(r"[^ \t\n\r]")
# Text read at once, and text before the place that is kept no longer.
_STEP = 262_144
# The longest that a literal or an escape can be cut off before the decoder says where.
_LONGEST_TOKEN = 16
_DECODER = json.JSONDecoder()


class TooLongError(Exception):
    """A value is longer than was asked for."""


class JsonText:
    """Text around a place, `at` in `text`; what stands before it is forgotten at times.

    `ended` says that `text` reaches to the end of the file.
    """

    def __init__(self, blocks: Iterable[str]) -> None:
        self._blocks = iter(blocks)
        self.text = ""
        self.at = 0
        self.ended = False
        # Of the text that is forgotten: its lines, and the length of its last, unfinished one.
        self._lines, self._column = 0, 0
        # A place up to which lines are counted, and how many they are.
        self._counted, self._count = 0, 0

    def fill(self, length: int) -> None:
        """Read on until `length` characters follow the place, or the text ends."""
        missing = self.at + length - len(self.text)
        parts = [self.text]
        while missing > 0 and not self.ended:
            block = next(self._blocks, None)
            if block is None:
                self.ended = True
            else:
                parts.append(block)
                missing -= len(block)
        if len(parts) > 1:
            self.text = "".join(parts)

    def peek(self) -> str:
        """The next character that is not white space, which is passed over; "" at the end."""
        while True:
            found = _NOT_SPACE.search(self.text, self.at)
            if found:
                self.at = found.start()
                return found[0]
            self.at = len(self.text)
            if self.ended:
                return ""
            self.forget()
            self.fill(_STEP)

    def value(self, longest: int | None = None) -> object:
        """The value at the place, which then stands behind it; or stays, if there is none.

        Raises:
            ValueError, RecursionError: no valid JSON stands there.
            TooLongError: the value does not end within `longest` characters.
        """
        self.forget()
        while True:
            try:
                value, end = _DECODER.raw_decode(self.text, self.at)
            except ValueError as error:
                if self.ended or not self._is_cut_off(error):
                    raise
            else:
                # A number may go on.
                if self.ended or end < len(self.text) or isinstance(value, str | dict | list):
                    self.at = end
                    return value
            length = len(self.text) - self.at
            if longest is not None and length >= longest:
                raise TooLongError
            self.fill(max(2 * length, _STEP))

    def line_end(self) -> int:
        """Where the line at the place ends, without its line feed."""
        self.forget()
        searched = self.at
        while True:
            end = self.text.find("\n", searched)
            if end >= 0 or self.ended:
                return end if end >= 0 else len(self.text)
            searched = len(self.text)
            self.fill(max(2 * (searched - self.at), _STEP))

    def find(self, pattern: re.Pattern[str], start: int) -> bool:
        """Move to the next match from `start` on, if there is any; it has at most `_STEP` signs."""
        while True:
            found = pattern.search(self.text, start)
            if found:
                self.at = found.start()
                return True
            if self.ended:
                return False
            start = max(start, len(self.text) - 1_024)
            self.at = start
            self.forget()
            start = self.at
            self.fill(_STEP)

    def line(self, place: int | None = None) -> int:
        """The line of a place in `text`, from 1."""
        place = self.at if place is None else place
        if place < self._counted:
            self._counted, self._count = 0, 0
        self._count += self.text.count("\n", self._counted, place)
        self._counted = place
        return self._lines + self._count + 1

    def reason(self, error: Exception) -> str:
        """Why the decoder failed, and where in the file."""
        if isinstance(error, json.JSONDecodeError):
            start = self.text.rfind("\n", 0, error.pos) + 1
            column = error.pos - start + 1 + (0 if start else self._column)
            return f"{error.msg} at line {self.line(error.pos)}, column {column}"
        return "nested too deeply" if isinstance(error, RecursionError) else "a number is too long"

    def _is_cut_off(self, error: ValueError) -> bool:
        """Whether the value may be valid once more of the text is read."""
        return isinstance(error, json.JSONDecodeError) and (
            error.msg.startswith("Unterminated string")
            or error.pos + _LONGEST_TOKEN >= len(self.text)
        )

    def forget(self) -> None:
        """Let go of what stands before the place; positions in `text` change."""
        if self.at < _STEP:
            return
        self.line(self.at)
        start = self.text.rfind("\n", 0, self.at) + 1
        self._column = self.at - start + (0 if start else self._column)
        self._lines += self._count
        self.text = self.text[self.at :]
        self.at, self._counted, self._count = 0, 0, 0
