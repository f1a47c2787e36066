"""A review with a concern for the authors and one that papers answer, and how runs are read."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from doubles.commands import FACT, reply
from doubles.endpoint import Request, Response
from doubles.service import Service

RELATED = "How does AlphaNet compare to prior work on graph noise by 12.5%?"

OWN = "The ablation of the image encoder is missing: please run more experiments."

REVIEW = f"""SUMMARY:
The paper is about graphs.

STRENGTHS:
Well written.

WEAKNESSES:
1. {OWN}

QUESTIONS:
2. {RELATED}
"""

GOOD = reply((FACT, [1]))

SUMMARY = re.compile(r"(\d+ items: .*); \d+\.\d s\n\Z")


def given_review(text: str = REVIEW, name: str = "review.md") -> Path:
    path = Path(name)
    path.write_text(text, encoding="utf-8")
    return path


def told(err: str) -> str:
    """The last line of standard error, without its time."""
    found = SUMMARY.fullmatch(err.splitlines(keepends=True)[-1])
    assert found is not None, err
    return found[1]


def judge(service: Service, yes: Any) -> None:
    """Let P(Yes) depend on what is asked."""
    usual = service.default
    assert callable(usual)

    def respond(request: Request) -> Response:
        if request.body.get("logprobs"):
            service.yes = yes(json.dumps(request.body))
        return usual(request)

    service.default = respond
