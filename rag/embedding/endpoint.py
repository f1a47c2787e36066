"""An OpenAI-compatible embeddings endpoint: POST {base_url}/embeddings."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from pydantic import SecretStr

from rag.config import EmbeddingSettings
from rag.embedding.pooling import embed_in_full
from rag.errors import ConfigError, EndpointError
from rag.http import LONGEST_PAUSE_SECONDS, excerpt, is_sendable, is_this_machine, retry_after

if TYPE_CHECKING:
    import httpx

# Small enough for servers that refuse big requests, large enough to hide the round trip.
BATCH = 64
ATTEMPTS = 4

# An endpoint does not show its tokenizer. English takes 4-5 bytes a token, LaTeX-ridden text and
# other scripts about 3: counting 3 overestimates, and a window is cut early rather than truncated.
BYTES_PER_TOKEN = 3


class EndpointEmbedder:
    """Vectors from a server. The key is sent to that server alone and appears in no message.

    Every method that embeds raises EndpointError where the server cannot be reached, refuses, or
    answers what is not one finite vector of one dimension for each text.
    """

    def __init__(
        self,
        settings: EmbeddingSettings,
        key: SecretStr | None = None,
        *,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        import httpx

        base_url = settings.base_url or ""
        self.max_tokens = settings.max_tokens
        # Not the address: the same model behind another address gives the same vectors.
        self.identity = f"endpoint:{settings.model}@{settings.max_tokens}"
        self._model = settings.model
        self._key = key
        self._url = f"{base_url}/embeddings"
        self._sleep = sleep
        self._timeout = settings.timeout_seconds
        headers = _authorization(key) if key else {}
        self._client = httpx.Client(
            headers=headers,
            timeout=self._timeout,
            transport=transport,
            # A proxy from the environment must not see what is meant for this machine.
            trust_env=not is_this_machine(base_url),
        )

    def count_tokens(self, text: str) -> int:
        """An estimate on the high side: a third of the UTF-8 bytes, plus two special tokens."""
        return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN) + 2

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, shape (n, d)."""
        return embed_in_full(texts, self._encode, lambda t: self.count_tokens(t) <= self.max_tokens)

    def queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, shape (n, d)."""
        return self.documents(texts)

    def _encode(self, texts: list[str]) -> NDArray[np.float32]:
        parts = [self._request(texts[i : i + BATCH]) for i in range(0, len(texts), BATCH)]
        if len({part.shape[1] for part in parts}) > 1:
            raise EndpointError(
                self._message("gave vectors of different lengths", "Check its model.")
            )
        return np.concatenate(parts)

    def _request(self, texts: list[str]) -> NDArray[np.float32]:
        for attempt in range(ATTEMPTS):
            response, problem = self._post(texts)
            if response is not None and not _worth_retrying(response):
                return self._vectors(response, len(texts))
            if attempt + 1 < ATTEMPTS:
                self._sleep(_pause(response, attempt))
        if response is not None:
            return self._vectors(response, len(texts))
        raise EndpointError(problem)

    def _post(self, texts: list[str]) -> tuple[httpx.Response | None, str]:
        import httpx

        body = {"model": self._model, "input": texts, "encoding_format": "float"}
        try:
            return self._client.post(self._url, json=body), ""
        except httpx.TimeoutException:
            advice = "Raise RAG_EMBEDDING_TIMEOUT_SECONDS or check the server, and try again."
            return None, self._message(f"did not answer within {self._timeout:g} s", advice)
        except httpx.HTTPError as error:
            advice = "Start the server or correct RAG_EMBEDDING_BASE_URL."
            return None, self._message(f"cannot be reached ({self._quoted(str(error))})", advice)

    def _vectors(self, response: httpx.Response, expected: int) -> NDArray[np.float32]:
        self._raise_for_status(response)
        try:
            items = sorted(response.json()["data"], key=lambda item: item["index"])
            vectors = np.array([item["embedding"] for item in items], dtype=np.float32)
        except (ValueError, KeyError, TypeError) as error:
            raise EndpointError(
                self._message(
                    "did not answer with embeddings (an HTML page, or another format)",
                    "RAG_EMBEDDING_BASE_URL is the address before /embeddings, often .../v1.",
                )
            ) from error
        if [item["index"] for item in items] != list(range(expected)) or vectors.ndim != 2:
            raise EndpointError(
                self._message(
                    f"gave not one vector for each of {expected} texts", "Check the server."
                )
            )
        if not np.isfinite(vectors).all() or not vectors.any(axis=1).all():
            raise EndpointError(
                self._message("gave a vector that is empty or not a number", "Check its model.")
            )
        return vectors

    def _raise_for_status(self, response: httpx.Response) -> None:
        if response.is_success:
            return
        advice = {
            401: "Set RAG_EMBEDDING_API_KEY to a valid key.",
            403: "Set RAG_EMBEDDING_API_KEY to a key with access to this model.",
            404: "Correct RAG_EMBEDDING_BASE_URL (often ending in /v1) or RAG_EMBEDDING_MODEL.",
            429: "The limit or the quota is used up: wait or raise it, then run the command again; "
            "what is stored is not embedded twice.",
        }.get(response.status_code, "Check RAG_EMBEDDING_MODEL and the server.")
        reason = self._quoted(response.text)
        raise EndpointError(self._message(f"answered {response.status_code}: {reason}", advice))

    def _message(self, what: str, advice: str) -> str:
        return f"The embeddings endpoint {self._url} (model {self._model!r}) {what}. {advice}"

    def _quoted(self, text: str) -> str:
        return excerpt(text, self._key.get_secret_value() if self._key else None)


def _authorization(key: SecretStr) -> dict[str, str]:
    value = key.get_secret_value()
    if not is_sendable(value):
        raise ConfigError("RAG_EMBEDDING_API_KEY holds characters that no key has: copy it again.")
    return {"Authorization": f"Bearer {value}"}


def _worth_retrying(response: httpx.Response) -> bool:
    # An exhausted quota is also a 429, but no wait of ours refills it.
    busy = response.status_code == 429 and "insufficient_quota" not in response.text
    return busy or response.status_code >= 500


def _pause(response: httpx.Response | None, attempt: int) -> float:
    """Seconds to wait: what the server asks for, else 1, 2, 4."""
    header = response.headers.get("retry-after", "") if response is not None else ""
    asked = retry_after(header)
    return min(2.0**attempt if asked is None else asked, LONGEST_PAUSE_SECONDS)
