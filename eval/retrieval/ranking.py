"""How good rankings are: measures by query, means with intervals, paired differences.

All measures are those of ir_measures (https://ir-measur.es, MacAvaney et al. 2022), which asks
trec_eval's code for all but MRR@10. What papers define in more than one way is meant so:

nDCG@10     gain = grade (linear, as trec_eval; not 2^grade - 1), discount log2(rank + 1), ideal
            ranking over all judged papers, in the index or not (Järvelin and Kekäläinen 2002).
MRR@10      1 / rank of the first relevant paper, 0 beyond rank 10.
Recall@k    relevant among the first k / all relevant.
MAP@100     sum of the precisions at the ranks of relevant papers up to 100 / all relevant.

Relevant is grade 1 or more; a grade below 0 counts as 0, unjudged papers as irrelevant. Every
query with judgements counts, with 0 where nothing was found or nothing is relevant (trec_eval's
`-c`); queries without are left out. The order is that of the run: equal scores play no part here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eval.retrieval.trec import Qrels, Run
from eval.statistics.estimates import Estimate, PairedTest, estimate, paired_test
from rag.errors import RagError

# Shown name -> ir_measures' own, and how deep a ranking has to be for it.
_MEASURES = {
    "nDCG@10": ("nDCG@10", 10),
    "MRR@10": ("RR@10", 10),
    "Recall@5": ("R@5", 5),
    "Recall@10": ("R@10", 10),
    "Recall@100": ("R@100", 100),
    "MAP@100": ("AP@100", 100),
}
INSTALL = 'pip install "citewise[eval]"'


@dataclass(frozen=True, slots=True)
class Scored:
    """One system's run, measured. `values`: measure -> query -> 0..1, the same queries in each.

    `without_result` are queries for which the run holds no paper.
    """

    name: str
    values: Mapping[str, Mapping[str, float]]
    without_result: tuple[str, ...]

    def estimates(self) -> dict[str, Estimate]:
        """The mean of each measure over the queries, with its interval."""
        return {
            name: estimate(list(found.values()), share=True) for name, found in self.values.items()
        }


def measure(name: str, run: Run, qrels: Qrels, depth: int | None = None) -> Scored:
    """Measure the run of the system `name` over every query of `qrels`.

    `depth` is how many papers a query could have got; measures that look deeper are left out.

    Raises:
        RagError: ir_measures is not installed.
    """
    wanted = {
        shown: spec for shown, (spec, deep) in _MEASURES.items() if depth is None or deep <= depth
    }
    queries = sorted(qrels)
    values = {shown: dict.fromkeys(queries, 0.0) for shown in wanted}
    names = {spec: shown for shown, spec in wanted.items()}
    for found in _calculated(list(names), _at_least_zero(qrels), _by_position(run, qrels)):
        values[names[str(found.measure)]][found.query_id] = float(found.value)
    return Scored(name, values, tuple(q for q in queries if not run.get(q)))


def differences(one: Scored, other: Scored) -> dict[str, PairedTest]:
    """`one` minus `other` in each measure that both have, over their queries, which are the same.

    Raises:
        ValueError: the two were not measured on the same queries.
    """
    found = {}
    for name in (name for name in one.values if name in other.values):
        ours, theirs = one.values[name], other.values[name]
        if ours.keys() != theirs.keys():
            raise ValueError("the two systems were measured on different queries")
        found[name] = paired_test(list(ours.values()), [theirs[query] for query in ours])
    return found


def _calculated(specs: Sequence[str], qrels: Qrels, run: Mapping[str, Any]) -> Any:
    try:
        import ir_measures
    except ImportError as error:
        raise RagError(f"ir_measures is not installed. Run: {INSTALL}") from error
    return ir_measures.iter_calc([ir_measures.parse_measure(spec) for spec in specs], qrels, run)


def _at_least_zero(qrels: Qrels) -> Qrels:
    return {q: {p: max(grade, 0) for p, grade in judged.items()} for q, judged in qrels.items()}


def _by_position(run: Run, qrels: Qrels) -> dict[str, dict[str, float]]:
    """Scores that only say the order, so that no tool finds ties to break."""
    return {
        query: {paper: float(-rank) for rank, (paper, _) in enumerate(ranked)}
        for query, ranked in run.items()
        if query in qrels
    }
