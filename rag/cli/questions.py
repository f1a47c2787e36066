"""Commands that take a question: search and ask."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rag.cli.options import (
    NOT_ANSWERED,
    JsonOption,
    StoreOption,
    print_json,
    question_text,
    settings_for,
)


def search(
    query: Annotated[
        str | None, typer.Argument(help="What to look for; '-' or none: from a pipe.")
    ] = None,
    k: Annotated[int, typer.Option("--k", "-k", min=1, max=1000, help="How many papers.")] = 10,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Find the papers closest to a query, with the sentences that match."""
    from rag import render
    from rag.session import open_search

    text = question_text(query)
    with open_search(settings_for(store)) as opened:
        hits = opened.retriever.retrieve(text, k).hits
    if json:
        print_json(render.hits_json(hits))
    else:
        render.Screen().hits(hits)


def ask(
    question: Annotated[
        str | None, typer.Argument(help="The question; '-' or none: from a pipe.")
    ] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Answer a question from the papers. Exits with 3 when the papers do not answer it."""
    from rag import render
    from rag.interrupt import leaving_at_once
    from rag.progress import bytes_bar, spinner
    from rag.retrieve import checked
    from rag.session import open_answerer

    text = checked(question_text(question))
    settings = settings_for(store)
    screen, messages = render.Screen(), render.Screen(stderr=True)
    with (
        leaving_at_once(),
        bytes_bar("Preparing the language model") as progress,
        open_answerer(settings, progress) as answerer,
        spinner("Reading the papers") as stop,
    ):

        def show(statement: Any) -> None:
            stop()
            screen.statement(statement)

        answer = answerer.answer(text, on_statement=None if json else show)
    for note in answer.notes:
        messages.line(f"Note: {note}", "yellow")
    if json:
        print_json(render.answer_json(answer))
    else:
        screen.answer_end(answer)
    if not answer.answered:
        raise typer.Exit(NOT_ANSWERED)
