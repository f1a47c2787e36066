"""A question to an answer: retrieve, ask whether the papers say, write, check every statement."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from rag import prompts
from rag.asking import Asked, Interpreter
from rag.chat_model import ChatModel, Message, Reply
from rag.checking import DraftChecker
from rag.config import Settings
from rag.errors import EndpointError
from rag.evidence import EvidenceSet, select
from rag.followup import Turn
from rag.listing import CANDIDATES, asks_for_list, candidates
from rag.repetition import parted, repeats
from rag.retrieve import Retrieval, Retriever, checked
from rag.statements import StatementStream, schema
from rag.types import Answer, Statement, Usage
from rag.verify import Verifier

__all__ = ["ANSWERABLE", "STAGES", "Answerer", "StatementCallback", "TextCallback", "Turn"]

# Below this P(Yes) to "does the evidence state the answer?" the papers do not answer. On the
# development questions (59 answerable, 8 not) P(Yes) tells the two apart with AUROC .99.
ANSWERABLE = 0.42

MOST_STATEMENTS = 3

# Longest translation of a statement, in tokens.
LONGEST_TRANSLATION = 240

StatementCallback = Callable[[Statement], None]
TextCallback = Callable[[str], None]


@dataclass(slots=True)
class _Trace:
    """One answer in the making: its statements, and what they cost."""

    on_statement: StatementCallback | None = None
    on_writing: TextCallback | None = None
    language: str | None = None
    question: str = ""
    statements: list[Statement] = field(default_factory=list)
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

    def state(self, statement: Statement) -> None:
        """Keep a checked statement, unless it was said before; pass it on if it is supported.

        What is not supported is passed on at the end, and only beside something that is.
        """
        if any(repeats(statement, known) for known in self.statements):
            return
        self.statements.append(statement)
        if statement.supported and self.on_statement and self.language is None:
            self.on_statement(statement)

    def finish(self) -> None:
        """Pass on what was held back, where the question is answered at all."""
        if self.on_statement and any(s.supported for s in self.statements):
            for statement in self.statements:
                if not statement.supported or self.language is not None:
                    self.on_statement(statement)


class Answerer:
    """Answers questions with one retriever, one language model and one verifier."""

    def __init__(
        self, retriever: Retriever, verifier: Verifier, model: ChatModel, settings: Settings
    ) -> None:
        self._retriever = retriever
        self._verifier = verifier
        self._checker = DraftChecker(verifier)
        self._model = model
        self._settings = settings
        self._interpreter = Interpreter(model, retriever.paper, settings)

    def answer(  # noqa: PLR0913 - what is asked, and who wants to hear of what
        self,
        question: str,
        history: Sequence[Turn] = (),
        on_statement: StatementCallback | None = None,
        *,
        among: Collection[str] | None = None,
        on_question: TextCallback | None = None,
        on_writing: TextCallback | None = None,
    ) -> Answer:
        """Answer from the store's papers; `on_statement` gets each statement once it is checked.

        Only papers `among` these IDs are found, where they are given. `on_question` is told the
        question as it was understood, where that differs; `on_writing` the statement that is being
        written, as far as it goes: not checked yet, and not to be taken for a fact.

        Raises:
            UsageError: the question is empty or too long.
            EndpointError: the language model did not answer.
        """
        started = time.perf_counter()
        question = checked(question)
        trace = _Trace(on_statement, on_writing)
        with trace.timed("generate"):
            asked = self._interpreter.read(question, history)
        trace.usage += asked.usage
        trace.language, trace.question = asked.language, asked.text
        understood = asked.shown if asked.shown != question else ""
        if understood and on_question:
            on_question(understood)
        wants_list = asks_for_list(asked.text)
        with trace.timed("retrieve"):
            retrieval = self._retrieve(asked, CANDIDATES if wants_list else None, among)
        likely = (self._list if wants_list else self._explain)(asked.text, retrieval, trace)
        self._translate(asked, question, trace)
        trace.finish()
        trace.seconds["total"] = time.perf_counter() - started
        return self._result(question, understood, likely, retrieval, trace)

    def _retrieve(
        self, asked: Asked, papers: int | None, among: Collection[str] | None
    ) -> Retrieval:
        """The papers that the question may be answered from, those it names first."""
        if asked.among:
            pointed = {paper.paper_id for paper in asked.among}
            among = pointed if among is None else pointed & set(among)
        named = [p.paper_id for p in asked.named if self._retriever.paper(p.paper_id)]
        return self._retriever.retrieve(asked.text, papers, among=among, named=named)

    def _list(self, question: str, retrieval: Retrieval, trace: _Trace) -> float:
        """A statement for each paper that fits; returns how likely the best one does."""
        likely = 0.0
        judged = candidates(question, retrieval, self._model)
        while True:
            with trace.timed("generate"):
                candidate, usage = next(judged, (None, Usage()))
            if candidate is None:
                return likely
            trace.usage += usage
            likely = max(likely, candidate.likely)
            if candidate.fits:
                with trace.timed("verify"):
                    statement = self._verifier.check(candidate.statement, [candidate.paper])
                trace.state(statement)

    def _explain(self, question: str, retrieval: Retrieval, trace: _Trace) -> float:
        """Statements that answer the question; returns how likely the papers do."""
        evidence = select(retrieval, self._settings.answer)
        if not evidence.sentences:
            return 0.0
        told, asked = parted(question)
        base = self._messages(evidence, asked, told)
        with trace.timed("generate"):
            likely = self._answerable(base, trace)
        if likely >= ANSWERABLE:
            self._write(base, evidence, trace, told)
            if told and not trace.statements:  # all it wrote were the reader's words
                self._write(self._messages(evidence, asked), evidence, trace)
        return likely

    def _messages(self, evidence: EvidenceSet, question: str, told: str = "") -> list[Message]:
        """The part that the gate and the answer share, so that it is read only once."""
        papers = evidence.for_prompt()
        shown = prompts.render("evidence", papers=papers, question=question, told=told)
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
        self, base: Sequence[Message], evidence: EvidenceSet, trace: _Trace, told: str = ""
    ) -> None:
        numbers = [sentence.number for sentence in evidence.sentences]
        stream = StatementStream(numbers)
        checking = 0.0

        def on_text(piece: str) -> None:
            nonlocal checking
            start = time.perf_counter()
            for draft in stream.feed(piece):
                with trace.timed("verify"):
                    statement = self._checker.check(draft, evidence, trace.question, trace.notes)
                if statement is not None:
                    trace.state(statement)
            if trace.on_writing:
                trace.on_writing(stream.writing)
            checking += time.perf_counter() - start

        with trace.timed("generate"):
            reply = self._model.complete(
                _ask(base, prompts.render("answer", most=MOST_STATEMENTS, told=told)),
                max_tokens=self._settings.answer.max_answer_tokens,
                schema=schema(numbers, MOST_STATEMENTS),
                on_text=on_text,
            )
        trace.seconds["generate"] -= checking
        trace.usage += reply.usage
        if not stream.understood:
            raise EndpointError(_no_statements(self._model.name, reply))
        if reply.truncated:
            trace.notes.append("The model's reply broke off; a last statement may be missing.")

    def _translate(self, asked: Asked, question: str, trace: _Trace) -> None:
        """Put the statements into the language of the question, where they then say the same."""
        if asked.language is None:
            return
        for place, statement in enumerate(trace.statements):
            if not statement.supported:
                continue
            with trace.timed("generate"):
                prompt = prompts.render(
                    "answer_in", language=asked.language, question=question, text=statement.text
                )
                message = {"role": "user", "content": prompt}
                reply = self._model.complete([message], max_tokens=LONGEST_TRANSLATION)
            trace.usage += reply.usage
            with trace.timed("verify"):
                translated = None
                if not reply.truncated:
                    translated = self._verifier.translated(statement, " ".join(reply.text.split()))
            if translated is not None:
                trace.statements[place] = translated
            else:
                trace.notes.append(f'No sound translation was found for: "{statement.text}"')

    def _result(
        self, question: str, asked: str, likely: float, retrieval: Retrieval, trace: _Trace
    ) -> Answer:
        statements = trace.statements
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
            retrieved=retrieval.ranking,
            asked=asked,
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
