from __future__ import annotations

from pathlib import Path

import pytest
from doubles.embedder import WordCountEmbedder
from hypothesis import given
from hypothesis import strategies as st

from rag.config import Settings
from rag.errors import RagError, UsageError
from rag.filters import Filter, matching, parse
from rag.ingest import entries
from rag.passages import Passages
from rag.retrieve import Retriever
from rag.store import Store, fingerprint_of
from rag.store.exact import ExactVectors
from rag.types import MetaValue, Paper, Source


def paper(paper_id: str, text: str = "A graph of noise.", **metadata: MetaValue) -> Paper:
    sources = (Source(f"lists/{paper_id}-list.txt", 1),)
    return Paper(paper_id, f"On {paper_id}", text, text, sources, metadata=metadata)


OLD = paper("old", year=2019, venue="ICML 2019")
NEW = paper("new", "Graphs of an image.", date="2025-06-01", booktitle="NeurIPS")
BARE = paper("bare", "A state-space model.", keywords=["Reward Models", "agents"])
ALL = (OLD, NEW, BARE)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", {"old", "new", "bare"}),
        ("year=2019", {"old"}),
        ("year=2019,2025", {"old", "new"}),
        ("year=2020-", {"new"}),
        ("year=-2024", {"old"}),
        ("year=2019..2024", {"old"}),
        ("year>=2019", {"old", "new"}),
        ("year>2019", {"new"}),
        ("year<2025", {"old"}),
        ("year=<=2025", {"old", "new"}),
        ("venue=neurips", {"new"}),
        ("venue=icml venue=NEURIPS", {"old", "new"}),
        ("source=OLD-", {"old"}),
        ("source=lists", set()),  # a folder is not the file's name
        ("keyword=graph", {"old", "new"}),
        ("keyword=grap", set()),  # whole words
        ('keyword="state space"', {"bare"}),
        ("keyword='reward model'", {"bare"}),
        ("keyword=reward,image", {"bare", "new"}),
        ("keyword=graph year=2025", {"new"}),
        ("KEYWORD=agents", {"bare"}),
    ],
)
def test_which_papers_a_filter_lets_through(text: str, found: set[str]) -> None:
    assert matching(parse(text), ALL) == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("yeer=2020", "'yeer=2020' is no condition. Is year=... meant?"),
        ("graphs", "'graphs' is no condition."),
        ("year=", "'year=' names no value."),
        ("keyword=a,,b", "names no value"),
        ("year=20", "'20' is no year. Write 2025, 2023-2025, 2023- or -2025."),
        ("year=-", "'-' is no year."),
        ("year=2025-2020", "2025-2020 ends before it begins. Write 2020-2025."),
        ("year=20242025", "'20242025' is no year."),
        ('year="2024 2025"', "'2024 2025' is no year."),
        ("venue>=neurips", "'venue>=neurips' compares what has no order. Write venue=..."),
        ("keyword<=a", "'keyword<=a' compares what has no order. Write keyword=..."),
        ("yeer>=2020", "'yeer>=2020' is no condition. Is year=... meant?"),
        ("keyword=-", "'keyword=-': a keyword needs a letter or a digit."),
        ("keyword=graph,+", "'keyword=graph,\\+': a keyword needs a letter or a digit."),
        ('venue="a', "A quote is open"),
    ],
)
def test_what_is_no_filter_is_named(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said.replace("(", r"\(")):
        parse(text)


def test_what_readers_found_out_goes_before_what_the_source_says() -> None:
    both = paper("a", "Text.", Year="1999 or 2001", PY="1999", year=2024)
    assert matching(parse("year=2024"), [both]) == {"a"}
    assert matching(parse("year=1999"), [both]) == set()
    assert matching(parse("year=1999"), [paper("a", Year="1999 or 2001")]) == {"a"}
    both = paper("a", "Text.", venue="NeurIPS", Venue="none", keywords=["agents"], Keywords="x")
    assert matching(parse("venue=neurips"), [both]) == {"a"}
    assert matching(parse("keyword=agents"), [both]) == {"a"}


VALUES = st.text(st.characters(exclude_categories=("Cs", "Cc", "Z")), min_size=1, max_size=8)
PHRASES = VALUES.map(str.strip).filter(lambda text: text and "," not in text)
WORDS = PHRASES.filter(lambda text: any(c.isalnum() for c in text))
YEARS = st.tuples(st.integers(1000, 2999), st.integers(1000, 2999)).map(
    lambda pair: (min(pair), max(pair))
)


@given(
    st.builds(
        Filter,
        st.lists(YEARS, max_size=2).map(tuple),
        *[st.lists(PHRASES, max_size=2, unique=True).map(tuple)] * 2,
        st.lists(WORDS, max_size=2, unique=True).map(tuple),
    )
)
def test_a_filter_reads_what_it_writes(condition: Filter) -> None:
    assert parse(str(condition)) == condition
    assert bool(condition) == (str(condition) != "")


@given(st.text(max_size=40))
def test_whatever_is_typed_is_a_filter_or_an_error_of_ours(text: str) -> None:
    try:
        condition = parse(text)
    except RagError:
        return
    assert matching(condition, ALL) <= {"old", "new", "bare"}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("store")
    embedder = WordCountEmbedder()
    with Store.open(directory, fingerprint_of(embedder), write=True) as opened:
        opened.upsert(entries(ALL, embedder))
    return directory


def test_only_papers_of_the_filter_are_found(store: Path) -> None:
    embedder = WordCountEmbedder()
    with Store.open(store, fingerprint_of(embedder)) as opened:
        retriever = Retriever(opened, embedder, Passages(embedder), Settings().retrieval)
        everything = retriever.retrieve("graph noise")
        assert {hit.paper.id for hit in everything.hits} == {"old", "new", "bare"}
        narrowed = retriever.retrieve("graph noise", among={"new", "bare", "gone"})
        assert [hit.paper.id for hit in narrowed.ranking] == ["new", "bare"]
        assert {row.evidence.paper_id for row in narrowed.sentences} == {"new", "bare"}
        assert retriever.retrieve("graph noise", among=()).hits == ()


def test_papers_that_are_named_come_first(store: Path) -> None:
    embedder = WordCountEmbedder()
    with Store.open(store, fingerprint_of(embedder)) as opened:
        retriever = Retriever(opened, embedder, Passages(embedder), Settings().retrieval)
        usual = retriever.retrieve("graph noise").hits
        assert usual[0].paper.id == "old"
        named = retriever.retrieve("graph noise", named=["bare", "new"]).hits
        assert [hit.paper.id for hit in named] == ["bare", "new", "old"]
        assert [hit.score for hit in named] == [usual[0].score] * 3
        one = retriever.retrieve("graph noise", 1, named=["bare", "new"]).hits
        assert [hit.paper.id for hit in one] == ["bare"]
        other = retriever.retrieve("graph noise", among={"old"}, named=["bare"]).hits
        assert [hit.paper.id for hit in other] == ["old"]


def test_nearest_among_some_is_the_nearest_of_all_without_the_others(store: Path) -> None:
    embedder = WordCountEmbedder()
    vector = embedder.queries(["graph image"])[0]
    with Store.open(store, fingerprint_of(embedder)) as opened:
        whole = ExactVectors(opened.catalog).nearest(vector, 10)
        assert opened.nearest(vector, 10, {"old", "new", "bare"}) == whole
        assert opened.nearest(vector, 10, {"old", "bare"}) == [
            row for row in whole if row[0] != "new"
        ]
        assert (
            opened.nearest(vector, 1, {"old", "bare"})
            == [row for row in whole if row[0] != "new"][:1]
        )
