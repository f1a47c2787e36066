"""What a chat shows: answers on standard output as they come, all else on standard error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rag.chat.exchanges import Exchange
from rag.chat.keyboard import unechoed
from rag.chat.talk import Listener
from rag.render import Screen, answer_json, to_json
from rag.retrieve import MAX_QUESTION
from rag.text import visible
from rag.types import Answer

# Redrawings of the unfinished statement a second.
REFRESH = 8


class View:
    """The two screens of a chat. `piped` questions get plain text, and are repeated before it."""

    def __init__(self, *, piped: bool = False) -> None:
        self.piped = piped
        self.line_number = 0  # of the pipe's line that is being worked on
        self.out = Screen(plain=piped)
        self.messages = Screen(stderr=True, plain=piped)

    @property
    def live(self) -> bool:
        """Whether a statement can be shown while it is written, and then replaced."""
        console = self.out.console
        return bool(console.is_terminal and not console.is_dumb_terminal and not self.piped)

    def note(self, text: str) -> None:
        """Something to know, dimly."""
        self.messages.line(text, "dim")

    def warn(self, text: str) -> None:
        """Something that went another way than it should."""
        self.messages.line(text, "yellow")

    def error(self, text: str) -> None:
        """Something that failed; the chat goes on. In a pipe, with the line that it was."""
        place = f"Line {self.line_number}: " if self.piped and self.line_number else ""
        self.messages.line(f"{place}{text}", "red")

    def question(self, text: str) -> None:
        """Repeat a question that nobody saw typed; of one that is too long, the beginning."""
        shown = text if len(text) <= MAX_QUESTION else f"{text[:80]} …"
        self.out.line(f"> {' '.join(shown.split())}")

    @contextmanager
    def answering(self, label: str) -> Iterator[Listener]:
        """Show an answer as it comes; `label` says what is being waited for first."""
        if not self.live:
            yield Listener(self.out.statement, self._understood, _nothing, _nothing)
            return
        from rich.live import Live

        shown = _Unfinished(label)
        console = self.out.console
        live = Live(shown, console=console, refresh_per_second=REFRESH, transient=True)
        with unechoed(), live:
            yield Listener(self.out.statement, self._understood_above, shown.write, shown.wait_for)

    def answer_end(self, exchange: Exchange) -> None:
        """What follows the statements: sources, notes, or why there is no answer."""
        answer = exchange.answer
        self._unfinished(exchange)
        if exchange.error:
            self.error(exchange.error)
        elif answer is not None and exchange.stopped:
            self.out.sources(answer) if answer.answered else None
        elif answer is not None:
            self.out.answer_end(answer)
        for note in answer.notes if answer else ():
            self.warn(f"Note: {note}")
        if exchange.stopped:
            self.warn("Stopped. What was checked so far is kept; /retry asks again.")
        self.out.line()

    def earlier(self, exchange: Exchange) -> None:
        """An exchange of a session that is taken up again, without its sources."""
        self.out.line(f"> {exchange.question}", "bold")
        for statement in exchange.answer.statements if exchange.answer else ():
            self.out.statement(statement)
        self._unfinished(exchange)
        if exchange.answer is not None and not exchange.answer.answered and not exchange.stopped:
            self.out.sources(exchange.answer)
        if exchange.error:
            self.error(exchange.error)
        if exchange.stopped:
            self.warn(exchange.halt)
        self.out.line()

    def _unfinished(self, exchange: Exchange) -> None:
        if exchange.unfinished:
            self.out.line(f"{exchange.unfinished} … (not finished, not checked)", "dim")

    def why(self, exchange: Exchange, answer: Answer) -> None:
        """How the papers of an answer were found, with scores and ranks."""
        self.out.line(f"Searched for: {answer.asked or answer.question}")
        if exchange.condition:
            self.out.line(f"Filter: {exchange.condition}")
        if not exchange.stopped:
            self.out.line(f"Confidence that the papers answer: {answer.confidence:.2f}")
        cited = {c.paper_id for s in answer.statements for c in s.citations}
        self.out.line("     score  by meaning  by words", "dim")
        for rank, hit in enumerate(answer.retrieved, start=1):
            dense, lexical = (str(r) if r else "-" for r in (hit.dense_rank, hit.lexical_rank))
            mark = "*" if hit.paper.id in cited else " "
            before = f"{rank:>3}{mark} {hit.score:.3f}  {dense:>10}  {lexical:>8}  "
            self.out.paper_line(hit.paper, before)
        if cited:
            self.out.line("* cited", "dim")

    def _understood(self, text: str) -> None:
        self.messages.line(f"Understood as: {text}", "dim")

    def _understood_above(self, text: str) -> None:
        # Through the console of the live part, which would overwrite what another prints.
        self.out.line(f"Understood as: {text}", "dim")


def _nothing(_: object) -> None:
    """What is shown in a terminal alone."""


class DataView(View):
    """For programs: a line of JSON for each question, or what failed; all else on standard error.

    Its letters are ASCII, whatever this terminal's encoding is.
    """

    def __init__(self) -> None:
        super().__init__(piped=True)
        self.out = self.messages
        self._asked = ""

    def question(self, text: str) -> None:
        """Remember the question."""
        self._asked = text

    @contextmanager
    def answering(self, label: str) -> Iterator[Listener]:  # noqa: ARG002 - nobody waits
        """Show nothing until the answer is whole."""
        try:
            yield Listener(_nothing, _nothing, _nothing, _nothing)
        except Exception as error:
            self._line({"question": self._asked, "error": str(error)})
            raise

    def answer_end(self, exchange: Exchange) -> None:
        """The answer as in `rag ask --json`."""
        if exchange.answer is None:
            self._line({"question": exchange.question, "error": exchange.error})
            self.error(exchange.error)
            return
        self._line(answer_json(exchange.answer))
        for note in exchange.answer.notes:
            self.warn(f"Note: {note}")

    def _line(self, value: object) -> None:
        spread = to_json(value, ascii_only=True).split("\n")
        print("".join(part.lstrip() for part in spread), flush=True)


class _Unfinished:
    """The statement in the making, dim since nothing of it is checked, or what is waited for."""

    def __init__(self, label: str) -> None:
        from rich.spinner import Spinner

        self._spinner = Spinner("line", style="dim")
        self._text = ""
        self.wait_for(label)

    def wait_for(self, label: str) -> None:
        """What is shown until anything is written."""
        from rich.text import Text

        self._spinner.update(text=Text(label, "dim"))

    def write(self, text: str) -> None:
        """Replace what is shown."""
        self._text = visible(text)

    def __rich__(self) -> Any:
        from rich.text import Text

        return Text(f"{self._text} …", "dim italic") if self._text else self._spinner
