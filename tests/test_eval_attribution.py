from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from doubles.commands import BETA, RECORDS, Rag, failed, write
from doubles.embedder import WordCountEmbedder
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.attribution.claims import Claim, Judged, Label, judge, read_claims, read_corpus
from eval.attribution.report import agreement, agreements, auroc, balanced_accuracy
from rag.passages import Passages
from rag.types import Paper
from rag.verify import SUPPORTED, Verifier

SHARED = Path(__file__).parents[2] / "shared"
CITED = ["AlphaNet [3] lowers the graph noise by 12.5% on ImageNet.", "It needs 3 GPUs."]
FOUND = {"claim": "AlphaNet lowers the graph noise on ImageNet.[1]", "references": CITED}
WRONG_NUMBER = {"claim": "AlphaNet lowers the graph noise by 40% on ImageNet.", "references": CITED}
DENIED = {"claim": "AlphaNet does not lower the graph noise on ImageNet.", "references": CITED}
ELSEWHERE = {"claim": "Proteins fold because rewards are spoken.", "references": CITED}


def labelled(value: dict[str, Any], supported: bool, **more: object) -> dict[str, Any]:
    return {**value, "label": "attributable" if supported else "not attributable", **more}


def judged(label: Label, score: float, source: str = "s") -> Judged:
    paper = Paper("p", "", "text", "text", ())
    return Judged(Claim(source, "claim", paper, label), score >= SUPPORTED, score)


def verdicts(*values: dict[str, Any]) -> list[Judged]:
    path = write("claims.jsonl", *(labelled(value, True) for value in values))
    verifier = Verifier(Passages(WordCountEmbedder()))
    return judge(read_claims(path).claims, verifier, lambda _done, _total: None)


def test_both_forms_are_read() -> None:
    corpus = read_corpus([write("papers.jsonl", *RECORDS)])
    path = write(
        "two.jsonl",
        labelled(FOUND, True, source="HAGRID"),
        labelled(ELSEWHERE, False),
        {"claim": "BetaNet folds.", "paper_id": "beta", "label": "SUPPORT"},
        {"claim": "BetaNet unfolds.", "paper_id": "beta", "label": "CONTRADICT"},
        {"claim": "BetaNet sings.", "paper_id": "beta", "label": "NOT_ENOUGH_INFO"},
    )
    found = read_claims(path, corpus)
    assert (found.malformed, found.without_text) == ((), 0)
    assert [(c.source, c.label) for c in found.claims] == [
        ("HAGRID", "supported"),
        ("two", "unsupported"),
        ("two", "supported"),
        ("two", "contradicted"),
        ("two", "absent"),
    ]
    assert found.claims[0].text == "AlphaNet lowers the graph noise on ImageNet."
    assert found.claims[0].paper.text == (
        "AlphaNet lowers the graph noise by 12.5% on ImageNet. It needs 3 GPUs."
    )
    assert (found.claims[2].paper.id, found.claims[2].paper.text) == ("beta", BETA)


def test_what_a_gate_rejects_ranks_below_all_that_pass() -> None:
    found, wrong, denied, elsewhere = verdicts(FOUND, WRONG_NUMBER, DENIED, ELSEWHERE)
    assert found.supported
    assert not wrong.supported
    assert not denied.supported
    assert not elsewhere.supported
    assert found.score >= SUPPORTED > elsewhere.score >= 0 >= max(wrong.score, denied.score)
    # the wrong number stands in words that the paper has, and still ranks last
    assert wrong.score + 1 > SUPPORTED


def test_a_gate_rejects_where_support_is_low_already() -> None:
    low = {"claim": "Proteins fold 77 times because rewards are spoken.", "references": CITED}
    without, with_number = verdicts(ELSEWHERE, low)
    assert 0 <= without.score < SUPPORTED
    assert -1 <= with_number.score < SUPPORTED - 1


def test_figures_by_hand() -> None:
    found = agreement(
        "s",
        [
            judged("supported", 0.9),
            judged("supported", 0.6),
            judged("supported", 0.4),
            judged("contradicted", 0.6),
            judged("contradicted", -0.3),
            judged("absent", 0.1),
            judged("absent", 0.2),
        ],
    )
    assert (found.claims, found.supported) == (7, 3)
    assert found.balanced_accuracy.value == pytest.approx((2 / 3 + 3 / 4) / 2)
    # of 12 pairs 10 in order, one tie, one (0.4, 0.6) out of order
    assert found.auroc.value == pytest.approx(10.5 / 12)
    assert (found.precision.value, found.precision.n) == (3 / 4, 4)
    assert (found.recall.value, found.recall.n) == (3 / 4, 4)
    shares = {label: (share.value, share.n) for label, share in found.flagged.items()}
    assert shares == {
        "absent": (1, 2),
        "contradicted": (1 / 2, 2),
        "supported": (pytest.approx(1 / 3), 3),
    }
    precision = found.precision
    assert precision.low is not None and precision.high is not None
    assert 0 < precision.low < 3 / 4 < precision.high < 1


def test_intervals_narrow_with_more_claims() -> None:
    widths = []
    for times in (5, 50):
        claims = [judged("supported", 0.9), judged("supported", 0.4), judged("absent", 0.6)]
        found = agreement("s", [*claims, judged("absent", 0.1)] * times).auroc
        assert found.low is not None and found.high is not None
        assert found.value == 3 / 4
        assert found.low < 3 / 4 < found.high
        widths.append(found.high - found.low)
    assert widths[1] < widths[0] / 2


def test_a_source_without_one_of_the_two_has_no_accuracy() -> None:
    found = agreements([judged("supported", 0.9, "a"), judged("absent", 0.9, "b")])
    assert [a.source for a in found] == ["a", "b", "all"]
    unknown = (found[0].auroc, found[0].balanced_accuracy, found[0].recall, found[1].precision)
    assert [estimate.value for estimate in unknown] == [None] * 4
    assert found[2].auroc.value == 1 / 2


