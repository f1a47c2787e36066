"""Everything a question needs, opened in the right order and closed again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rag import prompts
from rag.answer import Answerer
from rag.config import Settings
from rag.embed import open_embedder
from rag.llm import ChatModel, open_chat
from rag.passages import Passages
from rag.retrieve import Retriever
from rag.store import Store, fingerprint_of, open_store
from rag.verify import Judge, Verifier

# (bytes done, bytes in all) while the language model's file is put together.
FileProgress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Search:
    """An open store with its retriever."""

    store: Store
    retriever: Retriever
    passages: Passages


@contextmanager
def open_search(settings: Settings) -> Iterator[Search]:
    """The store of the settings, ready to be searched; no language model is loaded.

    Raises:
        StoreError, ModelError, ConfigError: see `open_store` and `open_embedder`.
    """
    # The store first: that there is none is the commoner mistake, and the quicker answer.
    with open_store(settings.store, None) as store:
        embedder = open_embedder(settings)
        store.require(fingerprint_of(embedder))
        passages = Passages(embedder)
        yield Search(store, Retriever(store, embedder, passages, settings.retrieval), passages)


@contextmanager
def open_answerer(
    settings: Settings, progress: FileProgress | None = None, slots: int = 1
) -> Iterator[Answerer]:
    """An answerer over the store and the language model of the settings.

    With the model of this machine, `slots` questions can be answered at a time.

    Raises:
        StoreError, ModelError, ConfigError, EndpointError: what is missing, and what to do.
    """
    with open_search(settings) as search, open_chat(settings, progress, slots) as model:
        yield answerer_for(search, model, settings)


def answerer_for(search: Search, model: ChatModel, settings: Settings) -> Answerer:
    """An answerer over what is already open."""
    verifier = Verifier(search.passages, _judge(model))
    return Answerer(search.retriever, verifier, model, settings)


def _judge(model: ChatModel) -> Judge:
    def judge(claim: str, source: str) -> float | None:
        prompt = prompts.render("judge", claim=claim, source=source)
        return model.yes_probability([{"role": "user", "content": prompt}])[0]

    return judge
