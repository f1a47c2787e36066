"""Fits the weights of `rag.verify.support`: `python -m eval.attribution.fit`.

Claims and cited texts come from the shared attribution data; prints cross-validated AUROC and
balanced accuracy by source, then the weights to put into `rag/verify.py`. What the verifier as it
stands makes of the same claims: `rag eval attribution`.
"""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path

import numpy as np

from eval.attribution.claims import Claim, read_claims, read_corpus
from rag.config import Settings
from rag.embed import Embedder, open_embedder
from rag.passages import Passages
from rag.verify import Signals, choose_quote, compare

SHARED = Path(__file__).parents[3] / "shared"
FOLDS = 5


def claims(shared: Path) -> list[Claim]:
    """Every claim of attributionbench-dev and scifact-train that cites any text."""
    corpus = read_corpus([shared / "retrieval" / "scifact" / "corpus.jsonl"])
    found = read_claims(shared / "attribution" / "attributionbench-dev.jsonl").claims
    return [*found, *read_claims(shared / "attribution" / "scifact-train.jsonl", corpus).claims]


def signals_of(claim: Claim, passages: Passages, embedder: Embedder) -> Signals:
    """The signals that `rag.verify` would see."""
    vector = embedder.documents([claim.text])[0]
    spans, cosines = passages.cosines(claim.paper, vector)
    sentences = [claim.paper.text[span.start : span.end] for span in spans]
    chosen = choose_quote(claim.text, sentences, cosines)
    quote = " ".join([claim.paper.title, *(sentences[i] for i in chosen)])
    whole = f"{claim.paper.title}. {claim.paper.text}"
    return compare(claim.text, quote, whole, max(cosines[i] for i in chosen))


def main() -> None:
    """Fit, cross-validate, print."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import balanced_accuracy_score, roc_auc_score
    from sklearn.model_selection import cross_val_predict

    embedder = open_embedder(Settings())
    passages = Passages(embedder)
    rows = [(claim, signals_of(claim, passages, embedder)) for claim in claims(SHARED)]
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


if __name__ == "__main__":
    main()
