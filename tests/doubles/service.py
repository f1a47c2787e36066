"""A scripted endpoint for all that `rag` asks: chat replies from a queue, vectors counted."""

from __future__ import annotations

import json
from collections import deque

from doubles.embedder import WordCountEmbedder
from doubles.endpoint import Request, Response, Script, ScriptedEndpoint, text

# As many as the prompts have: fewer would look like a prompt cut short.
USAGE = {"prompt_tokens": 400, "completion_tokens": 30}


class Service(ScriptedEndpoint):
    """`POST /embeddings` answers as `WordCountEmbedder`; chats take the next of `replies`.

    A chat that asks for log probabilities is the yes/no question: it gets P(Yes) = `yes`, and
    leaves the queue alone.
    """

    def __init__(self, *replies: Script | str, yes: float = 0.9) -> None:
        self.replies = deque(replies)
        self.yes = yes
        super().__init__(default=self._reply)

    @property
    def environ(self) -> dict[str, str]:
        """The settings that make `rag` use this service for both models."""
        return {
            "RAG_LLM_BASE_URL": self.base_url,
            "RAG_LLM_MODEL": "scripted",
            "RAG_LLM_MAX_RETRIES": "0",
            "RAG_EMBEDDING_BASE_URL": self.base_url,
            "RAG_EMBEDDING_MODEL": "word-counts",
        }

    def _reply(self, request: Request) -> Response:
        if request.path.endswith("/embeddings"):
            return _vectors(request.body["input"])
        if request.body.get("logprobs"):
            return text("Yes", probabilities={"Yes": self.yes, "No": 1 - self.yes}, usage=USAGE)
        reply = self.replies.popleft()
        if callable(reply):
            reply = reply(request)
        return text(reply, usage=USAGE) if isinstance(reply, str) else reply


def _vectors(texts: list[str]) -> Response:
    rows = WordCountEmbedder().queries(texts).tolist()
    data = [{"index": i, "embedding": row} for i, row in enumerate(rows)]
    return Response(body=json.dumps({"object": "list", "data": data}))
