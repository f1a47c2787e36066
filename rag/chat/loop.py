"""Reads a line, does what it says, and goes on: whatever fails, the chat does not."""

from __future__ import annotations

import errno
from dataclasses import dataclass

from rag.chat import commands
from rag.chat.commands import Leave, Room
from rag.chat.line import Lines
from rag.chat.talk import LOADING, READING, Conversation
from rag.chat.view import View
from rag.errors import RagError, UsageError


@dataclass(slots=True)
class Tally:
    """What became of the questions."""

    answered: int = 0
    unanswered: int = 0
    failed: int = 0


class Loop:
    """One chat, from its first line to its end."""

    def __init__(self, talk: Conversation, view: View, lines: Lines, *, keep: bool = True) -> None:
        """Without `keep`, an unforeseen error leaves no file behind either."""
        self._talk = talk
        self._view = view
        self._lines = lines
        self._keep = keep
        self._unread = False
        self._room = Room(talk, view, self._ask)
        self.tally = Tally()

    def run(self) -> Tally:
        """Go on until the lines end, or one says so."""
        try:
            while (line := self._read()) is not None:
                if line.strip():
                    self._do(line.strip())
        except Leave:
            pass
        return self.tally

    def _read(self) -> str | None:
        """The next line; empty where it cannot be taken."""
        self._view.line_number += 1
        try:
            line = self._lines.read(self._prompt())
        except UsageError as error:
            self._failed(str(error))
            line = ""
        except BrokenPipeError:
            raise
        except Exception as error:
            if self._unread:  # nothing can be read any more
                raise
            self._unread = True
            self._mistaken(error)
            return ""
        self._unread = False
        return line

    def _do(self, line: str) -> None:
        try:
            if line.startswith("/"):
                commands.run(self._room, line)
            else:
                self._ask(line, False)
        except RagError as error:
            self._failed(str(error))
        except KeyboardInterrupt:
            self._view.warn("Stopped.")
        except (BrokenPipeError, Leave):
            raise
        except Exception as error:
            if isinstance(error, OSError) and error.errno == errno.ENOSPC:
                raise
            self._mistaken(error)

    def _mistaken(self, error: Exception) -> None:
        from rag.crash import record

        told = record(error, keep=self._keep)
        self._failed(f"Internal error: {type(error).__name__}: {error}. {told}")

    def _failed(self, message: str) -> None:
        self.tally.failed += 1
        self._view.error(message)

    def _ask(self, question: str, retry: bool) -> None:
        if self._view.piped:
            self._view.question(question)
        label = READING if self._talk.engine.model_ready else LOADING
        with self._view.answering(label) as listener:
            exchange = self._talk.ask(question, listener, retry=retry)
        self._view.answer_end(exchange)
        if exchange.error:
            self.tally.failed += 1
        elif exchange.answer is not None and exchange.answer.answered:
            self.tally.answered += 1
        else:
            self.tally.unanswered += 1

    def _prompt(self) -> str:
        return f"({self._talk.condition}) > " if self._talk.condition else "> "
