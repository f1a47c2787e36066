from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.lexical import LexicalIndex, searchable, tokens


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Calibrating the networks", ["calibr", "network"]),
        ("H-LRU", ["h", "lru", "hlru"]),
        ("GA²M", ["ga2m", "ga"]),
        ("mAP50", ["map50", "map"]),
        ("state-of-the-art", ["state", "art", "stateoftheart"]),
        ("Gödel", ["godel"]),
        ("ＧＰＴ４", ["gpt4", "gpt"]),
        ("the model's", ["model"]),
        ("fine‑tuning finetuning", ["fine", "tune", "finetun", "finetun"]),
        ("校准", ["校", "准", "校准"]),
        ("用LAPE校准", ["用", "lape", "校", "准", "校准"]),
        ("of the and", []),
        ("<|endoftext|> [bold]", ["endoftext", "bold"]),
        ("", []),
    ],
)
def test_tokens(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


@given(st.text())
def test_tokens_are_never_empty_or_blank(text: str) -> None:
    assert all(token and not token.isspace() for token in tokens(text))


@given(st.text(st.characters(codec="ascii")))
def test_tokens_ignore_case(text: str) -> None:
    assert tokens(text.upper()) == tokens(text.lower())


PAPERS = {
    "a": searchable("H-LRU", "A cache that evicts by recency."),
    "b": searchable("Graphs", "Graph networks for proteins; recency plays no part."),
    "c": searchable("校准", "概率校准的方法。"),
    "d": searchable("Graphs", "Graph networks for proteins; recency plays no part."),
}


def build(directory: Path | None = None) -> LexicalIndex:
    return LexicalIndex.build(list(PAPERS), list(PAPERS.values()), directory)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("h-lru", ["a"]),
        ("HLRU", ["a"]),
        ("LRU", ["a"]),
        ("protein graphs", ["b", "d"]),
        ("校准", ["c"]),
        ("of the", []),
        ("zebra", []),
        ("", []),
    ],
)
def test_rank(query: str, expected: list[str]) -> None:
    assert [paper_id for paper_id, _ in build().rank(query, 10)] == expected


def test_equal_papers_tie_by_id_and_k_cuts() -> None:
    ranked = build().rank("protein graphs", 10)
    assert ranked[0][1] == ranked[1][1] > 0
    assert build().rank("protein graphs", 1) == ranked[:1]


def test_scores_are_lucene_bm25() -> None:
    index = LexicalIndex.build(["a", "b"], ["zebra", "lion lion"])
    # Two documents of 1 and 2 words (mean 1.5); "lion" is in one of them, twice.
    idf = 0.6931472  # ln(1 + (2 - 1 + 0.5) / (1 + 0.5))
    expected = idf * 2 / (2 + 1.2 * (1 - 0.75 + 0.75 * 2 / 1.5))
    assert index.rank("lion", 5) == [("b", pytest.approx(expected, rel=1e-6))]


def test_a_title_counts_twice() -> None:
    assert tokens(searchable("Zebra", "lion")) == ["zebra", "zebra", "lion"]


def test_a_saved_index_ranks_alike(tmp_path: Path) -> None:
    built = build(tmp_path / "bm25")
    loaded = LexicalIndex.load(tmp_path / "bm25")
    assert len(loaded) == 4
    for query in ("protein graphs", "recency", "校准"):
        assert loaded.rank(query, 10) == built.rank(query, 10)


@pytest.mark.parametrize("texts", [[], ["of the"]])
def test_an_index_without_words_is_empty(tmp_path: Path, texts: list[str]) -> None:
    LexicalIndex.build(["a"][: len(texts)], texts, tmp_path)
    assert LexicalIndex.load(tmp_path).rank("of the graph", 5) == []


def test_a_truncated_index_is_noticed(tmp_path: Path) -> None:
    build(tmp_path)
    data = tmp_path / "data.csc.index.npy"
    data.write_bytes(data.read_bytes()[:-8])
    with pytest.raises((OSError, ValueError)):
        LexicalIndex.load(tmp_path).rank("graph", 5)


def test_any_changed_byte_is_noticed(tmp_path: Path) -> None:
    build(tmp_path)
    assert LexicalIndex.is_whole(tmp_path)
    for file in sorted(tmp_path.iterdir()):
        content = file.read_bytes()
        file.write_bytes(content[:-2] + bytes([content[-2] ^ 1]) + content[-1:])
        assert not LexicalIndex.is_whole(tmp_path)
        with pytest.raises(ValueError, match=r"not as they were written|Expecting|Invalid"):
            LexicalIndex.load(tmp_path)
        file.write_bytes(content)
    assert LexicalIndex.is_whole(tmp_path)


def test_files_do_not_depend_on_the_hash_seed(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from rag.lexical import LexicalIndex;"
        "LexicalIndex.build(['a','b'], ['red blue green', 'blue sky at night'], Path(sys.argv[1]))"
    )
    for seed in ("1", "2"):
        command = [sys.executable, "-c", script, str(tmp_path / seed)]
        subprocess.run(command, check=True, env={"PYTHONHASHSEED": seed})
    for file in (tmp_path / "1").iterdir():
        assert file.read_bytes() == (tmp_path / "2" / file.name).read_bytes()
