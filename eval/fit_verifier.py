"""Fits the weights of `rag.verify.support`: `python -m eval.fit_verifier`.

Claims and cited texts come from the shared attribution data; prints cross-validated AUROC and
balanced accuracy by source, then the weights to put into `rag/verify.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from eval.bench import SHARED
from rag.config import Settings
from rag.embed import Embedder, open_embedder
from rag.passages import Passages
from rag.text import clean
from rag.types import Paper
from rag.verify import Signals, choose_quote, compare

FOLDS = 5
# Longest cited text, in characters: some sources of attributionbench quote whole pages.
LONGEST = 12_000


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim, the paper-like text that it cites, and whether that text supports it."""

    source: str
    text: str
    paper: Paper
    supported: bool


def claims(shared: Path) -> Iterator[Claim]:
    """Every claim of attributionbench-dev and scifact-train."""
    for line in _lines(shared / "attribution" / "attributionbench-dev.jsonl"):
        cited = clean(" ".join(_unmarked(text) for text in line["references"]))[:LONGEST]
        paper = Paper(line["id"], "", cited, cited, ())
        yield Claim(
            line["source"], _unmarked(line["claim"]), paper, line["label"] == "attributable"
        )
    corpus = {d["id"]: d for d in _lines(shared / "retrieval" / "scifact" / "corpus.jsonl")}
    for line in _lines(shared / "attribution" / "scifact-train.jsonl"):
        document = corpus[str(line["paper_id"])]
        text = clean(document["abstract"])
        paper = Paper(document["id"], document["title"], text, text, ())
        yield Claim("scifact", line["claim"], paper, line["label"] == "SUPPORT")


def signals_of(claim: Claim, passages: Passages, embedder: Embedder) -> Signals | None:
    """The signals that `rag.verify` would see; None for a claim or a paper without text."""
    text = clean(claim.text)
    if not text or not claim.paper.text:
        return None
    vector = embedder.documents([text])[0]
    spans, cosines = passages.cosines(claim.paper, vector)
    sentences = [claim.paper.text[span.start : span.end] for span in spans]
    chosen = choose_quote(text, sentences, cosines)
    quote = " ".join([claim.paper.title, *(sentences[i] for i in chosen)])
    whole = f"{claim.paper.title}. {claim.paper.text}"
    return compare(text, quote, whole, max(cosines[i] for i in chosen))


def main() -> None:
    """Fit, cross-validate, print."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import balanced_accuracy_score, roc_auc_score
    from sklearn.model_selection import cross_val_predict

    embedder = open_embedder(Settings())
    passages = Passages(embedder)
    rows = [(c, s) for c in claims(SHARED) if (s := signals_of(c, passages, embedder))]
    x = np.array([astuple(signals) for _, signals in rows], dtype=float)
    y = np.array([claim.supported for claim, _ in rows])
    sources = np.array([claim.source for claim, _ in rows])
    model = LogisticRegression(C=10, max_iter=1000)
    found = cross_val_predict(model, x, y, cv=FOLDS, method="predict_proba")[:, 1]
    for source in (*sorted(set(sources)), "all"):
        mine = (sources == source) | (source == "all")
        auroc = roc_auc_score(y[mine], found[mine])
        balanced = balanced_accuracy_score(y[mine], found[mine] > 0.5)
        print(
            f"{source:<22} n {mine.sum():>4}  AUROC {auroc:.3f}  balanced accuracy {balanced:.3f}"
        )
    model.fit(x, y)
    names = ("W_QUOTE", "W_PAPER", "W_COSINE", "W_NEGATION")
    print("INTERCEPT", round(float(model.intercept_[0]), 2))
    print(*(f"{name} {weight:.2f}" for name, weight in zip(names, model.coef_[0], strict=True)))


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        yield from (json.loads(line) for line in file)


def _unmarked(text: str) -> str:
    return re.sub(r"\[\d+\]", "", text)


if __name__ == "__main__":
    main()
