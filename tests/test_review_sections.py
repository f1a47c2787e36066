from __future__ import annotations

import pytest

from rag.review.sections import find_sections


def split(text: str) -> list[tuple[str, str, str]]:
    found = find_sections(text)
    return [(s.name, s.role.value, text[s.start : s.end].strip()) for s in found]


@pytest.mark.parametrize(
    "heading",
    [
        "WEAKNESSES:\n",
        "## Weaknesses\n",
        "#### **Weaknesses:**\n",
        "**Weaknesses**\n",
        "__Main Weaknesses__:\n",
        "Weaknesses\n==========\n",
        "Weaknesses\n----------\n",
        "Weaknesses\n",
        "Weaknesses: ",
        "**Weaknesses:** ",
        "Cons:\n",
        "Reasons to Reject:\n",
        "Negative aspects:\n",
        "Summary of weaknesses:\n",
        "2. Weaknesses:\n",
        "- **Weaknesses**: ",
    ],
)
def test_headings_of_weaknesses(heading: str) -> None:
    assert split(f"{heading}It is slow.") == [("weaknesses", "concerns", "It is slow.")]


@pytest.mark.parametrize(
    ("heading", "name", "role"),
    [
        ("Summary Of The Paper", "summary", "summary"),
        ("Strengths", "strengths", "praise"),
        ("Reasons To Accept", "strengths", "praise"),
        ("Strengths And Weaknesses", "strengths and weaknesses", "mixed"),
        ("Questions For Authors", "questions", "questions"),
        ("Minor Comments", "suggestions", "questions"),
        ("Limitations And Societal Impact", "limitations", "limits"),
        ("Ethics Concerns", "ethics", "limits"),
        ("Clarity, Quality, Novelty And Reproducibility",
         "clarity quality novelty and reproducibility", "mixed"),
        ("Main Review", "comments", "mixed"),
        ("Summary Of The Review", "overall", "mixed"),
        ("References", "references", "none"),
    ],
)  # fmt: skip
def test_names_of_usual_forms(heading: str, name: str, role: str) -> None:
    assert split(f"**{heading}:**\nText.") == [(name, role, "Text.")]
    assert split(f"## {heading}\n\nText.\n") == [(name, role, "Text.")]


def test_a_whole_form() -> None:
    assert split(
        "# Review of: Sorting\n\nSummary: It sorts.\n\nStrengths:\nFast.\n\nWeaknesses:\n"
        "Unstable.\n\nSoundness: 3 good\nRating: 5\nConfidence: 4: sure\n"
    ) == [
        ("summary", "summary", "It sorts."),
        ("strengths", "praise", "Fast."),
        ("weaknesses", "concerns", "Unstable."),
    ]


def test_subheadings_part_but_keep_the_section() -> None:
    assert split("WEAKNESSES:\n### Clarity\nA.\n\nNovelty\n-------\nB.\n**Proofs**\nC.") == [
        ("weaknesses", "concerns", "A."),
        ("weaknesses", "concerns", "B."),
        ("weaknesses", "concerns", "C."),
    ]
    assert split("## Weaknesses\nA.\n## Clarity\nB.") == [
        ("weaknesses", "concerns", "A."),
        ("clarity", "mixed", "B."),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "- Presentation: the figures are small.",
        "1. Limitations: none are discussed.",
        "The main questions: why, and how.",
        "**The method is slow.**",
        "Weaknesses are few and small.",
    ],
)
def test_remarks_are_no_headings(line: str) -> None:
    assert split(f"Weaknesses:\n{line}") == [("weaknesses", "concerns", line)]


def test_text_without_headings() -> None:
    assert split("It is slow.") == [("", "mixed", "It is slow.")]
    assert split(" \n ") == []