@settings(deadline=None)  # scikit-learn is imported in the first example
@given(
    st.lists(st.integers(-4, 4), min_size=1, max_size=30),
    st.lists(st.integers(-4, 4), min_size=1, max_size=30),
)
def test_figures_agree_with_scikit_learn(ours: list[int], others: list[int]) -> None:
    from sklearn.metrics import balanced_accuracy_score, roc_auc_score

    y = [1] * len(ours) + [0] * len(others)
    scores = np.array([*ours, *others]) / 4
    rows = np.column_stack([scores, y])
    assert auroc(rows) == pytest.approx(roc_auc_score(y, scores))
    expected = balanced_accuracy_score(y, scores >= SUPPORTED)
    assert balanced_accuracy(rows) == pytest.approx(expected)


def test_the_command_names_bad_lines_and_judges_the_rest(rag: Rag) -> None:
    corpus = write("papers.jsonl", *RECORDS)
    path = write(
        "claims.jsonl",
        labelled(FOUND, True),
        labelled(WRONG_NUMBER, False),
        {"claim": "BetaNet folds a protein in 7 seconds.", "paper_id": "beta", "label": "SUPPORT"},
        labelled({"claim": "It cites nothing.", "references": []}, False),
    )
    bad = [
        ("{", "it is not JSON"),
        ("[]", "it is not an object {...}"),
        ('{"claim": "x"}', 'its "label" is none of attributable, not attributable, SUPPORT, '
         "CONTRADICT, NOT_ENOUGH_INFO"),
        ('{"label": "SUPPORT"}', 'it has no "claim"'),
        ('{"label": "SUPPORT", "claim": "x"}', 'it has neither "references" nor a "paper_id"'),
        ('{"label": "SUPPORT", "claim": "x", "references": "y"}',
         'its "references" are not a list of texts'),
        ('{"label": "SUPPORT", "claim": "x", "paper_id": 7}', "paper '7' is not in the corpus"),
    ]  # fmt: skip
    with path.open("a") as file:
        file.write("".join(line + "\n" for line, _ in bad))
    ran = rag("eval", "attribution", path, "--corpus", corpus, "--json")
    assert ran.code == 1
    assert ran.err == (
        "".join(f"claims.jsonl, line {n}: {why}\n" for n, (_, why) in enumerate(bad, start=5))
        + "Malformed lines, left out: 7.\n"
        "Claims that are empty or cite no text, left out: 1. An answer never shows such a "
        "statement as supported.\n"
    )
    assert (ran.json["malformed"], ran.json["without_text"]) == (7, 1)
    [figures] = ran.json["sources"]
    assert (figures["source"], figures["claims"], figures["supported"]) == ("claims", 3, 2)
    assert figures["balanced_accuracy"] == {"value": 1, "low": None, "high": None, "n": 3}
    assert figures["auroc"]["value"] == 1
    assert figures["flagged"]["unsupported"]["value"] == 1
    assert "fitted on attributionbench-dev and scifact-train" in ran.json["note"]


def test_the_figures_are_plain_text(rag: Rag) -> None:
    ran = rag("eval", "attribution", write("c.jsonl", labelled(FOUND, True)))
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[:5] == [
        "c: 1 claim, 1 of them supported",
        "  balanced accuracy            -",
        "  AUROC                        -",
        "  precision of 'unsupported'   -",
        "  recall of 'unsupported'      -",
    ]
    assert lines[5].startswith("  supported claims flagged     0.000 [0.000, ")
    assert lines[5].endswith("]  n 1")
    assert lines[-1].startswith("The bundled weights were fitted on attributionbench-dev and")


def test_a_long_source_is_shortened_for_display_only(rag: Rag) -> None:
    source = "from" + "x" * 500 + "here"
    path = write("c.jsonl", labelled(FOUND, True, source=source))
    shown = rag("eval", "attribution", path).out.splitlines()[0]
    assert shown == f"from{'x' * 16}…{'x' * 15}here: 1 claim, 1 of them supported"
    assert rag("eval", "attribution", path, "--json").json["sources"][0]["source"] == source


def test_nothing_to_judge_is_an_error(rag: Rag) -> None:
    path = write("c.jsonl", {"claim": "x", "paper_id": "beta", "label": "SUPPORT"})
    ran = rag("eval", "attribution", path)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == (
        "c.jsonl, line 1: paper 'beta' is to be found in --corpus, which is not given\n"
        "Malformed lines, left out: 1.\n"
        "c.jsonl holds no claim that can be judged. Give one a line, as JSON.\n"
    )
    failed(
        rag("eval", "attribution", "nothing.jsonl"),
        1,
        "nothing.jsonl cannot be read: No such file or directory. Check the path.",
    )


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"the shared data are not at {SHARED}")
def test_the_shared_files_are_read_whole() -> None:
    folder = SHARED / "attribution"
    bench = read_claims(folder / "attributionbench-dev.jsonl")
    assert (len(bench.claims), bench.malformed, bench.without_text) == (807, (), 36)
    corpus = read_corpus([SHARED / "retrieval" / "scifact" / "corpus.jsonl"])
    scifact = read_claims(folder / "scifact-train.jsonl", corpus)
    assert (len(scifact.claims), scifact.malformed, scifact.without_text) == (894, (), 0)
    labels = [json.loads(line)["label"] for line in (folder / "scifact-train.jsonl").open()]
    assert sum(c.supported for c in scifact.claims) == labels.count("SUPPORT")
    assert {c.label for c in scifact.claims} == {"supported", "contradicted", "absent"}
