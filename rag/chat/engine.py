"""The store and the language model behind a chat: opened when they are needed, again after harm."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import Generic, TypeVar

from rag.answer import Answerer
from rag.chat_model import ChatModel
from rag.config import ServerAddress, Settings
from rag.errors import RagError, StoreError
from rag.llm import open_chat
from rag.session import FileProgress, Search, answerer_for, open_search
from rag.store import fingerprint_of

# Longest wait for llama.cpp to stop; the process ends without it then.
CLOSING_SECONDS = 3.0

_T = TypeVar("_T")


class _Opening(Generic[_T]):
    """Something opened once, in a thread, so that Ctrl-C reaches whoever waits for it."""

    def __init__(self, opener: Callable[[], AbstractContextManager[_T]]) -> None:
        self._opener = opener
        self._thread: threading.Thread | None = None
        self._manager: AbstractContextManager[_T] | None = None
        self._value: _T | None = None
        self._error: BaseException | None = None

    @property
    def ready(self) -> bool:
        return self._value is not None

    def settle(self, seconds: float) -> bool:
        """Wait for the thread; whether it is done."""
        if self._thread is not None:
            self._thread.join(seconds)
        return self._thread is None or not self._thread.is_alive()

    def begin(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._open, daemon=True)
            self._thread.start()

    def get(self) -> _T:
        """What was opened; what it raised, once: the next `get` tries again."""
        self.begin()
        assert self._thread is not None
        self._thread.join()
        if self._value is None:
            error, self._error, self._thread = self._error, None, None
            raise error or RuntimeError("nothing was opened")
        return self._value

    def close(self) -> None:
        manager, self._manager, self._value, self._thread = self._manager, None, None, None
        if manager is not None:
            manager.__exit__(None, None, None)

    def _open(self) -> None:
        try:
            manager = self._opener()
            self._value = manager.__enter__()
            self._manager = manager
        except BaseException as error:
            self._error = error


class Engine:
    """What answers. The search opens in the background, the model with the first question.

    llama.cpp keeps Python from running while it loads a model, some 3 s from a warm disk: in the
    background that would freeze the line that is being typed.
    """

    def __init__(self, settings: Settings, progress: FileProgress | None = None) -> None:
        self.settings = settings
        self._progress = progress
        self._search: _Opening[Search] = _Opening(lambda: open_search(self.settings))
        self._model: _Opening[ChatModel] = self._new_model()
        self._file: tuple[int, int] | None = None
        self._answerer: tuple[Search, ChatModel, Answerer] | None = None

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
        self._file = self._file or self._identity()
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
            self._answerer = (search, model, answerer_for(search, model, self.settings))
        return self._answerer[2]

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
