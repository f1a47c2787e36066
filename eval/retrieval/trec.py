"""TREC's two kinds of file, runs and judgements (qrels), read and written as other tools do.

A run line is `QUERY Q0 PAPER RANK SCORE TAG`, a qrels line `QUERY 0 PAPER GRADE`, both parted by
blanks (https://trec.nist.gov/data/qrels_eng/). Judgements may also stand in a TSV of three columns
with a header, as BEIR has them: `query-id  corpus-id  score`.

Tools sort a run by its scores, not by its ranks: trec_eval in single precision, equal scores by
paper ID from z to a; ranx and ir_measures have ways of their own with equal ones. What is written
here therefore falls from line to line even in single precision, and every tool reads our order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from eval.lines import parse_lines, read_lines, refuse, write_text
from rag.errors import RagError

# query ID -> paper ID -> grade; 1 and more is relevant.
Qrels = Mapping[str, Mapping[str, int]]
# query ID -> (paper ID, score), best first.
Run = Mapping[str, Sequence[tuple[str, float]]]

# Beyond, trec_eval and what is made of it ask for memory by the gigabyte.
MOST = 1_000

# As C's isspace, so that a line has the same columns for every tool.
_BLANKS = re.compile(r"[ \t\f\v\r]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_LARGEST = float(np.finfo(np.float32).max)


def read_qrels(path: Path) -> dict[str, dict[str, int]]:
    """Judgements of either form.

    Raises:
        ReadError: the file cannot be read or holds none, or a line is malformed; it is named.
    """
    lines = read_lines(path)
    tabbed = bool(lines) and lines[0][1].count("\t") == 2
    if tabbed and _is_title(lines[0][1].split("\t")[2]):
        lines = lines[1:]
    columns = _three_columns if tabbed else _four_columns
    judgements, bad = parse_lines(lines, columns)
    refuse(path, bad or ([] if judgements else [(1, "there is no judgement in it")]))
    qrels: dict[str, dict[str, int]] = {}
    for (number, _), (query, paper, grade) in zip(lines, judgements, strict=True):
        known = qrels.setdefault(query, {}).setdefault(paper, grade)
        if known != grade:
            bad.append((number, f"paper {paper!r} has grade {known} for {query!r} before"))
    refuse(path, bad)
    return qrels


def read_run(path: Path) -> dict[str, list[tuple[str, float]]]:
    """A run in the order in which trec_eval reads it; ranks are ignored, as it ignores them.

    Raises:
        ReadError: the file cannot be read or holds nothing, or a line is malformed; it is named.
    """
    lines = read_lines(path)
    rows, bad = parse_lines(lines, _six_columns)
    refuse(path, bad or ([] if rows else [(1, "there is no result in it")]))
    run: dict[str, dict[str, float]] = {}
    for (number, _), (query, paper, score) in zip(lines, rows, strict=True):
        if run.setdefault(query, {}).setdefault(paper, score) != score:
            bad.append((number, f"paper {paper!r} has another score for {query!r} before"))
    refuse(path, bad)
    return {query: _in_order(scores) for query, scores in run.items()}


def write_qrels(path: Path, qrels: Qrels) -> None:
    """Write judgements in the form of four columns.

    Raises:
        RagError: an ID holds a blank, or the file cannot be written.
    """
    require_columns(path, [*qrels, *(paper for grades in qrels.values() for paper in grades)])
    lines = (
        f"{query} 0 {paper} {grade}\n"
        for query, grades in qrels.items()
        for paper, grade in grades.items()
    )
    write_text(path, "".join(lines))


def write_run(path: Path, run: Run, tag: str) -> None:
    """Write a run, its scores made to fall (see above); `tag` names the system.

    Raises:
        RagError: an ID or the tag holds a blank, or the file cannot be written.
    """
    require_columns(path, [tag, *run, *(paper for ranked in run.values() for paper, _ in ranked)])
    lines = []
    for query, ranked in run.items():
        scores = falling([score for _, score in ranked])
        for rank, ((paper, _), score) in enumerate(zip(ranked, scores, strict=True), start=1):
            # str, since format() would write single precision with the digits of double.
            lines.append(f"{query} Q0 {paper} {rank} {score!s} {tag}\n")
    write_text(path, "".join(lines))


def require_columns(path: Path, names: Iterable[str]) -> None:
    """Make sure that every name can be a column of `path`.

    Raises:
        RagError: one is empty or holds a blank; the message shows it.
    """
    for name in names:
        if not name or any(c.isspace() for c in name):
            raise RagError(
                f"{path} was not written: {name!r} is empty or holds a blank, and columns of TREC "
                "files are parted by blanks. Give it an ID without."
            )


def falling(scores: Sequence[float]) -> list[np.float32]:
    """`scores`, best first, in single precision; each that does not fall is lowered until it does.

    >>> [str(score) for score in falling([0.5, 0.5, 0.25])]
    ['0.5', '0.49999997', '0.25']
    """
    lowered: list[np.float32] = []
    last = np.float32(np.inf)
    for score in scores:
        last = min(np.float32(score), np.nextafter(last, np.float32(-np.inf)))
        lowered.append(last)
    return lowered


def _in_order(scores: Mapping[str, float]) -> list[tuple[str, float]]:
    by_id = sorted(scores.items(), reverse=True)
    return sorted(by_id, key=lambda item: np.float32(item[1]), reverse=True)


def _three_columns(line: str) -> tuple[str, str, int]:
    cells = [cell.strip() for cell in line.split("\t")]
    if len(cells) != 3 or not all(cells):
        raise ValueError(f"it has {len(cells)} columns, not query ID, paper ID and grade")
    return cells[0], cells[1], _grade(cells[2])


def _four_columns(line: str) -> tuple[str, str, int]:
    cells = _BLANKS.split(line.strip(" \t\f\v\r"))
    if len(cells) != 4:
        raise ValueError(
            f"it has {len(cells)} columns, not `QUERY 0 PAPER GRADE`, nor three parted by tabs"
        )
    return cells[0], cells[2], _grade(cells[3])


def _six_columns(line: str) -> tuple[str, str, float]:
    cells = _BLANKS.split(line.strip(" \t\f\v\r"))
    if len(cells) != 6:
        raise ValueError(f"it has {len(cells)} columns, not `QUERY Q0 PAPER RANK SCORE TAG`")
    if not _is_number(cells[4]) or not abs(float(cells[4])) <= _LARGEST:
        raise ValueError(f"the score {cells[4]!r} is not a number in single precision")
    return cells[0], cells[2], float(cells[4])


def _grade(cell: str) -> int:
    """A whole number, also written as "1.0"."""
    if not _is_number(cell) or not float(cell).is_integer() or abs(float(cell)) > MOST:
        raise ValueError(f"the grade {cell!r} is not a whole number up to {MOST}")
    return int(float(cell))


def _is_title(cell: str) -> bool:
    """Whether a header's cell: a word, not a number that is written badly ("1_0", "nan", "½")."""
    bare = cell.strip().lstrip("+-.")
    try:
        float(bare)
    except ValueError:
        return bool(bare) and not bare[0].isnumeric()
    return False


def _is_number(cell: str) -> bool:
    """Whether every tool reads it as the same number; Python's float takes 1_0 and more."""
    return _NUMBER.fullmatch(cell) is not None
