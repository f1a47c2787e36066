from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rag import tokens
from rag.config import AnswerSettings
from rag.evidence import EvidenceSet, select
from rag.retrieve import RatedSentence, Retrieval
from rag.types import Evidence, Hit, Paper, Source


def paper(paper_id: str, *sentences: str) -> Paper:
    text = " ".join(sentences)
    return Paper(paper_id, f"Title {paper_id}", text, text, (Source("list.txt", 1),))


def retrieval(*rated: tuple[Paper, str, float]) -> Retrieval:
    """Hits in the order of first mention; sentences as given, which should be best first."""
    papers = list({p.id: p for p, *_ in rated}.values())
    rows = tuple(
        RatedSentence(Evidence(p.id, s, p.text.index(s), p.text.index(s) + len(s)), rating, rating)
        for p, s, rating in rated
    )
    return Retrieval("q", tuple(Hit(p, 1.0, 1, 1) for p in papers), rows)


A = paper("a", "Alpha one.", "Alpha two.", "Alpha three.", "Alpha four.")
B = paper("b", "Beta one.", "Beta two.")
RATED = retrieval(
    (A, "Alpha three.", 1.0),
    (B, "Beta two.", 0.95),
    (A, "Alpha one.", 0.9),
    (B, "Beta one.", 0.85),
    (A, "Alpha two.", 0.8),
    (A, "Alpha four.", 0.6),
)


def texts(evidence: EvidenceSet) -> list[tuple[int, str]]:
    return [(s.number, s.text) for s in evidence.sentences]


def test_sentences_are_chosen_by_rating_and_shown_in_reading_order() -> None:
    assert texts(select(RATED, AnswerSettings(evidence_sentences=4))) == [
        (1, "Alpha one."),
        (2, "Alpha three."),
        (3, "Beta one."),
        (4, "Beta two."),
    ]


def test_what_is_rated_far_below_the_best_is_left_out() -> None:
    shown = texts(select(RATED, AnswerSettings()))
    assert len(shown) == 5
    assert "Alpha four." not in dict(map(reversed, shown))


def test_numbers_lead_back_to_papers() -> None:
    evidence = select(RATED, AnswerSettings(evidence_sentences=3))
    assert [evidence.paper(number) for number in (0, 1, 2, 3, 4)] == [None, A, A, B, None]
    assert evidence.for_prompt() == [
        {
            "title": "Title a",
            "sentences": [
                {"number": 1, "text": "Alpha one."},
                {"number": 2, "text": "Alpha three."},
            ],
        },
        {"title": "Title b", "sentences": [{"number": 3, "text": "Beta two."}]},
    ]


def test_without_sentences_there_is_no_evidence() -> None:
    assert select(retrieval(), AnswerSettings()) == EvidenceSet(())


ROWS = st.lists(st.tuples(st.integers(0, 4), st.integers(1, 90), st.floats(0.5, 1.0)), max_size=30)


@given(ROWS, st.integers(1, 12), st.integers(50, 200))
def test_selection_keeps_the_budget_and_the_reading_order(
    rows: list[tuple[int, int, float]], most: int, budget: int
) -> None:
    sentences = [f"S{n} " + "word " * size + "end." for n, (_, size, _) in enumerate(rows)]
    papers = {
        p: paper(f"p{p}", *(s for s, (of, *_) in zip(sentences, rows, strict=True) if of == p))
        for p, *_ in rows
    }
    rated = sorted(
        ((papers[p], s, r) for s, (p, _, r) in zip(sentences, rows, strict=True)),
        key=lambda row: -row[2],
    )
    settings = AnswerSettings(evidence_sentences=most, evidence_tokens=budget)
    found = retrieval(*rated)
    chosen = select(found, settings).sentences
    assert [s.number for s in chosen] == list(range(1, len(chosen) + 1))
    assert len(chosen) <= most
    spent = sum(tokens.count(s.text) for s in chosen)
    assert spent <= budget or len(chosen) == 1
    rank = {hit.paper.id: n for n, hit in enumerate(found.hits)}
    places = [(rank[s.paper.id], s.paper.text.index(s.text)) for s in chosen]
    assert places == sorted(places)
