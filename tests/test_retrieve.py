from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from doubles.embedder import WordCountEmbedder
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from rag.config import RetrievalSettings
from rag.errors import UsageError
from rag.ingest import entries
from rag.passages import LONGEST, Passages
from rag.retrieve import MAX_QUESTION, Retriever, checked, fuse
from rag.store import Store, fingerprint_of
from rag.types import Paper, Source

TEXTS = {
    "graph-1": "A graph has noise. The graph network Alpha wins by 3 points. That is all.",
    "graph-2": "A graph has noise. The graph network Beta loses by 4 points.",
    "image-1": "An image of an image is an image. It has 12 pixels.",
    "prot-1": "A protein folds. The reward for a protein is language.",
}


def paper(paper_id: str, text: str) -> Paper:
    return Paper(paper_id, paper_id.upper(), text, text, (Source("list.txt", 1),))


class Signed(WordCountEmbedder):
    """`WordCountEmbedder` whose questions point the other way: every cosine is negative."""

    def queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return -super().queries(texts)

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return super().queries(texts)


def stored(directory: Path, texts: dict[str, str], embedder: WordCountEmbedder) -> Store:
    with Store.open(directory, fingerprint_of(embedder), write=True) as store:
        store.upsert(entries([paper(i, t) for i, t in texts.items()], embedder))
    return Store.open(directory, fingerprint_of(embedder))


def retriever(
    directory: Path,
    texts: dict[str, str] = TEXTS,
    embedder: WordCountEmbedder | None = None,
    **settings: int,
) -> Retriever:
    embedder = embedder or WordCountEmbedder()
    store = stored(directory, texts, embedder)
    return Retriever(store, embedder, Passages(embedder), RetrievalSettings(**settings))


def test_papers_come_best_first_with_ranks_and_their_best_sentences(tmp_path: Path) -> None:
    found = retriever(tmp_path, papers=2).retrieve("  How does the graph network Alpha do? ")
    assert found.query == "How does the graph network Alpha do?"
    assert [hit.paper.id for hit in found.hits] == ["graph-1", "graph-2"]
    first = found.hits[0]
    assert (first.dense_rank, first.lexical_rank) == (1, 1)
    assert first.score == 1.0
    assert [e.text for e in first.evidence] == [
        "A graph has noise.",
        "The graph network Alpha wins by 3 points.",
    ]
    assert found.sentences[0].evidence.text == "The graph network Alpha wins by 3 points."
    assert found.sentences[0].rating == 1.0


def test_the_ranking_goes_on_where_the_hits_end(tmp_path: Path) -> None:
    texts = {f"p{n:03}": f"A graph number {n} is here." for n in range(30)}
    found = retriever(tmp_path, texts, papers=3).retrieve("graph")
    assert found.ranking[:3] == found.hits
    assert [hit.paper.id for hit in found.ranking] == [f"p{n:03}" for n in range(10)]
    assert all(hit.evidence for hit in found.hits)
    assert not any(hit.evidence for hit in found.ranking[3:])


def test_evidence_quotes_the_papers_text(tmp_path: Path) -> None:
    found = retriever(tmp_path).retrieve("graph image protein")
    assert len(found.sentences) == 9
    for row in found.sentences:
        text = TEXTS[row.evidence.paper_id]
        assert text[row.evidence.start : row.evidence.end] == row.evidence.text
        assert 0.0 <= row.rating <= 1.0
    ratings = [row.rating for row in found.sentences]
    assert ratings == sorted(ratings, reverse=True)


def test_as_many_papers_as_are_asked_for(tmp_path: Path) -> None:
    texts = {f"p{n:03}": f"A graph number {n} is here." for n in range(130)}
    search = retriever(tmp_path, texts, candidates=10, papers=3)
    assert len(search.retrieve("graph").hits) == 3
    hits = search.retrieve("graph", 125).hits
    assert len(hits) == 125
    assert len({hit.paper.id for hit in hits}) == 125


def test_equal_papers_come_by_id(tmp_path: Path) -> None:
    texts = dict.fromkeys(("b", "c", "a"), "The very same graph of noise.")
    assert [h.paper.id for h in retriever(tmp_path, texts).retrieve("noise").hits] == [
        "a",
        "b",
        "c",
    ]


