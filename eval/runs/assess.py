"""A question to its line of results: the answer, and what its statements are worth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eval.questions.datasets import Question
from eval.runs.entailment import Entailment
from eval.runs.judge import ask, judge
from rag.batch.answering import Answering
from rag.batch.failures import explained, stops_all
from rag.batch.metered import Metered
from rag.chat_model import ChatModel
from rag.session import Search


class Assessor:
    """Makes the lines that `eval.items` documents; several threads may call `line` at a time.

    With `judged` a line of an answer has "judge": {"model", "support": [P(Yes) or null]} too, an
    entry for each statement: what the language model thinks of it, not what code can check.
    """

    def __init__(
        self, answering: Answering, search: Search, model: ChatModel, *, judged: bool = False
    ) -> None:
        self._answering = answering
        self._model = Metered(model)
        self._find = search.store.catalog.by_id
        self._entailment = Entailment(
            search.passages, self._find, lambda claim, source: ask(self._model, claim, source)[0]
        )
        self._judged = judged

    def line(self, question: Question, attempt: int) -> dict[str, Any]:
        """The result of a question.

        Raises:
            StoreError, ConfigError, EndpointDownError: further questions would fail alike.
        """
        line = self._answering.line(question.id, question.question, question.history, attempt)
        tally = self._model.begin()
        try:
            line |= self._assessed(line["answer"])
        except Exception as error:
            if stops_all(error):
                raise
            line |= {"answer": None, "entailment": [], "error": explained(error)}
        spent = line["spent"]
        return {
            "id": question.id,
            "kind": question.kind,
            **line,
            "spent": {
                "prompt_tokens": spent["prompt_tokens"] + tally.usage.prompt_tokens,
                "completion_tokens": spent["completion_tokens"] + tally.usage.completion_tokens,
            },
        }

    def _assessed(self, answer: Mapping[str, Any] | None) -> dict[str, Any]:
        statements = answer["statements"] if answer is not None else []
        assessed: dict[str, Any] = {"entailment": self._entailment.of(statements)}
        if self._judged and answer is not None:
            assessed["judge"] = judge(self._model, statements, self._find).to_json()
        return assessed
