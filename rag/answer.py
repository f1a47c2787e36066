"""A question to an answer: retrieve, ask whether the papers say, write, check every statement."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from rag import prompts
from rag.config import Settings
from rag.errors import EndpointError
from rag.evidence import LIST_PAPERS, EvidenceSet, asks_for_list, select
from rag.llm import ChatModel, Message, Reply
from rag.retrieve import Retrieval, Retriever, checked
from rag.statements import Draft, StatementStream, schema
from rag.types import Answer, Paper, Statement, Usage
from rag.verify import Verifier, non_latin

# Below this P(Yes) to "does the evidence state the answer?" the papers do not answer. On the
# development questions (59 answerable, 8 not) P(Yes) tells the two apart with AUROC .99.
ANSWERABLE = 0.42

MOST_STATEMENTS = 4
MOST_LISTED = 8

StatementCallback = Callable[[Statement], None]


@dataclass(frozen=True, slots=True)
class Turn:
    """An earlier question of the conversation and its answer."""

    question: str
    answer: str


@dataclass(slots=True)
class _Trace:
    """What one answer costs, gathered on the way."""

    usage: Usage = field(default_factory=Usage)
    seconds: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @contextmanager
    def timed(self, stage: str) -> Any:
        start = time.perf_counter()
        try:
            yield
        finally:
            spent = time.perf_counter() - start
            self.seconds[stage] = self.seconds.get(stage, 0.0) + spent


class Answerer:
    """Answers questions with one retriever, one language model and one verifier."""

    def __init__(
        self, retriever: Retriever, verifier: Verifier, model: ChatModel, settings: Settings
    ) -> None:
        self._retriever = retriever
        self._verifier = verifier
        self._model = model
        self._settings = settings

    def answer(
        self,
        question: str,
        history: Sequence[Turn] = (),
        on_statement: StatementCallback | None = None,
    ) -> Answer:
        """Answer from the store's papers; `on_statement` gets each statement once it is checked.

        Raises:
            UsageError: the question is empty or too long.
            EndpointError: the language model did not answer.
        """
        started = time.perf_counter()
        question = checked(question)
        trace = _Trace()
        asked = self._standalone(question, history, trace)
        wants_list = asks_for_list(asked)
        with trace.timed("retrieve"):
            retrieval = self._retriever.retrieve(
                self._english(asked, trace), LIST_PAPERS if wants_list else None
            )
            evidence = select(retrieval, self._settings.answer, wants_list=wants_list)
        likely, statements = 0.0, []
        if evidence.sentences:
            base = self._messages(evidence, asked)
            with trace.timed("generate"):
                likely = self._answerable(base, trace)
            if likely >= ANSWERABLE:
                statements = self._write(base, evidence, trace, on_statement, wants_list)
        trace.seconds["total"] = time.perf_counter() - started
        return self._result(question, likely, statements, retrieval, trace)

    def _messages(self, evidence: EvidenceSet, question: str) -> list[Message]:
        """The part that the gate and the answer share, so that it is read only once."""
        shown = prompts.render("evidence", papers=evidence.for_prompt(), question=question)
        return [
            {"role": "system", "content": prompts.render("system")},
            {"role": "user", "content": shown},
        ]

    def _answerable(self, base: Sequence[Message], trace: _Trace) -> float:
        probability, usage = self._model.yes_probability(_ask(base, prompts.render("gate")))
        trace.usage += usage
        if probability is None:
            trace.notes.append("The endpoint could not say whether the papers answer; assumed so.")
            return ANSWERABLE
        return probability

    def _write(
        self,
        base: Sequence[Message],
        evidence: EvidenceSet,
        trace: _Trace,
        on_statement: StatementCallback | None,
        wants_list: bool,
    ) -> list[Statement]:
        most = MOST_LISTED if wants_list else MOST_STATEMENTS
        numbers = [sentence.number for sentence in evidence.sentences]
        stream = StatementStream(numbers)
        statements: list[Statement] = []

        def on_text(piece: str) -> None:
            for draft in stream.feed(piece):
                with trace.timed("verify"):
                    statement = self._check(draft, evidence, trace)
                if statement and statement.text not in {s.text for s in statements}:
                    statements.append(statement)
                    if on_statement:
                        on_statement(statement)

        before = trace.seconds.get("verify", 0.0)
        with trace.timed("generate"):
            reply = self._model.complete(
                _ask(base, prompts.render("answer", most=most, wants_list=wants_list)),
                max_tokens=self._settings.answer.max_answer_tokens,
                schema=schema(numbers, most),
                on_text=on_text,
            )
        trace.seconds["generate"] -= trace.seconds.get("verify", 0.0) - before
        trace.usage += reply.usage
        if not stream.understood:
            raise EndpointError(_no_statements(self._model.name, reply))
        if reply.truncated or reply.finish_reason == "length":
            trace.notes.append(
                "The language model's reply broke off; a last statement may be missing."
            )
        return statements

    def _check(self, draft: Draft, evidence: EvidenceSet, trace: _Trace) -> Statement | None:
        """Verify a draft; one that fails gives way to the sentence it cites, word for word."""
        if draft.unknown:
            cited = ", ".join(draft.unknown)
            trace.notes.append(f'The model cited {cited}, which it was not given: "{draft.text}"')
        statement = self._verifier.check(draft.text, _papers(draft, evidence))
        if statement.supported or not draft.evidence:
            return statement
        sentence = evidence.sentences[draft.evidence[0] - 1]
        cited = ", ".join(citation.paper_id for citation in statement.citations)
        trace.notes.append(
            f'Not supported by {cited}, whose own words are shown instead: "{draft.text}"'
        )
        return self._verifier.check(sentence.text, [sentence.paper])

    def _standalone(self, question: str, history: Sequence[Turn], trace: _Trace) -> str:
        if not history:
            return question
        with trace.timed("generate"):
            prompt = prompts.render("rewrite", history=history, question=question)
            return self._one_line(prompt, trace) or question

    def _english(self, question: str, trace: _Trace) -> str:
        """The question for the retriever, whose models read English."""
        if not non_latin(question):
            return question
        return self._one_line(prompts.render("translate", question=question), trace) or question

    def _one_line(self, prompt: str, trace: _Trace) -> str:
        reply = self._model.complete([{"role": "user", "content": prompt}], max_tokens=160)
        trace.usage += reply.usage
        return " ".join(reply.text.split())

    def _result(
        self,
        question: str,
        likely: float,
        statements: Sequence[Statement],
        retrieval: Retrieval,
        trace: _Trace,
    ) -> Answer:
        answered = any(statement.supported for statement in statements)
        shown = tuple(statements) if answered else ()
        share = sum(s.supported for s in shown) / len(shown) if shown else 1.0
        cited = {citation.paper_id for s in shown for citation in s.citations}
        papers = [h.paper for h in retrieval.hits if not answered or h.paper.id in cited]
        return Answer(
            question=question,
            answered=answered,
            confidence=round(likely * share, 4),
            statements=shown,
            papers=tuple(papers),
            model=self._model.name,
            usage=trace.usage,
            seconds={k: round(trace.seconds.get(k, 0.0), 3) for k in STAGES},
            notes=(*self._model.degraded, *trace.notes),
        )


STAGES = ("retrieve", "generate", "verify", "total")


def _ask(base: Sequence[Message], instruction: str) -> list[Message]:
    *before, last = base
    return [*before, {**last, "content": f"{last['content']}\n\n{instruction}"}]


def _no_statements(name: str, reply: Reply) -> str:
    """Why a reply holds no statement, not even an empty list of them."""
    if reply.finish_reason == "length":
        return (
            f"{name} used up its tokens before its first statement. Raise "
            "RAG_ANSWER_MAX_ANSWER_TOKENS, or choose a model that does not think aloud."
        )
    if reply.truncated:
        return f"The reply of {name} broke off before its first statement. Try again."
    return (
        f"{name} did not reply in the JSON that it was asked for. Choose a model or an endpoint "
        "that supports JSON schemas (RAG_LLM_MODEL, RAG_LLM_BASE_URL), or the bundled model."
    )


def _papers(draft: Draft, evidence: EvidenceSet) -> list[Paper]:
    papers = [evidence.paper(number) for number in draft.evidence]
    return list({paper.id: paper for paper in papers if paper}.values())
