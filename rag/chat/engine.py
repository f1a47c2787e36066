"""The store and the language model behind a chat: opened when they are needed, again after harm."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, Generic, TypeVar

from rag.answer import Answerer
from rag.batch.metered import Metered
from rag.chat_model import ChatModel, Message, Reply
from rag.config import ServerAddress, Settings
from rag.errors import RagError, StoreError
from rag.llm import open_chat
from rag.session import FileProgress, Search, answerer_for, open_search
from rag.store import fingerprint_of
from rag.types import Usage

# Longest wait for llama.cpp to stop; the process ends without it then.
CLOSING_SECONDS = 3.0

_T = TypeVar("_T")


class _Opening(Generic[_T]):
    """Something opened once, in a thread, so that Ctrl-C reaches whoever waits for it."""

    def __init__(self, opener: Callable[[], AbstractContextManager[_T]]) -> None:
        self._opener = opener
        # Not the thread's own `join`: one that Ctrl-C interrupts takes it for ended in Python 3.11.
        self._done: threading.Event | None = None
        self._manager: AbstractContextManager[_T] | None = None
        self._value: _T | None = None
        self._error: BaseException | None = None

    @property
    def ready(self) -> bool:
        return self._value is not None

    def settle(self, seconds: float) -> bool:
        """Wait for the thread; whether it is done."""
        return self._done is None or self._done.wait(seconds)

    def begin(self) -> None:
        if self._done is None:
            self._done = threading.Event()
            threading.Thread(target=self._open, args=(self._done,), daemon=True).start()

    def get(self) -> _T:
        """What was opened; what it raised, once: the next `get` tries again."""
        self.begin()
        assert self._done is not None
        self._done.wait()
        if self._value is None:
            error, self._error, self._done = self._error, None, None
            raise error or RuntimeError("nothing was opened")
        return self._value

    def close(self) -> None:
        manager, self._manager, self._value, self._done = self._manager, None, None, None
        if manager is not None:
            manager.__exit__(None, None, None)

    def _open(self, done: threading.Event) -> None:
        try:
            manager = self._opener()
            self._value = manager.__enter__()
            self._manager = manager
        except BaseException as error:
            self._error = error
        finally:
            done.set()


class Meter(Metered):
    """Counts the tokens of a model, also of a reply that Ctrl-C stopped."""

    def __init__(self, model: ChatModel) -> None:
        super().__init__(model)
        self._spent = self.begin()

    def taken(self) -> Usage:
        """What was counted since the last call, in the thread that made the meter."""
        before, self._spent = self._spent, self.begin()
        return before.usage

    def complete(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        schema: dict[str, Any] | None = None,
        on_text: Callable[[str], None] | None = None,
    ) -> Reply:
        """As the model's."""
        written: list[str] = []

        def hear(piece: str) -> None:
            assert on_text is not None
            written.append(piece)
            on_text(piece)

        heard = None if on_text is None else hear  # no stream where nobody listens
        try:
            return super().complete(messages, max_tokens=max_tokens, schema=schema, on_text=heard)
        except KeyboardInterrupt:
            self._count(messages, Usage(), "".join(written))
            raise


class Engine:
    """What answers. The search opens in the background, the model with the first question.

    llama.cpp keeps Python from running while it loads a model, some 3 s from a warm disk: in the
    background that would freeze the line that is being typed.
    """

    def __init__(self, settings: Settings, progress: FileProgress | None = None) -> None:
        self.settings = settings
        self._progress = progress
        self._search: _Opening[Search] = _Opening(self._open_search)
        self._model: _Opening[ChatModel] = self._new_model()
        self._file: tuple[int, int] | None = None
        self._answerer: tuple[Search, ChatModel, Answerer] | None = None
        self._meter: Meter | None = None

    def begin(self) -> None:
        """Open the search in the background."""
        self._search.begin()

    @property
    def model_ready(self) -> bool:
        """Whether the language model is open already."""
        return self._model.ready

    def search(self) -> Search:
        """The open store with its retriever, as it is on the disk now.

        Raises:
            StoreError, ModelError, ConfigError: it cannot be opened, or something else built it.
        """
        if self._search.ready and self._identity() != self._file:
            self.forget_search()  # another store lies at its place
        found = self._search.get()
        try:
            found.store.require(fingerprint_of(found.passages.embedder))
        except StoreError:
            self.forget_search()
            raise
        return found

    def model(self) -> ChatModel:
        """The open language model.

        Raises:
            ModelError, ConfigError, EndpointError: it cannot be opened.
        """
        return self._model.get()

    def answerer(self) -> Answerer:
        """What answers questions now."""
        search, model = self.search(), self.model()
        if self._answerer is None or self._answerer[:2] != (search, model):
            self._meter = Meter(model)
            self._answerer = (search, model, answerer_for(search, self._meter, self.settings))
        return self._answerer[2]

    def spent(self) -> Usage:
        """Tokens that this thread's questions cost since the last call."""
        return self._meter.taken() if self._meter else Usage()

    def paper_ids(self) -> list[str]:
        """IDs of all papers, as they are now."""
        return self.search().store.catalog.ids()

    def forget_search(self) -> None:
        """Close the store; the next question opens it anew."""
        self._file = self._answerer = None
        with suppress(RagError):
            self._search.close()

    def choose_model(self, name: str) -> None:
        """Answer with another model of the same endpoint from now on."""
        llm = self.settings.llm.model_copy(update={"model": name})
        self.settings = self.settings.model_copy(update={"llm": llm})
        self._answerer = None
        self._model.close()
        self._model = self._new_model()

    def close(self) -> bool:
        """Release everything; whether that is done, or something is still at work."""
        if not self._search.settle(CLOSING_SECONDS) or not self._model.settle(CLOSING_SECONDS):
            return False
        closing = threading.Thread(target=self._close, daemon=True)
        closing.start()
        closing.join(CLOSING_SECONDS)
        return not closing.is_alive()

    def _close(self) -> None:
        self._answerer = None
        self._model.close()
        self.forget_search()

    def _new_model(self) -> _Opening[ChatModel]:
        return _Opening(lambda: open_chat(self.settings, self._progress))

    def _open_search(self) -> AbstractContextManager[Search]:
        # Before it is opened: another store that takes its place meanwhile is found out.
        self._file = self._identity()
        return open_search(self.settings)

    def _identity(self) -> tuple[int, int] | None:
        """What tells the store's file from another of its name; None where there is none."""
        store = self.settings.store
        if isinstance(store, ServerAddress):  # which follows its server by itself
            return None
        try:
            found = (store / "papers.sqlite").stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino
