"""How well the verifier's verdicts agree with the labels of claims, by source and overall.

A claim is flagged where the verifier calls it unsupported.

balanced accuracy  mean of two shares: of supported claims not flagged, of others flagged
AUROC              probability that a supported claim scores above another one, ties counting half
                   (Hanley and McNeil 1982, https://doi.org/10.1148/radiology.143.1.7063747)
precision, recall  of flagging: others among the flagged, flagged among the others

Intervals are those of `eval.statistics`: BCa bootstrap for the first two, of a share for the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eval.attribution.claims import Judged, Label
from eval.cells import cell, shortened
from eval.statistics.estimates import Estimate, bootstrap, estimate
from rag.verify import SUPPORTED

ALL = "all"
FITTED = (
    "The bundled weights were fitted on attributionbench-dev and scifact-train themselves: expect "
    "less on other claims. python -m eval.attribution.fit prints cross-validated figures."
)

# Longest name of a source, in characters, in a line of 80 columns with two counts.
_LONGEST_SOURCE = 40

# Shape (claims, 2).
Rows = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Agreement:
    """Verdicts against labels; an estimate without a value where no claim tells it.

    `flagged` has the share that is flagged of the claims with each label; `precision` and
    `recall` are those of flagging.
    """

    source: str
    claims: int
    supported: int
    balanced_accuracy: Estimate
    auroc: Estimate
    precision: Estimate
    recall: Estimate
    flagged: Mapping[Label, Estimate]


def agreements(judged: Sequence[Judged]) -> list[Agreement]:
    """One for each source, by name, then one for all claims where there are several sources."""
    sources = sorted({item.claim.source for item in judged})
    parts = [(s, [item for item in judged if item.claim.source == s]) for s in sources]
    return [agreement(*part) for part in (parts if len(parts) == 1 else [*parts, (ALL, judged)])]


def agreement(source: str, judged: Sequence[Judged]) -> Agreement:
    """How well the verdicts on these claims agree with their labels."""
    rows = np.array([(j.score, j.claim.supported) for j in judged], dtype=np.float64)
    labels = sorted({j.claim.label for j in judged})
    return Agreement(
        source=source,
        claims=len(judged),
        supported=sum(j.claim.supported for j in judged),
        balanced_accuracy=bootstrap(rows, balanced_accuracy),
        auroc=bootstrap(rows, auroc),
        precision=_share(not j.claim.supported for j in judged if not j.supported),
        recall=_share(not j.supported for j in judged if not j.claim.supported),
        flagged={
            label: _share(not j.supported for j in judged if j.claim.label == label)
            for label in labels
        },
    )


def balanced_accuracy(rows: Rows) -> float | None:
    """Of rows (score, whether supported); None where all are supported, or none is."""
    supported, others = _by_label(rows)
    if not len(supported) or not len(others):
        return None
    return float(((supported >= SUPPORTED).mean() + (others < SUPPORTED).mean()) / 2)


def auroc(rows: Rows) -> float | None:
    """Of rows (score, whether supported); None where all are supported, or none is.

    >>> auroc(np.array([(0.9, 1), (0.5, 1), (0.5, 0), (0.1, 0)]))
    0.875
    """
    supported, others = _by_label(rows)
    if not len(supported) or not len(others):
        return None
    ordered = np.sort(others)
    below = np.searchsorted(ordered, supported, "left")
    not_above = np.searchsorted(ordered, supported, "right")
    return float((below + not_above).sum() / 2 / (len(supported) * len(others)))


def to_json(found: Sequence[Agreement]) -> list[dict[str, Any]]:
    """The figures of `rag eval attribution --json`."""
    return [
        {
            "source": a.source,
            "claims": a.claims,
            "supported": a.supported,
            **{name: value.to_json() for name, value in _figures(a).items()},
            "flagged": {label: value.to_json() for label, value in a.flagged.items()},
        }
        for a in found
    ]


def lines(found: Sequence[Agreement]) -> Iterator[str]:
    """The figures for a person, a line each."""
    for a in found:
        plural = "s" * (a.claims > 1)
        source = shortened(a.source, _LONGEST_SOURCE)
        yield f"{source}: {a.claims:,} claim{plural}, {a.supported:,} of them supported"
        for name, value in _figures(a).items():
            of = " of 'unsupported'" * (name in ("precision", "recall"))
            yield f"  {name.replace('_', ' ') + of:<28} {cell(value)}".replace("auroc", "AUROC")
        for label, value in a.flagged.items():
            if label == "unsupported" and len(a.flagged) <= 2:
                continue  # that is the recall
            yield f"  {label + ' claims flagged':<28} {cell(value)}  n {value.n:,}"
        yield ""
    yield "In brackets, 95 % intervals."
    yield FITTED


def _figures(a: Agreement) -> dict[str, Estimate]:
    return {
        "balanced_accuracy": a.balanced_accuracy,
        "auroc": a.auroc,
        "precision": a.precision,
        "recall": a.recall,
    }


def _by_label(rows: Rows) -> tuple[Rows, Rows]:
    return rows[rows[:, 1] == 1, 0], rows[rows[:, 1] == 0, 0]


def _share(verdicts: Iterable[bool]) -> Estimate:
    return estimate([float(verdict) for verdict in verdicts], share=True)
