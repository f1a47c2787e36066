"""A scripted endpoint whose answers depend on the prompt alone, as a model's at temperature 0."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from doubles.endpoint import Request, Response, error, text
from doubles.service import USAGE, Service

_QUESTION = re.compile(r"^Question: (.*)$", re.MULTILINE)
_SENTENCE = re.compile(r"^\[(\d+)\] (.*)$", re.MULTILINE)


class Reader(Service):
    """Quotes the sentence that shares most words with the question; P(Yes) is `yes` throughout.

    A question for which `fails` is true gets status 400. `asked` counts the gate's question by
    question: one for each answer begun. Every chat takes `delay_seconds`.
    """

    def __init__(
        self,
        fails: Callable[[str], bool] = lambda _: False,
        yes: float = 0.9,
        delay_seconds: float = 0.0,
    ) -> None:
        self.fails = fails
        self.asked: Counter[str] = Counter()
        self.delay_seconds = delay_seconds
        super().__init__(yes=yes)

    def _reply(self, request: Request) -> Response:
        if request.path.endswith("/embeddings"):
            return super()._reply(request)
        prompt = "\n".join(message["content"] for message in request.body["messages"])
        found = _QUESTION.search(prompt)
        question = found[1] if found else ""
        if request.body.get("logprobs"):
            self.asked[question] += bool(found)
            response = super()._reply(request)
        else:
            response = text(_quote(prompt, question), usage=USAGE)
        if found and self.fails(question):
            response = error(400, "no such luck")
        return replace(response, delay_seconds=self.delay_seconds)


def _quote(prompt: str, question: str) -> str:
    def shared(sentence: tuple[str, str]) -> int:
        return len(set(sentence[1].lower().split()) & set(question.lower().split()))

    number, sentence = max(_SENTENCE.findall(prompt), key=shared)
    return json.dumps({"statements": [{"text": sentence, "evidence": [int(number)]}]})
