"""The line that is typed: history, completion, several lines. The only prompt_toolkit import."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from rag.errors import RagError, UsageError

if TYPE_CHECKING:
    from prompt_toolkit.completion import Completer
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding import KeyBindings

# Longest line taken from a pipe, in bytes: beyond any question that can be asked.
LONGEST = 1_000_000

# What stands before a second line of a question.
CONTINUED = "... "

HINT = "(Ctrl-D or /exit leaves.)"


class Lines(Protocol):
    """Where questions come from."""

    def read(self, prompt: str) -> str | None:
        """The next line or lines; None at the end; empty where there is nothing to do.

        Raises:
            UsageError: the line cannot be taken; there may be others.
        """


class PipedLines:
    """A question a line from standard input."""

    def read(self, prompt: str) -> str | None:  # noqa: ARG002 - nobody is prompted
        """The next line, without its end."""
        if sys.stdin is None:
            return None
        stream = sys.stdin.buffer
        data = stream.readline(LONGEST + 1)
        if len(data) > LONGEST and not data.endswith(b"\n"):
            while (rest := stream.readline(LONGEST)) and not rest.endswith(b"\n"):
                pass
            raise UsageError(f"A line has more than {LONGEST} bytes. Put a question on each line.")
        return data.decode("utf-8", "replace").rstrip("\r\n") if data else None


class TypedLines:
    """Lines typed in a terminal: Enter sends, Alt-Enter or a backslash at the end goes on.

    `commands` and `ids` are what Tab completes; without a `history` file none is kept.
    """

    def __init__(
        self,
        commands: Sequence[str],
        ids: Callable[[], Iterable[str]],
        history: Path | None,
        hint: Callable[[str], None],
    ) -> None:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.output import create_output

        # The prompt belongs to the person, not to a file that standard output may go to.
        stream = sys.stdout if sys.stdout.isatty() else sys.stderr
        self._hint = hint
        self._session: Any = PromptSession(
            history=_history(history),
            completer=_completer(commands, ids),
            complete_while_typing=False,
            enable_history_search=False,
            multiline=True,
            prompt_continuation=_continued,
            enable_suspend=True,
            key_bindings=_bindings(),
            output=create_output(stdout=stream),
        )

    def read(self, prompt: str) -> str | None:
        """What is typed, up to Enter."""
        try:
            return str(self._session.prompt(prompt))
        except KeyboardInterrupt:
            self._hint(HINT)
            return ""
        except EOFError:
            return None


def _continued(_width: int, _line: int, wrapped: int) -> str:
    """What stands before a row: nothing where it only goes on with a line that was too long."""
    return "" if wrapped else CONTINUED


def _bindings() -> KeyBindings:
    from prompt_toolkit.filters import is_searching
    from prompt_toolkit.key_binding import KeyBindings
    from prompt_toolkit.keys import Keys

    bindings = KeyBindings()

    @bindings.add("enter", filter=~is_searching)
    def send(event: Any) -> None:
        buffer = event.current_buffer
        if buffer.document.current_line.endswith("\\") and buffer.document.is_cursor_at_the_end:
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    @bindings.add("escape", "enter")
    def go_on(event: Any) -> None:
        event.current_buffer.insert_text("\n")

    @bindings.add(Keys.Vt100MouseEvent)
    def pass_over(_: Any) -> None:
        """No mouse is asked for: what looks like its report is a colour code, typed or pasted."""

    return bindings


def _history(path: Path | None) -> History:
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    if path is None:
        return InMemoryHistory()

    class Kept(FileHistory):
        """Never a reason to stop: what cannot be kept is not."""

        def store_string(self, string: str) -> None:
            try:
                # Bytes that are no UTF-8 arrive as half surrogate pairs.
                super().store_string(string.encode("utf-8", "replace").decode("utf-8"))
            except OSError:
                return

        def load_history_strings(self) -> Iterable[str]:
            try:
                return list(super().load_history_strings())
            except OSError:
                return []

    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return Kept(str(path))


def _completer(commands: Sequence[str], ids: Callable[[], Iterable[str]]) -> Completer:
    from prompt_toolkit.completion import Completer, Completion, PathCompleter
    from prompt_toolkit.document import Document

    paths = PathCompleter(expanduser=True)

    class Words(Completer):
        """Commands at the beginning of a line, files after /save, elsewhere paper IDs."""

        def get_completions(self, document: Document, event: Any) -> Iterable[Completion]:
            before = document.text_before_cursor
            if before.startswith("/save "):
                yield from paths.get_completions(Document(before.removeprefix("/save ")), event)
                return
            word = before.split()[-1] if before and not before[-1].isspace() else ""
            if before.startswith("/") and " " not in before:
                known: Iterable[str] = commands
            elif before.startswith("/filter"):
                known = ("year=", "venue=", "source=", "keyword=", "clear")
            else:
                word, known = word.lstrip("["), _known(ids)
                if not word and not before.startswith("/show"):
                    return
            for name in known:
                if name.casefold().startswith(word.casefold()):
                    yield Completion(name, start_position=-len(word))

    return Words()


def _known(ids: Callable[[], Iterable[str]]) -> Iterable[str]:
    try:
        return ids()
    except RagError:  # the index cannot be read just now: nothing to complete
        return ()
