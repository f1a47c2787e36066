"""What can be typed besides questions: `/help`, `/sources`, `/filter year=2025` and the like."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rag import filters
from rag.asking import HISTORY_TOKENS
from rag.chat import export
from rag.chat.exchanges import Exchange
from rag.chat.talk import Conversation
from rag.chat.view import View
from rag.errors import EndpointError, UsageError
from rag.filters import Filter
from rag.followup import antecedents, recent
from rag.tokens import count
from rag.types import Answer

# Papers that /search shows.
FOUND = 10


class Leave(Exception):  # noqa: N818 - no error
    """The chat is to end."""


@dataclass(frozen=True, slots=True)
class Room:
    """What commands work on. `ask` asks a question, again where it takes a last one's place."""

    talk: Conversation
    view: View
    ask: Callable[[str, bool], None]


@dataclass(frozen=True, slots=True)
class Command:
    """A command, what stands behind it, what it does in one line, and how."""

    name: str
    argument: str
    help: str
    run: Callable[[Room, str], None]


def run(room: Room, line: str) -> None:
    """Do what a line that begins with "/" says.

    Raises:
        UsageError: there is no such command, or it lacks what it needs.
        Leave: the chat is to end.
        KeyboardInterrupt: Ctrl-C came while something was waited for.
        RagError: it failed.
    """
    name, _, argument = line.partition(" ")
    command = next((c for c in COMMANDS if c.name == name.casefold()), None)
    if command is None:
        known = [c.name for c in COMMANDS]
        close = difflib.get_close_matches(name[:40].casefold(), known, n=1, cutoff=0.6)
        meant = f" Is {close[0]} meant?" if close else ""
        raise UsageError(f"There is no command {name[:40]}.{meant} /help lists them all.")
    argument = argument.strip()
    if argument and not command.argument:
        raise UsageError(f"{command.name} takes nothing behind it: {argument[:40]!r} is too much.")
    command.run(room, argument)


def _help(room: Room, _: str) -> None:
    width = max(len(f"{c.name} {c.argument}") for c in COMMANDS) + 2
    for command in COMMANDS:
        left = f"{command.name} {command.argument}".ljust(width)
        room.view.out.line(f"{left}{command.help}")
    room.view.out.line()
    room.view.out.line(
        "Anything else is a question. Enter sends it; Alt-Enter, or a backslash at the end of the "
        "line, begins another line. Tab completes commands and paper IDs, Ctrl-R searches what "
        "was typed before, Ctrl-C stops an answer, Ctrl-D leaves."
    )


def _sources(room: Room, _: str) -> None:
    room.view.out.sources(_last(room)[1])


def _show(room: Room, argument: str) -> None:
    if not argument:
        raise UsageError("Which paper? /show ID, or its place in the last list: /show 2")
    shown = room.talk.numbered
    plain = argument.strip("[]")
    place = int(plain) if plain.isascii() and plain.isdigit() and len(plain) < 4 else 0
    with room.talk.stoppable():
        store = room.talk.engine.search().store
        if 1 <= place <= len(shown) and store.catalog.by_id(plain) is None:
            plain = shown[place - 1]
        paper = store.paper(plain)
    room.view.out.paper(paper)


def _search(room: Room, argument: str) -> None:
    if not argument:
        raise UsageError("Search for what? /search TEXT")
    with room.talk.stoppable():
        retriever = room.talk.engine.search().retriever
        hits = retriever.retrieve(argument, FOUND, among=room.talk.among()).hits
    room.talk.numbered = [hit.paper.id for hit in hits]
    room.view.out.hits(hits)
    if not hits:
        room.view.note("No paper was found.")


def _why(room: Room, _: str) -> None:
    room.view.why(*_last(room))


def _retry(room: Room, argument: str) -> None:
    last = room.talk.last
    if last is None:
        raise UsageError("There is nothing to ask again yet.")
    room.ask(argument or last.question, True)


def _filter(room: Room, argument: str) -> None:
    if not argument:
        on = room.talk.condition
        room.view.out.line(
            f"Filter: {on}. /filter clear takes it off." if on else f"No filter. {_EXAMPLE}"
        )
        return
    off = argument.casefold() in ("clear", "off", "none")
    condition = Filter() if off else filters.parse(argument)
    remain, total, undated = room.talk.narrow(condition)
    said = f"Filter: {condition}. " if condition else "No filter. "
    without = f" {undated} of {total} carry no year." if undated else ""
    room.view.out.line(f"{said}{remain} of {total} papers remain.{without}")


