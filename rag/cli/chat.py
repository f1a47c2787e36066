"""Commands of a conversation: chat, and the sessions that it leaves."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rag.cli.options import (
    NOT_ANSWERED,
    JsonOption,
    StoreOption,
    as_utf8,
    print_json,
    settings_for,
)
from rag.errors import UsageError

if TYPE_CHECKING:
    from rag.chat.engine import Engine
    from rag.chat.line import Lines
    from rag.chat.loop import Tally
    from rag.chat.sessions import Session
    from rag.chat.stop import Stopper
    from rag.chat.talk import Conversation
    from rag.chat.view import View
    from rag.config import ServerAddress

sessions_app = typer.Typer(
    help="Conversations that were kept: list, export, delete.", rich_markup_mode=None
)


def chat(
    resume: Annotated[
        bool, typer.Option("--continue", "-c", help="Go on with the latest conversation.")
    ] = False,
    session: Annotated[
        str | None,
        typer.Option("--session", metavar="NAME", help="Keep it, or go on with it, under a name."),
    ] = None,
    no_save: Annotated[
        bool, typer.Option("--no-save", help="Leave no trace: no session, no history of lines.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="In a pipe: a line of JSON for each question.")
    ] = False,
    store: StoreOption = None,
) -> None:
    """Talk about the papers. In a pipe: a question a line.

    Exits with 0; in a pipe with 1 where a line failed, 3 where no question was answered.
    """
    from rag.chat.engine import Engine
    from rag.chat.stop import Stopper
    from rag.chat.talk import Conversation
    from rag.chat.view import DataView, View
    from rag.crash import unkept
    from rag.progress import bytes_bar

    if sum((resume, session is not None, no_save)) > 1:
        raise UsageError("Of --continue, --session and --no-save only one can be given.")
    settings = settings_for(store)
    piped = sys.stdin is None or not sys.stdin.isatty()
    if json and not piped:
        raise UsageError("--json is for questions from a pipe: rag chat --json < QUESTIONS.txt")
    view = DataView() if json else View(piped=piped)
    papers = _count(settings.store)
    stopper = Stopper()
    with ExitStack() as held:
        if no_save:
            held.enter_context(unkept())
        kept = held.enter_context(_opened_session(settings.store, session, resume, no_save, view))
        with bytes_bar("Preparing the language model") as progress:
            engine = Engine(settings, progress)
            engine.begin()
            talk = Conversation(engine, kept, stopper, view.warn)
            tally = _talk(talk, view, papers, stopper, keep=not no_save)
    _leave(engine, _code(tally) if view.piped else 0)


@sessions_app.callback(invoke_without_command=True)
def sessions(context: typer.Context, json: JsonOption = False) -> None:
    """List the conversations that were kept, the latest first."""
    if context.invoked_subcommand is not None:
        return
    from rag.chat.sessions import listed
    from rag.render import Screen

    found = listed()
    if json:
        fields = ("name", "started", "last", "questions", "first_question", "store")
        print_json([{name: getattr(entry, name) for name in fields} for entry in found])
        return
    screen = Screen()
    for entry in found:
        question = " ".join(entry.first_question.split())
        shown = question if len(question) <= 60 else f"{question[:59]}…"
        asked = "question " if entry.questions == 1 else "questions"
        screen.line(f"{entry.name}  {entry.last[:16]:<16}  {entry.questions:>3} {asked}  {shown}")
    if not found:
        Screen(stderr=True).line("No conversation was kept yet.", "dim")


@sessions_app.command("export")
def export_session(
    name: Annotated[str, typer.Argument(metavar="NAME", help="As `rag sessions` lists it.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="A file to write.")
    ] = None,
) -> None:
    """Print a conversation as Markdown with a bibliography."""
    from rag.chat import export
    from rag.chat.exchanges import replay
    from rag.chat.sessions import read_session
    from rag.render import Screen

    name = as_utf8(name)
    records, broken = read_session(name)
    past = replay(records)
    if skipped := broken + past.skipped:
        Screen(stderr=True).line(_passed_over(skipped, name), "yellow")
    text = export.markdown(name, past.exchanges)
    if output is None:
        typer.echo(text, nl=False)
    else:
        export.save(output, text, "rag sessions export NAME --output FILE")


@sessions_app.command("delete")
def delete(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Which ones.")],
) -> None:
    """Delete conversations for good."""
    from rag.chat.sessions import delete_sessions

    delete_sessions([as_utf8(name) for name in names])


def _count(store: Path | ServerAddress) -> int:
    """How many papers there are to talk about; no store is found out before anything is asked."""
    from rag.store import open_store

    with open_store(store, None) as opened:
        return opened.count()[0]


@contextmanager
def _opened_session(
    store: Path | ServerAddress, name: str | None, resume: bool, no_save: bool, view: View
) -> Iterator[Session]:
    """The session of the options; where a new one cannot be kept, the chat goes on without."""
    from rag.chat.journal import SessionError
    from rag.chat.sessions import Session, open_session

    if no_save:
        yield Session("")
        return
    try:
        kept = open_session(store, None if name is None else as_utf8(name), latest=resume)
    except SessionError as error:
        if name is not None or resume:
            raise
        view.warn(f"This conversation is not kept. {error}")
        kept = Session("")
    with kept:
        yield kept


def _talk(talk: Conversation, view: View, papers: int, stopper: Stopper, *, keep: bool) -> Tally:
    from rag.chat.loop import Loop
    from rag.interrupt import leaving_at_once

    if talk.session.repaired:
        view.warn(talk.session.repaired)
    if talk.skipped:
        view.warn(_passed_over(talk.skipped, talk.session.name))
    with ExitStack() as held:
        held.enter_context(leaving_at_once() if view.piped else stopper.installed())
        if not view.piped:
            _welcome(talk, view, papers)
        return Loop(talk, view, _lines(talk.engine, view, keep=keep), keep=keep).run()


def _welcome(talk: Conversation, view: View, papers: int) -> None:
    settings = talk.engine.settings
    view.note(f"{papers} papers in {settings.store}. /help lists the commands, Ctrl-D leaves.")
    before = next((str(r.get("store", "")) for r in talk.session.records), "")
    if before and before != str(settings.store.absolute()):
        view.warn(f"This conversation was begun about the papers in {before}.")
    for exchange in talk.exchanges:
        view.earlier(exchange)
    if talk.condition:
        view.note(f"Filter: {talk.condition}")


def _passed_over(lines: int, name: str) -> str:
    return f"Lines of the session {name!r} that cannot be read, and are passed over: {lines}."


def _lines(engine: Engine, view: View, *, keep: bool) -> Lines:
    from rag.chat.commands import COMMANDS
    from rag.chat.line import PipedLines, TypedLines
    from rag.state import state_directory

    if view.piped:
        return PipedLines()
    history = state_directory() / "history" if keep else None
    names = [command.name for command in COMMANDS]
    return TypedLines(names, engine.paper_ids, history, view.note)


def _code(tally: Tally) -> int:
    if tally.failed:
        return 1
    return NOT_ANSWERED if tally.unanswered and not tally.answered else 0


def _leave(engine: Engine, code: int) -> None:
    """End at once where llama.cpp is still at work: its stopping would be waited for."""
    if not engine.close():
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)
    if code:
        raise typer.Exit(code)
