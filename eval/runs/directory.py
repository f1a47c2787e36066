"""A run directory on disk: begun, continued and read; its files are listed in `eval.items`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eval.items import Item
from eval.questions.datasets import Question, question_json
from eval.questions.gold import Gold
from eval.runs.differences import differences, told
from eval.runs.lines import RunItems
from rag.errors import RagError, ReadError, UsageError
from rag.files import replace_text

FORMAT = 1
META, QUESTIONS, RESULTS, METRICS = "run.json", "questions.jsonl", "results.jsonl", "metrics.json"


@dataclass(frozen=True, slots=True)
class Run:
    """A run: `meta` is run.json; `items`, in the order of questions, are read when asked for."""

    directory: Path
    meta: Mapping[str, Any]
    items: Sequence[Item]


def read_run(directory: Path, *, unfinished: bool = False) -> Run:
    """Read a run; questions that a budget left out are items without a result.

    With `unfinished` also one that was killed, by Ctrl-C too, or is at work just now, as far as it
    has come.

    Raises:
        UsageError: there is no such directory, or it is no run of this format.
        ReadError: the run is damaged or not finished; the message says how to mend that.
    """
    meta = read_meta(directory)
    if meta is None:
        raise UsageError(_no_run(directory))
    items = RunItems(directory / QUESTIONS, directory / RESULTS, torn=unfinished)
    if not unfinished and meta.get("finished") is None:
        raise ReadError(
            f"The run in {directory} is not finished: {items.reached} of {len(items)} questions "
            "have a result. Run its `rag eval answers` command once more: it does what is left."
        )
    return Run(directory, meta, items)


def read_meta(directory: Path) -> dict[str, Any] | None:
    """The run.json of a directory; None where there is none.

    Raises:
        UsageError: the run has another format.
        ReadError: run.json cannot be read, or does not say what the run was made with.
    """
    try:
        meta = read_json(directory / META)
    except (FileNotFoundError, NotADirectoryError):
        return None
    version = meta.get("format") if isinstance(meta, dict) else None
    if version != FORMAT:
        raise UsageError(
            f"The run in {directory} has format {version!r}; this version reads {FORMAT}. Use the "
            "version of the program that made it, or choose another directory."
        )
    if not isinstance(meta.setdefault("identity", {}), dict):
        raise ReadError(
            f'"identity" in {directory / META} is damaged. Restore the file, or make the run anew '
            "elsewhere."
        )
    return dict(meta)


def read_json(path: Path) -> Any:
    """What `write_json` wrote.

    Raises:
        FileNotFoundError, NotADirectoryError: there is no such file.
        ReadError: it cannot be read.
    """
    try:
        return json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise ReadError(
            f"{path} cannot be read: {error}. Restore it, or make the run anew elsewhere."
        ) from error


def _no_run(directory: Path) -> str:
    return (
        f"There is no run in {directory}. Make one with "
        f"`rag eval answers QUESTIONS.jsonl --out {directory}`, or correct the path."
    )


def prepare(directory: Path) -> None:
    """Make the directory where it is missing; see that it holds a run, or nothing.

    Raises:
        UsageError: it is a file, or holds something else.
        RagError: it cannot be made or read.
    """
    with writing(directory):
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise UsageError(
                f"{directory} is no directory. Choose another with --out DIR."
            ) from error
        if not (directory / META).exists() and not all(map(_is_left_over, directory.iterdir())):
            raise UsageError(
                f"{directory} holds something other than a run. Choose a new or an empty directory "
                "with --out DIR."
            )


def _is_left_over(path: Path) -> bool:
    """Whether a run that was killed before its first line may have left this file."""
    empty = path.name == RESULTS and path.stat().st_size == 0
    return empty or path.name.startswith(".")


def refuse_other(meta: Mapping[str, Any], identity: Mapping[str, Any], directory: Path) -> None:
    """Make sure that the run of `meta` asks the same of the same.

    Raises:
        UsageError: it does not; the message names what differs.
    """
    changed = told(differences(meta["identity"], identity), "{} then, {} now")
    if changed:
        raise UsageError(
            f"The run in {directory} was begun with something else: {'; '.join(changed)}. Go back "
            "to that to finish it, or choose another directory for a new run."
        )


def write_questions(directory: Path, asked: Sequence[tuple[Question, Gold]]) -> None:
    """Write the questions with their gold as paper IDs."""
    lines = (
        json.dumps(
            {
                **question_json(replace(question, gold=())),
                "gold": [sorted(group) for group in gold.groups],
            },
            ensure_ascii=False,
        )
        for question, gold in asked
    )
    write_whole(directory / QUESTIONS, (f"{line}\n" for line in lines))


def write_json(path: Path, value: Any) -> None:
    """Write a value for people to read, all or nothing."""
    write_whole(path, [json.dumps(value, ensure_ascii=False, indent=2), "\n"])


def write_whole(path: Path, parts: Iterable[str]) -> None:
    """Write a file so that a reader, or a kill, meets the old one or the new one.

    Raises:
        RagError: the disk is full, or the directory cannot be written; the old file is left.
    """
    with writing(path.parent):
        replace_text(path, parts)


@contextmanager
def writing(directory: Path) -> Iterator[None]:
    """Turn what a disk refuses into advice."""
    try:
        yield
    except OSError as error:
        raise RagError(
            f"{directory} cannot be written: {error.strerror or error}. {_remedy(directory)}"
        ) from error


def _remedy(directory: Path) -> str:
    if not directory.is_dir():
        return "Make the directory, or choose another."
    return (
        "What stands there is whole. Make room or check its permissions, then run the same command "
        "again."
    )