def _model(room: Room, argument: str) -> None:
    engine = room.talk.engine
    llm = engine.settings.llm
    if argument and llm.base_url is None:
        raise UsageError(
            "The model of this machine is chosen before the chat: RAG_LLM_MODEL_PATH=FILE.gguf, or "
            "RAG_LLM_BASE_URL for an endpoint, whose models can be changed here."
        )
    if argument:
        engine.choose_model(argument)
    with room.talk.stoppable():
        name = engine.model().name
    place = llm.base_url or "this machine"
    room.view.out.line(f"{name} at {place}, {llm.context_tokens} tokens of context")
    try:
        with room.talk.stoppable():
            offered = list(getattr(engine.model(), "models", list)()) if llm.base_url else []
    except EndpointError as error:
        room.view.warn(str(error))
        return
    if offered and name not in offered:
        room.view.warn(f"The endpoint does not list {name}. It lists: {', '.join(offered)}.")


def _tokens(room: Room, _: str) -> None:
    spent, turns = room.talk.usage(), antecedents(room.talk.turns())
    kept = recent(turns, HISTORY_TOKENS)
    held = sum(count(turn.understood) + count(turn.answer) for turn in kept)
    last = room.talk.last
    if last is not None and last.answer is not None:
        used = last.spent
        room.view.out.line(
            f"Last answer: {used.prompt_tokens} tokens read, {used.completion_tokens} written."
        )
    room.view.out.line(
        f"This conversation: {spent.prompt_tokens} read, {spent.completion_tokens} written."
    )
    room.view.out.line(
        f"A follow-up is read with the last {len(kept)} of {len(turns)} turns: {held} of "
        f"{HISTORY_TOKENS} tokens."
    )


def _save(room: Room, argument: str) -> None:
    if not argument:
        raise UsageError("Save it where? /save FILE.md")
    if not room.talk.exchanges:
        raise UsageError("There is nothing to save yet.")
    path = Path(_file_name(argument))
    export.save(path, export.markdown(room.talk.session.name, room.talk.exchanges), "/save FILE")
    room.view.out.line(f"Saved as {path}.")


def _file_name(argument: str) -> str:
    """The name, without the quotes that it stands in; blanks need none."""
    if argument[0] not in "\"'":
        return argument
    try:
        names = shlex.split(argument)
    except ValueError as error:
        raise UsageError(f"A quote is open in {argument[:80]!r}. Close it.") from error
    if len(names) != 1 or not names[0]:
        raise UsageError(f"{argument[:80]!r} is not one name of a file. Put it whole in quotes.")
    return names[0]


def _clear(room: Room, _: str) -> None:
    room.talk.clear()
    if room.view.live:
        room.view.out.console.clear()
    room.view.note("The conversation so far is forgotten; the next question stands alone.")


def _exit(_room: Room, _: str) -> None:
    raise Leave


def _last(room: Room) -> tuple[Exchange, Answer]:
    """The latest exchange that came to an answer."""
    for exchange in reversed(room.talk.exchanges):
        if exchange.answer is not None:
            return exchange, exchange.answer
    raise UsageError("There is no answer yet. Ask a question first.")


_EXAMPLE = f"/filter {filters.EXAMPLE} narrows the papers."

COMMANDS = (
    Command("/help", "", "what can be typed", _help),
    Command("/sources", "", "what the last answer cites, with the quoted evidence", _sources),
    Command("/show", "ID", "one paper whole; a number: of the last list", _show),
    Command("/search", "TEXT", "the closest papers, without an answer", _search),
    Command("/why", "", "what was retrieved for the last answer, with scores", _why),
    Command("/retry", "[QUESTION]", "ask the last question again, or in other words", _retry),
    Command("/filter", "[CONDITIONS]", "year=, venue=, source=, keyword=; clear", _filter),
    Command("/model", "[NAME]", "the model that answers; another of the same endpoint", _model),
    Command("/tokens", "", "what was read and written, and how much of it is remembered", _tokens),
    Command("/save", "FILE", "the conversation as Markdown with a bibliography", _save),
    Command("/clear", "", "forget the conversation so far", _clear),
    Command("/exit", "", "leave; so does Ctrl-D", _exit),
)
