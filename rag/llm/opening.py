"""The chat model that the settings name: an endpoint, or a model of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from rag.chat_model import ChatModel
from rag.config import Settings, api_key
from rag.errors import ConfigError
from rag.llm import refusals
from rag.llm.local import LocalServer
from rag.llm.model_files import Progress, language_model_file
from rag.llm.openai_chat import OpenAIChat


@contextmanager
def open_chat(
    settings: Settings, progress: Progress | None = None, slots: int = 1
) -> Iterator[ChatModel]:
    """The configured endpoint, or the model of this machine, started here and stopped at the end.

    The model of this machine answers up to `slots` requests at a time; an endpoint decides itself.

    Raises:
        ConfigError: settings that contradict each other, or a model left open among several.
        ModelError: the model of this machine is missing or cannot be started.
        EndpointError: the endpoint cannot be asked for its models.
    """
    llm = settings.llm
    if llm.base_url is not None and llm.model_path is not None:
        raise ConfigError(
            "RAG_LLM_BASE_URL and RAG_LLM_MODEL_PATH are both set: unset the one not meant."
        )
    seed = settings.answer.seed
    if llm.base_url is not None:
        key = api_key("llm", llm.base_url)
        with closing(OpenAIChat(llm.base_url, llm.model or "", key, llm, seed)) as chat:
            chat.name = chat.name or _only_model(chat, llm.base_url)
            yield chat
        return
    path = language_model_file(settings, progress)
    with closing(LocalServer(path, llm.context_tokens, slots)) as server:
        local = OpenAIChat(server.base_url, server.model_name, server.api_key, llm, seed)
        with closing(local) as chat:
            yield chat


def _only_model(chat: OpenAIChat, base_url: str) -> str:
    names = chat.models()
    if len(names) == 1:
        return names[0]
    offered = f" It offers: {refusals.listing(names)}." if names else " It lists none."
    raise ConfigError(f"Set RAG_LLM_MODEL to the model to use at {base_url}.{offered}")
