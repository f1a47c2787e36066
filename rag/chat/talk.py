"""A conversation: its exchanges, the filter that is on, and the file that keeps them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from rag import filters
from rag.answer import TextCallback, Turn
from rag.chat.engine import Engine
from rag.chat.exchanges import Exchange, replay, to_record
from rag.chat.journal import SessionError
from rag.chat.sessions import Session, now
from rag.chat.stop import Stopper
from rag.errors import RagError, StoreError, UsageError
from rag.filters import Filter
from rag.followup import Mention
from rag.references import unknown
from rag.retrieve import checked
from rag.types import Answer, Paper, Statement, Usage

LOADING, READING = "Loading the language model", "Reading the papers"


@dataclass(frozen=True, slots=True)
class Listener:
    """Who wants to hear of an answer in the making."""

    on_statement: Callable[[Statement], None]
    on_question: TextCallback
    on_writing: TextCallback
    on_stage: TextCallback


class Conversation:
    """Asks questions in the light of the earlier ones; `warn` is told what cannot be kept."""

    def __init__(
        self, engine: Engine, session: Session, stopper: Stopper, warn: Callable[[str], None]
    ) -> None:
        self.engine = engine
        self.session = session
        self._past = replay(session.records)
        self.condition = self._past.condition
        self.skipped = self._past.skipped  # lines of the session that were not understood
        self.numbered: list[str] = []  # IDs of the papers listed last, by answer or search
        self._stopper = stopper
        self._warn = warn
        if self.exchanges:
            self.numbered = [paper.id for paper in self.exchanges[-1].shown_papers()]
        self._matching: tuple[Filter, str, frozenset[str]] | None = None

    @property
    def exchanges(self) -> list[Exchange]:
        """All that was asked, oldest first."""
        return self._past.exchanges

    @property
    def last(self) -> Exchange | None:
        """The latest exchange, forgotten or not."""
        return self.exchanges[-1] if self.exchanges else None

    def turns(self) -> list[Turn]:
        """What a follow-up may refer to, oldest first."""
        found = (exchange.turn() for exchange in self.exchanges[self._past.forgotten :])
        return [turn for turn in found if turn is not None]

    def usage(self) -> Usage:
        """Tokens of all questions of the session, also of those asked again, stopped or failed."""
        return self._past.spent

    def stoppable(self) -> AbstractContextManager[None]:
        """Where something is waited for: Ctrl-C raises KeyboardInterrupt within the block."""
        return self._stopper.stoppable()

    def among(self) -> frozenset[str] | None:
        """IDs of the papers that the filter lets through; None where it is off."""
        if not self.condition:
            return None
        store = self.engine.search().store
        state = store.catalog.state
        if self._matching is None or self._matching[:2] != (self.condition, state):
            found = filters.matching(self.condition, store.papers())
            self._matching = (self.condition, state, found)
        return self._matching[2]

    def narrow(self, condition: Filter) -> tuple[int, int, int]:
        """Put a filter on; how many papers remain, of how many, and how many it has no year of.

        The last is 0 where no year is asked for. Ctrl-C leaves the filter before.
        """
        before, self.condition = self.condition, condition
        try:
            with self.stoppable():
                among, (total, _) = self.among(), self.engine.search().store.count()
                undated = total - len(self._dated()) if condition.years else 0
        except (RagError, KeyboardInterrupt):
            self.condition = before
            raise
        self._keep({"type": "filter", "filter": str(condition)})
        return (total if among is None else len(among)), total, undated

    def _dated(self) -> frozenset[str]:
        """IDs of the papers that carry a year."""
        return filters.matching(Filter(years=((0, 9999),)), self.engine.search().store.papers())

    def clear(self) -> None:
        """Forget the conversation so far; the session keeps it."""
        self._past.forgotten = len(self.exchanges)
        self._keep({"type": "clear"})

    def ask(self, question: str, listener: Listener, *, retry: bool = False) -> Exchange:
        """Ask, and keep what came of it: an answer, an error, or what there was when Ctrl-C came.

        With `retry` the last exchange gives way to this one, a whole answer to another alone.

        Raises:
            UsageError: the question cannot be asked; nothing is kept.
        """
        question = checked(question)
        condition = str(self.condition)
        asked = {"question": question, "filter": condition, "retry": retry}
        self._keep({"type": "question", **asked})
        exchange = self._answered(question, listener)
        exchange = replace(
            exchange, at=now(), condition=condition, retry=retry, spent=self.engine.spent()
        )
        self._past.add(exchange)
        self.numbered = [paper.id for paper in exchange.shown_papers()] or self.numbered
        self._keep(to_record(exchange))
        return exchange

    def _answered(self, question: str, listener: Listener) -> Exchange:
        heard = _Heard(listener)
        try:
            with self.stoppable():
                answer = self._answer(question, heard)
            return Exchange(question, answer)
        except KeyboardInterrupt:
            kept = self._stopped(question, heard)
            return Exchange(question, kept, stopped=True, unfinished=heard.text)
        except StoreError as error:
            self.engine.forget_search()
            return Exchange(question, error=str(error))
        except RagError as error:
            return Exchange(question, error=str(error))

    def _answer(self, question: str, heard: _Heard) -> Answer:
        among = self.among()
        if among is not None and not among:
            raise UsageError(
                f"No paper is left by the filter {self.condition}. Change it, or clear it: "
                "/filter clear"
            )
        turns = self.turns()
        if said := unknown(question, turns, len(self.numbered), self._mention):
            raise UsageError(said)
        answerer = self.engine.answerer()
        heard.stage(READING)
        return answerer.answer(
            question,
            turns,
            heard.statement,
            among=among,
            on_question=heard.question,
            on_writing=heard.writing,
        )

    def _mention(self, paper_id: str) -> Mention | None:
        paper = self.engine.search().store.catalog.by_id(paper_id)
        return Mention(paper.id, paper.title) if paper else None

    def _stopped(self, question: str, heard: _Heard) -> Answer | None:
        """The statements that were checked before Ctrl-C came."""
        if not heard.statements:
            return None
        cited = {c.paper_id: None for s in heard.statements for c in s.citations}
        store, model = self.engine.search().store, self.engine.model()
        found = (store.catalog.by_id(paper_id) for paper_id in cited)
        papers: tuple[Paper, ...] = tuple(paper for paper in found if paper)
        return Answer(
            question=question,
            answered=any(statement.supported for statement in heard.statements),
            confidence=0.0,
            statements=tuple(heard.statements),
            papers=papers,
            model=model.name,
            usage=Usage(),
            seconds={},
            asked=heard.asked,
        )

    def _keep(self, record: Mapping[str, Any]) -> None:
        try:
            self.session.append(record)
        except SessionError as error:
            self._warn(str(error))


class _Heard:
    """Passes on what a listener is told, and remembers it for when the answer is stopped."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self.statements: list[Statement] = []
        self.asked = ""
        self.text = ""

    def statement(self, statement: Statement) -> None:
        self.statements.append(statement)
        self._listener.on_statement(statement)

    def question(self, text: str) -> None:
        self.asked = text
        self._listener.on_question(text)

    def stage(self, label: str) -> None:
        self._listener.on_stage(label)

    def writing(self, text: str) -> None:
        self.text = text
        self._listener.on_writing(text)
