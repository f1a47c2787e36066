"""`rag eval questions`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag.cli.options import JsonOption, StoreOption, print_json, settings_for

if TYPE_CHECKING:
    from eval.drafting.draft import Drafter, Tally
    from rag.config import Settings


class Kind(StrEnum):
    """Kinds of questions that can be drafted."""

    FACT = "fact"
    COMPARE = "compare"
    LIST = "list"
    UNANSWERABLE = "unanswerable"


def questions(  # noqa: PLR0917 - one parameter for each option
    kind: Annotated[
        list[Kind] | None, typer.Option("--kind", help="A kind to draft; repeat it for several.")
    ] = None,
    n: Annotated[int, typer.Option("--n", "-n", min=1, max=10_000, help="How many.")] = 20,
    seed: Annotated[int, typer.Option("--seed", help="Another seed, other questions.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Add the lines to FILE, after what is there.",
            readable=False,
        ),
    ] = None,
    no_model: Annotated[
        bool, typer.Option("--no-model", help="Only what needs no language model: lists.")
    ] = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Draft question-set lines from the papers, for a person to edit.

    Facts with numbers, comparisons, lists and near-miss unanswerables, each traced to the sentences
    it was made from. Read every line before you use it: these are drafts. What is in FILE already
    stays as it is.
    """
    from eval.drafting.draft import Tally, draft, shares
    from eval.drafting.lines import known_ids
    from rag.progress import counter

    kinds = _kinds(kind, no_model)
    known = known_ids(out) if out else set[str]()
    tally = Tally()
    written: list[dict[str, Any]] = []
    with (
        _drafter(kinds, settings_for(store), seed) as drafter,
        _printer(out, json) as put,
        counter("Drafting", "questions") as advance,
    ):
        wanted = shares(kinds, n)
        for line in draft(drafter, wanted, seed, tally, known=known, advance=advance):
            written.append(line.to_json())
            put(written[-1])
    if json:
        print_json({"questions": written, "dropped": dict(tally.dropped), "known": tally.known})
    _report(tally, n, out)
    if not written and not tally.known:
        raise typer.Exit(1)


def _kinds(kind: list[Kind] | None, no_model: bool) -> list[str]:
    from eval.drafting.draft import KINDS, WITHOUT_MODEL
    from rag.errors import UsageError

    chosen = [str(k) for k in dict.fromkeys(kind)] if kind else list(KINDS)
    if not no_model:
        return chosen
    possible = [k for k in chosen if k in WITHOUT_MODEL]
    if not possible or (kind and len(possible) < len(chosen)):
        raise UsageError(
            "Only list questions are worded in code; the others need a language model. Leave out "
            "--no-model, or ask for --kind list."
        )
    return possible


@contextmanager
def _drafter(kinds: list[str], settings: Settings, seed: int) -> Iterator[Drafter]:
    """The store, and the language model where a kind needs one."""
    from random import Random

    from eval.drafting.corpus import Corpus
    from eval.drafting.draft import WITHOUT_MODEL, Drafter
    from eval.drafting.topics import Nearness
    from eval.drafting.writer import Writer
    from rag.llm import open_chat
    from rag.progress import bytes_bar
    from rag.session import open_search

    with ExitStack() as held:
        search = held.enter_context(open_search(settings))
        model = None
        if any(kind not in WITHOUT_MODEL for kind in kinds):
            progress = held.enter_context(bytes_bar("Preparing the language model"))
            model = held.enter_context(open_chat(settings, progress))
        corpus = Corpus(search.store.papers())
        embedder = search.passages.embedder
        nearness = Nearness(search.store, embedder, corpus.papers, Random(seed))
        yield Drafter(corpus, nearness, Writer(model, search.retriever, settings))


@contextmanager
def _printer(out: Path | None, json: bool) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Writes each line when it is there, so that Ctrl-C loses none."""
    import sys

    from eval.drafting.lines import json_line, open_to_append

    if out is not None:
        with open_to_append(out) as file:

            def add(value: dict[str, Any]) -> None:
                file.write(json_line(value) + "\n")
                file.flush()

            yield add
    elif json:
        yield lambda _: None
    else:
        encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "")
        yield lambda value: typer.echo(json_line(value, ascii_only=encoding != "utf8"))


def _report(tally: Tally, n: int, out: Path | None) -> None:
    from rag.render import Screen

    messages = Screen(stderr=True)
    kinds = ", ".join(f"{count} {kind}" for kind, count in tally.drafted.items() if count)
    place = f", added to {out}" if out else ""
    messages.line(f"{tally.drafted.total()} of {n} drafted ({kinds or 'none'}){place}.")
    if tally.known:
        messages.line(f"{tally.known} drafts were in {out} already and stay as they are.")
    for reason, count in tally.dropped.most_common():
        messages.line(f"Dropped {count}: {reason}.", "yellow")
    if tally.drafted.total() < n:
        messages.line("For more: another --seed, other kinds, or more papers.", "yellow")
    if tally.drafted.total():
        messages.line("They are drafts: read each one, edit or remove it, then rag eval lint.")
