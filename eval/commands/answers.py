"""`rag eval answers`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rag.cli.options import JsonOption, StoreOption, print_json, settings_for

if TYPE_CHECKING:
    from eval.questions.datasets import Question, QuestionSet
    from eval.runs.run import Ended
    from rag.render import Screen

# Failed items that are named on the screen; the run directory has them all.
NAMED = 10


def answers(  # noqa: PLR0917 - one parameter for each option
    questions: Annotated[
        Path,
        typer.Argument(
            metavar="QUESTIONS", help="The question set: JSON lines, or CSV.", readable=False
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out", metavar="DIR", help="The run directory: a new one, or one to go on with."
        ),
    ],
    store: StoreOption = None,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, max=64, help="Questions at a time [1; at an endpoint 4]."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Only the first N questions.")
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Ask again what failed before.")
    ] = False,
    max_tokens: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Stop when so many tokens are spent.")
    ] = None,
    max_cost: Annotated[
        float | None,
        typer.Option(metavar="X", min=0, help="Stop when so much is spent; needs prices."),
    ] = None,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Neither use nor keep earlier answers.")
    ] = False,
    judge: Annotated[
        bool,
        typer.Option("--judge", help="Also ask the model about each statement: its opinion."),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Answer a question set and measure the answers. The same command goes on after any stop.

    Exits with 1 when a question failed, was not reached or could not be read.
    """
    from eval.questions.datasets import read_questions
    from eval.runs.run import Options, Watch, run_answers
    from rag.interrupt import leaving_at_once
    from rag.progress import bytes_bar, items_bar
    from rag.render import Screen
    from rag.text import visible

    messages = Screen(stderr=True)
    settings = settings_for(store)
    asked = read_questions(questions)
    _name_problems(messages, questions, asked)
    if limit is not None:
        asked = asked.first(limit)
    options = Options(jobs, retry_failed, max_tokens, max_cost, not no_cache, judge)
    kept = f"Interrupted. The same command again finishes the run in {visible(str(out))}."
    with (
        bytes_bar("Preparing the language model") as file_progress,
        items_bar("Answering") as progress,
        leaving_at_once(kept, progress.stop),
    ):
        watch = Watch(progress, file_progress, _teller(messages, questions, asked))
        ended = run_answers(asked, out, settings, options, watch)
    _name_failures(messages, ended)
    if json:
        print_json(ended.to_json())
    else:
        _print(ended)
    if ended.outcome.failed or ended.outcome.skipped or asked.lost:
        raise typer.Exit(1)


def _name_problems(messages: Screen, path: Path, asked: QuestionSet) -> None:
    for problem in asked.problems:
        lost = " The line is left out." if problem.lost else ""
        messages.line(f"{path}, line {problem.line}: {problem.message}.{lost}", "yellow")


def _teller(messages: Screen, path: Path, asked: QuestionSet) -> Callable[[Question, str], None]:
    lines = dict(zip((q.id for q in asked.questions), asked.lines, strict=True))

    def tell(question: Question, problem: str) -> None:
        messages.line(f"{path}, line {lines[question.id]}: {problem}.", "yellow")

    return tell


def _name_failures(messages: Screen, ended: Ended) -> None:
    outcome = ended.outcome
    for note in ended.notes:
        messages.line(f"Note: {note}", "yellow")
    failed = ((item.question.id, item.result) for item in ended.run.items if item.failed)
    for name, result in islice(failed, NAMED):
        messages.line(f"Failed {name}: {result and result['error']}", "yellow")
    if outcome.failed > NAMED:
        messages.line(f"and {outcome.failed - NAMED} more.", "yellow")
    if outcome.stopped is not None:
        messages.line(f"Stopped: {outcome.stopped}", "red")


def _print(ended: Ended) -> None:
    from eval.cells import cell
    from eval.metrics.summary import table
    from rag.render import Screen

    screen, outcome = Screen(), ended.outcome
    for line in table(ended.summary):
        screen.line(line)
    if ended.judged is not None:
        judges, support = ", ".join(ended.judged.models), ended.judged.support
        screen.line()
        screen.line(
            f"Statements supported, judged by {judges} (an opinion): {cell(support)}, "
            f"of {support.n} answers"
        )
    screen.line()
    screen.line(
        f"{outcome.done} done, {outcome.failed} failed, {outcome.skipped} skipped: "
        f"{ended.run.directory}"
    )
