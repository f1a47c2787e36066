"""A chat model behind any OpenAI-compatible endpoint; the only openai import."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from rag import tokens
from rag.chat_model import Message, Reply
from rag.config import LLMSettings
from rag.errors import ConfigError, EndpointDownError, EndpointError
from rag.http import excerpt, is_sendable, is_this_machine, retry_after
from rag.llm import endpoint, refusals
from rag.llm.endpoint import Call, Dialect
from rag.llm.pacing import Pace
from rag.types import Usage

if TYPE_CHECKING:
    from tenacity import RetryCallState

CONNECT_SECONDS = 10.0
# All that may be sent besides the key. The openai client adds headers from the environment
# (OPENAI_CUSTOM_HEADERS, OPENAI_ORG_ID, OPENAI_PROJECT_ID) and a description of this system.
SENT_HEADERS = frozenset(
    "accept accept-encoding connection content-length content-type host transfer-encoding".split()
)


class OpenAIChat:
    """`ChatModel` over HTTP. Nothing but `base_url` is spoken to, whatever the environment holds.

    The key is sent to that server alone and appears in no message. `sleep` waits between tries.
    """

    def __init__(  # noqa: PLR0913 - the address, who asks, and how
        self,
        base_url: str,
        model: str,
        key: SecretStr | None,
        settings: LLMSettings,
        seed: int,
        *,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.name = model
        self._base_url = base_url
        self._secret = key.get_secret_value() if key else None
        self._settings = settings
        self._seed = seed
        self._sleep = sleep
        self._pace = Pace(sleep)
        self._client = _client(base_url, self._secret, settings.timeout_seconds)
        self._dialect = Dialect()
        self._notes: dict[str, None] = {}

    @property
    def constrained(self) -> bool:
        """Whether a schema is enforced; true until the endpoint refuses one."""
        return self._dialect.schema_mode == "json_schema"

    @property
    def degraded(self) -> tuple[str, ...]:
        """What the endpoint turned out not to support."""
        return tuple(self._notes)

    def complete(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        schema: dict[str, Any] | None = None,
        on_text: Callable[[str], None] | None = None,
    ) -> Reply:
        """Answer at temperature 0; `max_tokens` counts the endpoint's tokens."""
        call = Call(messages, max_tokens, schema, stream=on_text is not None)
        return self._ask(call, on_text)

    def yes_probability(self, messages: Sequence[Message]) -> tuple[float | None, Usage]:
        """P(Yes) from the log probabilities of one token.

        Without them the text itself counts as 1.0 or 0.0, and `degraded` says so.
        """
        reply = self._ask(Call(messages, max_tokens=1, logprobs=True), None)
        if reply.yes_probability is not None:
            return reply.yes_probability, reply.usage
        self._notes.setdefault(endpoint.NO_LOGPROBS)
        verdict = endpoint.yes_or_no(reply.text)
        return (None if verdict is None else float(verdict)), reply.usage

    def models(self) -> list[str]:
        """Names of the models that the endpoint offers; empty where it has no such list."""
        import openai

        try:
            return sorted(model.id for model in self._client.models.list())
        except openai.NotFoundError:
            return []
        except openai.OpenAIError as error:
            raise self._explained(error) from None
        except (AttributeError, TypeError, ValueError) as error:
            raise self._unusable("a list of models") from error

    def close(self) -> None:
        """Give the connections back."""
        self._client.close()

    def _ask(self, call: Call, on_text: Callable[[str], None] | None) -> Reply:
        """Send the call in the endpoint's dialect, giving up one by one what it refuses."""
        import openai

        known = dialect = self._dialect
        notes: list[str] = []
        while True:
            body = dialect.body(call, self.name, self._seed)
            try:
                reply = self._retrying(body, on_text)
                break
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                weaker = dialect.weaker(_said(error), body)
                if weaker is None:
                    raise self._explained(error) from None
                dialect, note = weaker
                notes.append(note)
            except openai.OpenAIError as error:
                raise self._explained(error) from None
        # Only what led to an answer is remembered, and not over what another thread has learnt.
        if dialect is not known:
            self._dialect = dialect
        self._notes.update(dict.fromkeys(filter(None, notes)))
        self._check_prompt_was_read(call, reply.usage)
        return reply

    def _retrying(self, body: dict[str, Any], on_text: Callable[[str], None] | None) -> Reply:
        from tenacity import Retrying, retry_if_exception, stop_after_attempt

        retrying = Retrying(
            stop=stop_after_attempt(self._settings.max_retries + 1),
            wait=self._pause,
            retry=retry_if_exception(_may_be_retried),
            sleep=self._sleep,
            reraise=True,
        )
        with self._pace.asking():
            return retrying(self._send, body, on_text)

    def _pause(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        response = getattr(error, "response", None)
        header = response.headers.get("retry-after", "") if response is not None else ""
        limited = getattr(error, "status_code", None) in (429, 503)
        return self._pace.pause(state.attempt_number, retry_after(header), limited=limited)

    def _send(self, body: dict[str, Any], on_text: Callable[[str], None] | None) -> Reply:
        self._pace.wait()
        if on_text is not None:
            return self._read_stream(self._client.chat.completions.create(**body), on_text)
        try:
            return endpoint.whole_reply(self._client.chat.completions.create(**body))
        except (AttributeError, IndexError, TypeError, ValueError) as error:
            raise self._unusable("a chat completion") from error

    def _read_stream(self, stream: Any, on_text: Callable[[str], None]) -> Reply:
        """Gather a stream; leaving by any exception, Ctrl-C among them, closes the connection."""
        import openai

        deadline = time.monotonic() + self._settings.timeout_seconds
        gathered = endpoint.Gathered()
        with stream:
            if not stream.response.headers.get("content-type", "").startswith("text/event-stream"):
                return self._read_unstreamed(stream.response, on_text)
            try:
                for text in self._usable(gathered.pieces(stream)):
                    if text:
                        on_text(text)
                    if time.monotonic() > deadline:
                        raise openai.APITimeoutError(stream.response.request)
            except openai.APIConnectionError:
                # What was shown cannot be taken back by a second try: hand it on, as truncated.
                if not gathered.text:
                    raise
        return gathered.reply()

    def _usable(self, pieces: Iterator[str]) -> Iterator[str]:
        try:
            yield from pieces
        except (AttributeError, TypeError, ValueError) as error:
            raise self._unusable("a stream of chat completions") from error

    def _read_unstreamed(self, response: Any, on_text: Callable[[str], None]) -> Reply:
        """Some servers ignore `stream` and answer in one piece; a web page is no answer at all."""
        from openai.types.chat import ChatCompletion

        try:
            response.read()
            reply = endpoint.whole_reply(ChatCompletion.construct(**response.json()))
        except (AttributeError, IndexError, TypeError, ValueError) as error:
            raise self._unusable("a stream") from error
        on_text(reply.text)
        return reply

    def _check_prompt_was_read(self, call: Call, usage: Usage) -> None:
        """Servers with a small window may cut the prompt in silence."""
        sent = sum(tokens.count(message["content"]) for message in call.messages)
        # Tokenizers differ: Chinese takes 0.64 of our count with the bundled model.
        if usage.prompt_tokens and usage.prompt_tokens * 2 < sent:
            self._notes.setdefault(
                f"The endpoint read {usage.prompt_tokens} tokens of a prompt of about {sent}: its"
                " window may be smaller than RAG_LLM_CONTEXT_TOKENS says."
            )

    def _unusable(self, wanted: str) -> EndpointError:
        return EndpointError(
            f"{self._base_url} answered something other than {wanted}, perhaps a web page."
            " Check RAG_LLM_BASE_URL: it usually ends with /v1."
        )

    def _explained(self, error: Exception) -> EndpointError:
        """The error in our words; raised `from None`, since the server's may repeat the key."""
        import openai

        if isinstance(error, openai.APITimeoutError):
            return EndpointError(
                f"{self._base_url} did not answer within {self._settings.timeout_seconds:g} s."
                " Try again, or raise RAG_LLM_TIMEOUT_SECONDS."
            )
        if isinstance(error, openai.APIConnectionError):
            cause = type(error.__cause__ or error).__name__
            # One that refuses connections is down for everybody; one that drops them may not be.
            kind = EndpointDownError if cause == "ConnectError" else EndpointError
            return kind(
                f"{self._base_url} cannot be reached ({cause}). Start the server, or correct"
                " RAG_LLM_BASE_URL."
            )
        said = excerpt(_said(error), self._secret)
        if not isinstance(error, openai.APIStatusError):
            return EndpointError(f'{self._base_url} reports: "{said}". Check the server\'s log.')
        if error.status_code == 404:
            names: list[str] = []
            with suppress(EndpointError):
                names = self.models()
            return EndpointDownError(refusals.explain_not_found(self.name, self._base_url, names))
        kind = (
            EndpointDownError
            if refusals.is_general(error.status_code, _code(error))
            else EndpointError
        )
        return kind(
            refusals.explain(
                error.status_code,
                said,
                _code(error),
                self._base_url,
                has_key=self._secret is not None,
            )
        )


def _client(base_url: str, secret: str | None, timeout_seconds: float) -> Any:
    """An OpenAI client that takes nothing from the environment.

    Retries are ours, redirects are not followed, and for this machine no proxy is used. What
    other hosts are sent goes through the proxy that the system names, as for any program.
    """
    import openai

    if secret is not None and not is_sendable(secret):
        raise ConfigError(
            "RAG_LLM_API_KEY holds a line break or another character that no key has: set it again."
        )
    timeout = openai.Timeout(timeout_seconds, connect=min(CONNECT_SECONDS, timeout_seconds))
    return openai.OpenAI(
        base_url=base_url,
        # The client insists on a key; where there is none, the hook below sends none.
        api_key=secret or "none",
        organization="",
        project="",
        max_retries=0,
        timeout=timeout,
        http_client=openai.DefaultHttpxClient(
            timeout=timeout,
            follow_redirects=False,
            trust_env=not is_this_machine(base_url),
            event_hooks={"request": [lambda request: _only_what_is_meant(request, secret)]},
        ),
    )


def _only_what_is_meant(request: Any, secret: str | None) -> None:
    for name in set(request.headers) - SENT_HEADERS:
        del request.headers[name]
    request.headers["host"] = request.url.netloc.decode("ascii")
    request.headers["user-agent"] = "citewise"
    if secret is not None:
        request.headers["authorization"] = f"Bearer {secret}"


def _may_be_retried(error: BaseException) -> bool:
    import openai

    if isinstance(error, openai.APITimeoutError):
        # A request that was accepted costs money and time again; one that never arrived does not.
        return type(error.__cause__).__name__ == "ConnectTimeout"
    if isinstance(error, openai.APIStatusError):
        return refusals.is_transient(error.status_code, _code(error))
    return isinstance(error, openai.APIConnectionError)


def _code(error: Any) -> str | None:
    return "insufficient_quota" if "insufficient_quota" in (error.code, error.type) else error.code


def _said(error: Any) -> str:
    """The server's words, with the parameter and code it names."""
    body = error.body if isinstance(error.body, dict) else {}
    message = body.get("message") or error.message
    return " ".join(str(part) for part in (message, body.get("param"), body.get("code")) if part)
