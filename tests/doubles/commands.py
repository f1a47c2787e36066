"""What the tests of the command line share: three papers, and how a run is read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ALPHA = "AlphaNet lowers the graph noise by 12.5% on ImageNet. It needs 3 GPUs for a week."
BETA = "BetaNet folds a protein in 7 seconds. The reward is language and noise."
GAMMA = "GammaNet draws an image of a graph. It costs 40 cents and no noise."
FACT = "AlphaNet lowers the graph noise by 12.5% on ImageNet."
QUESTION = "By how much does AlphaNet lower the graph noise?"
RECORDS = (
    {"id": "alpha", "title": "AlphaNet", "abstract": ALPHA, "year": 2026},
    {"id": "beta", "abstract": BETA},
    {"id": "gamma", "title": "GammaNet: Images", "abstract": GAMMA, "authors": ["Ann", "Bo"]},
)
# Everything that could steer a terminal or pass unseen.
UNSEEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\U000e0000-\U000e007f]")


@dataclass(frozen=True, slots=True)
class Run:
    """What one command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Rag = Callable[..., Run]


def write(name: str, *records: object) -> Path:
    """A file of JSON lines in the working directory."""
    path = Path(name)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def reply(*statements: tuple[str, list[Any]]) -> str:
    """A model's reply: texts with the numbers of the sentences that they cite."""
    return json.dumps({"statements": [{"evidence": e, "text": t} for t, e in statements]})


def failed(ran: Run, code: int, message: str) -> None:
    """Check that a run said exactly this on stderr, and nothing on stdout."""
    assert (ran.code, ran.out, ran.err) == (code, "", message + "\n")
