from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.facts import holds_name, missing, name_key, names, numbers


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("17,861 images, ten classes, 63.9% mAP50", "17861 10 63.9"),
        ("1,234, and 1,234,567; (1,2) and 3,45", "1234 1234567 1 2 3 45"),
        ("0.50 and .5 and 1.0 and 007", "0.5 1 7"),
        ("a 7B model, 5.84M weights, 32x and 10k-step runs in 3D", "7 5.84 32 10 3"),
        ("2.18× faster, −3 dB, $5", "2.18 3 5"),
        ("tenfold, five-fold, twice, doubles, a two-stage way", "10 5 2"),
        ("thirty papers and ninety-two more", "30 90 2"),
        ("10⁵ steps", "10 5"),
        ("10⁻³", "10 3"),
        ("达到63.9%的准确率", "63.9"),
        ("ResNet18, mAP50, H100s, utf8 and v2", ""),
        ("top-10 and GPT-4", "10 4"),
        ("no figure at all, of one kind", ""),
    ],
)
def test_numbers(text: str, found: str) -> None:
    assert numbers(text) == frozenset(found.split())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("TopoPT beats LitePT-S on SemanticKITTI", "topopt litepts semantickitti"),
        ("SAEs, an SAE and mIoU on H100", "sae miou h100"),
        ("GA²M and Full‑Width ＡＢＣ", "ga2m abc"),
        ("We show that Every Word Here is plain", ""),
        ("在ImageNet上", "imagenet"),
        ("ИИ и МГУ", ""),
        ("state-of-the-art", ""),
    ],
)
def test_names(text: str, found: str) -> None:
    assert names(text) == frozenset(found.split())


@pytest.mark.parametrize(
    ("text", "name", "held"),
    [
        ("LitePT-S wins", "LitePT", True),
        ("Lite-PT wins", "LitePT", True),
        ("many MLLMs", "LLM", True),
        ("a gan-based method and rl", "GAN", True),
        ("mAP50", "mAP", True),
        ("an organ of the world", "GAN", False),
        ("an organ of the world", "RL", False),
        ("TopoNet", "TopoPT", False),
        ("", "TopoPT", False),
    ],
)
def test_whether_a_text_holds_a_name(text: str, name: str, held: bool) -> None:
    assert holds_name(text, name_key(name)) is held


PAPER = "HyperDFS visits 2.18× fewer nodes than A* on 12 graphs of ImageNet-1K (top-5, GPT4, 10⁵)."


@pytest.mark.parametrize(
    ("statement", "lost"),
    [
        ("HyperDFS visits 2.18 times fewer nodes on twelve graphs.", ()),
        ("Hyper-DFS is measured on ImageNet and with GPT-4.", ()),
        ("It takes 10^5 steps in the top-5.", ()),
        ("HyperDFS visits 2.2× fewer nodes.", ("2.2",)),
        ("It takes 105 steps on 12 graphs.", ("105",)),
        ("HyperBFS needs 13 graphs, and so does RL.", ("13", "hyperbfs", "rl")),
    ],
)
def test_what_a_paper_does_not_hold_is_missing(statement: str, lost: tuple[str, ...]) -> None:
    assert missing(statement, PAPER) == lost


SENTENCES = st.lists(
    st.one_of(
        st.sampled_from(
            "TopoPT mAP50 GPT-4 1,234 1,2 10⁵ .5 2.18× twenty-one 在ImageNet上 3D-Net A*, "
            "it’s ﬁne SAEs ½ x₁ 7B 5.84M. K's HSS".split()
        ),
        st.text(max_size=8),
    ),
    max_size=8,
).map(" ".join)


@given(SENTENCES)
def test_nothing_of_a_text_is_missing_from_itself(sentence: str) -> None:
    assert missing(sentence, sentence) == ()


@given(SENTENCES, SENTENCES)
def test_more_source_never_makes_more_missing(sentence: str, more: str) -> None:
    assert missing(sentence, f"{sentence} {more}") == ()