def test_negative_cosines_leave_the_words_to_decide(tmp_path: Path) -> None:
    found = retriever(tmp_path, embedder=Signed()).retrieve("network Beta")
    assert found.hits[0].paper.id == "graph-2"
    assert found.sentences[0].evidence.text == "The graph network Beta loses by 4 points."
    assert all(0.0 <= row.rating <= 1.0 for row in found.sentences)


def test_a_query_that_shares_no_word_with_any_paper(tmp_path: Path) -> None:
    found = retriever(tmp_path).retrieve("zzz qqq")
    assert len(found.hits) == 4
    assert {hit.lexical_rank for hit in found.hits} == {None}


def test_an_empty_store_has_no_hits(tmp_path: Path) -> None:
    found = retriever(tmp_path, {}).retrieve("graph")
    assert found.hits == found.sentences == ()


def test_rankings_for_an_evaluation(tmp_path: Path) -> None:
    runs = retriever(tmp_path).rankings({"q1": "graph network Alpha", "q2": "protein"}, papers=2)
    assert list(runs) == ["hybrid", "bm25", "dense"]
    assert list(runs["hybrid"]["q1"]) == ["graph-1", "graph-2"]
    assert list(runs["bm25"]["q2"]) == ["prot-1"]
    assert {len(found) for found in runs["dense"].values()} == {2}


@pytest.mark.parametrize(
    "question", ["", " \n", "???", "\u200b", "-", "\x1b[2J", "\x1b]0;title\x07"]
)
def test_an_empty_question_is_refused(question: str) -> None:
    with pytest.raises(UsageError, match=r"^The question is empty\. Ask something, as in: rag ask"):
        checked(question)


def test_a_question_too_long_is_refused_with_its_length() -> None:
    assert checked("a" * MAX_QUESTION) == "a" * MAX_QUESTION
    with pytest.raises(UsageError) as caught:
        checked("a" * 50_000)
    assert str(caught.value) == (
        "The question has 50,000 characters; at most 8,000 can be read at once. "
        "Ask its parts one by one."
    )


IDS = st.sampled_from([f"p{n}" for n in range(12)])
COSINES = st.dictionaries(IDS, st.sampled_from([-1.0, -0.2, 0.0, 0.1, 0.5, 0.5, 1.0]))
LEXICAL = st.dictionaries(IDS, st.sampled_from([0.1, 1.0, 1.0, 7.5]))


@given(COSINES, LEXICAL, st.randoms())
def test_fusion_is_deterministic_and_ties_go_by_id(
    cosines: dict[str, float], lexical: dict[str, float], random: object
) -> None:
    fused = fuse(cosines, lexical)
    assert {paper_id for paper_id, _ in fused} == set(cosines)
    assert fused == sorted(fused, key=lambda item: (-item[1], item[0]))
    shuffled = sorted(cosines)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    again = fuse({i: cosines[i] for i in shuffled}, dict(reversed(lexical.items())))
    assert again == fused
    if set(lexical) <= set(cosines):
        assert all(0.0 <= score <= 1.0 for _, score in fused)


def test_fusion_weighs_meaning_four_times_the_words() -> None:
    assert fuse({"a": 0.5, "b": 1.0, "c": 0.0}, {"a": 2.0, "c": 4.0}) == [
        ("b", 0.8),
        ("a", 0.5),
        ("c", 0.2),
    ]
    assert fuse({}, {"a": 1.0}) == []


def test_passages_embed_a_paper_once_and_cut_what_is_too_long_to_quote() -> None:
    embedder = WordCountEmbedder()
    passages = Passages(embedder)
    long = paper("long", "Short graph. A " + "word " * 30_000)
    spans, vectors = passages.sentences(long)
    assert passages.sentences(long)[1] is vectors
    assert len(embedder.embedded) == len(spans) == len(vectors) == 152
    assert max(span.end - span.start for span in spans) <= LONGEST
    covered = "".join(long.text[s.start : s.end] for s in spans).replace(" ", "")
    assert covered == long.text.replace(" ", "")
    assert embedder.embedded[0] == "Short graph."
