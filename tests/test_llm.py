from __future__ import annotations

import io
import json
import socket
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, redirect_stdout
from typing import Any

import pytest
from doubles.endpoint import (
    Response,
    ScriptedEndpoint,
    answer,
    broken,
    error,
    hang,
    html,
    text,
)
from pydantic import SecretStr

from rag.config import LLMSettings
from rag.errors import ConfigError, EndpointError
from rag.llm import OpenAIChat, Reply
from rag.llm import endpoint as wire
from rag.types import Usage

ASK = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Capital?"}]
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
KEY = "sk-very-secret-0123456789"

Chat = Callable[..., OpenAIChat]


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    with ScriptedEndpoint() as server:
        yield server


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def chat(endpoint: ScriptedEndpoint, pauses: list[float]) -> Iterator[Chat]:
    made: list[OpenAIChat] = []

    def make(key: str | None = KEY, **settings: Any) -> OpenAIChat:
        secret = SecretStr(key) if key is not None else None
        settings = {"max_retries": 2, **settings}
        made.append(
            OpenAIChat(
                endpoint.base_url,
                "scripted",
                secret,
                LLMSettings(**settings),
                seed=7,
                sleep=pauses.append,
            )
        )
        return made[-1]

    yield make
    for model in made:
        model.close()


def fails(model: OpenAIChat, **options: Any) -> str:
    """The message of the EndpointError that asking gives; it never holds the key."""
    with pytest.raises(EndpointError) as info:
        model.complete(ASK, max_tokens=5, **options)
    assert KEY not in str(info.value)
    assert KEY not in "".join(traceback.format_exception(info.value))
    return str(info.value)


def test_a_question_is_sent_with_temperature_0_seed_and_key(
    endpoint: ScriptedEndpoint, chat: Chat
) -> None:
    endpoint.queue(text("Paris"))
    reply = chat().complete(ASK, max_tokens=5)
    assert reply == Reply("Paris", Usage(11, 3), "stop", truncated=False)
    (request,) = endpoint.requests
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == {
        "model": "scripted",
        "messages": ASK,
        "max_tokens": 5,
        "temperature": 0,
        "seed": 7,
        "stream": False,
    }


def test_a_stream_is_handed_on_piece_by_piece(endpoint: ScriptedEndpoint, chat: Chat) -> None:
    endpoint.queue(text("The capital is Paris.", piece=9))
    pieces: list[str] = []
    reply = chat().complete(ASK, max_tokens=5, on_text=pieces.append)
    assert pieces == ["The capit", "al is Par", "is."]
    assert reply == Reply("The capital is Paris.", Usage(11, 3), "stop", truncated=False)
    assert endpoint.requests[0].body["stream_options"] == {"include_usage": True}


def test_a_schema_is_sent_strictly_and_enforced(endpoint: ScriptedEndpoint, chat: Chat) -> None:
    endpoint.queue(answer({"a": "Paris"}))
    model = chat()
    assert model.complete(ASK, max_tokens=5, schema=SCHEMA).text == '{"a": "Paris"}'
    sent = endpoint.requests[0].body["response_format"]
    assert sent["type"] == "json_schema"
    assert sent["json_schema"] == {"name": "answer", "strict": True, "schema": SCHEMA}
    assert model.constrained
    assert model.degraded == ()


def test_without_any_key_no_authorization_is_sent(endpoint: ScriptedEndpoint, chat: Chat) -> None:
    endpoint.queue(text("Paris"))
    assert chat(key=None).complete(ASK, max_tokens=5).text == "Paris"
    assert "authorization" not in endpoint.requests[0].headers


@pytest.mark.parametrize("key", ["two\nlines", "bad\r", "schlüssel"])
def test_a_key_that_cannot_be_a_header_is_refused_unshown(chat: Chat, key: str) -> None:
    with pytest.raises(ConfigError, match="RAG_LLM_API_KEY") as info:
        chat(key=key)
    assert key not in str(info.value)


def test_half_a_surrogate_pair_is_sent_as_a_question_mark(
    endpoint: ScriptedEndpoint, chat: Chat
) -> None:
    endpoint.queue(text("Paris"))
    chat().complete([{"role": "user", "content": "a\udcff<|endoftext|>"}], max_tokens=5)
    assert endpoint.requests[0].body["messages"][0]["content"] == "a?<|endoftext|>"


# What endpoints refuse, and what is left out afterwards.


def test_a_refused_schema_becomes_json_object_then_plain_text(
    endpoint: ScriptedEndpoint, chat: Chat
) -> None:
    endpoint.queue(
        error(400, "response_format type json_schema is unavailable", param="response_format"),
        error(400, "'response_format.type' must be 'text'"),
        answer({"a": "Paris"}),
        answer({"a": "Rome"}),
    )
    model = chat()
    assert json.loads(model.complete(ASK, max_tokens=5, schema=SCHEMA).text) == {"a": "Paris"}
    model.complete(ASK, max_tokens=5, schema=SCHEMA)
    formats = [r.body.get("response_format", {}).get("type") for r in endpoint.chats]
    assert formats == ["json_schema", "json_object", None, None]
    for request in endpoint.chats[1:]:
        assert '"required": ["a"]' in request.body["messages"][0]["content"]
    assert not model.constrained
    assert model.degraded == (wire.NO_SCHEMA,)


@pytest.mark.parametrize(
    ("parameter", "message"),
    [
        ("temperature", "Unsupported value: 'temperature' does not support 0 with this model."),
        ("seed", "Unrecognized request argument supplied: seed"),
        ("stream_options", "stream_options: Extra inputs are not permitted"),
    ],
)
@pytest.mark.parametrize("status", [400, 422])
def test_a_refused_parameter_is_dropped_and_remembered(
    endpoint: ScriptedEndpoint, chat: Chat, parameter: str, message: str, status: int
) -> None:
    endpoint.queue(error(status, message), text("Paris"), text("Rome"))
    model = chat()
    assert model.complete(ASK, max_tokens=5, on_text=lambda _: None).text == "Paris"
    assert model.complete(ASK, max_tokens=5, on_text=lambda _: None).text == "Rome"
    assert [parameter in r.body for r in endpoint.chats] == [True, False, False]
    (note,) = model.degraded
    assert note
    assert model.constrained


def test_max_tokens_is_renamed_where_the_model_wants_it(
    endpoint: ScriptedEndpoint, chat: Chat
) -> None:
    refusal = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    endpoint.queue(error(400, refusal, param="max_tokens"), text("Paris"))
    model = chat()
    assert model.complete(ASK, max_tokens=5).text == "Paris"
    assert endpoint.chats[1].body["max_completion_tokens"] == 5
    assert "max_tokens" not in endpoint.chats[1].body
    assert model.degraded == ()


def test_a_refusal_that_never_ends_is_reported_and_nothing_remembered(
    endpoint: ScriptedEndpoint, chat: Chat
) -> None:
    endpoint.default = error(400, "temperature, seed and max_tokens displease me")
    model = chat()
    assert "displease me" in fails(model)
    assert len(endpoint.chats) == 4
    assert model.degraded == ()
    assert endpoint.chats[0].body.keys() >= {"temperature", "seed", "max_tokens"}
    endpoint.default = text("Paris")
    model.complete(ASK, max_tokens=5)
    assert endpoint.chats[-1].body.keys() >= {"temperature", "seed", "max_tokens"}


# Yes or no.


def test_the_probability_of_yes_gathers_every_spelling(
    endpoint: ScriptedEndpoint, chat: Chat
) -> None:
    odds = {"Yes": 0.5, " yes": 0.1, "是": 0.1, "No": 0.1, "NO": 0.05, "Maybe": 0.1}
    endpoint.queue(text("Yes", probabilities=odds, finish_reason="length"))
    probability, usage = chat().yes_probability(ASK)
    assert probability == pytest.approx(0.7 / 0.85)
    assert usage == Usage(11, 3)
    body = endpoint.requests[0].body
    assert (body["max_tokens"], body["logprobs"], body["top_logprobs"]) == (1, True, 10)


@pytest.mark.parametrize(
    ("said", "expected"), [("Yes", 1.0), (" no.", 0.0), ("**Yes**", 1.0), ("The", None), ("", None)]
)
def test_without_logprobs_the_text_counts_and_the_user_is_told(
    endpoint: ScriptedEndpoint, chat: Chat, said: str, expected: float | None
) -> None:
    endpoint.queue(text(said))
    model = chat()
    assert model.yes_probability(ASK)[0] == expected
    assert model.degraded == (wire.NO_LOGPROBS,)


def test_refused_logprobs_are_left_out_with_their_number(
    endpoint: ScriptedEndpoint, chat: Chat
) -> None:
    endpoint.queue(error(400, "logprobs are not supported", param="logprobs"), text("No"))
    model = chat()
    assert model.yes_probability(ASK)[0] == 0.0
    assert not {"logprobs", "top_logprobs"} & endpoint.chats[1].body.keys()


# What goes wrong on the way.


def test_an_endpoint_that_is_down_is_tried_again_then_named(pauses: list[float]) -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{reserved.getsockname()[1]}/v1"
        with closing(OpenAIChat(url, "m", None, LLMSettings(), 0, sleep=pauses.append)) as model:
            message = fails(model)
    assert url in message
    assert "Start the server, or correct RAG_LLM_BASE_URL" in message
    assert len(pauses) == 2
    assert 0.5 <= pauses[0] <= 1.0 <= pauses[1] <= 1.5


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_names_its_variable_and_is_not_tried_again(
    endpoint: ScriptedEndpoint, chat: Chat, status: int
) -> None:
    endpoint.queue(error(status, f"Incorrect API key provided: {KEY}, or sk-ve****789."))
    message = fails(chat())
    assert "RAG_LLM_API_KEY" in message
    assert "sk-ve" not in message
    assert len(endpoint.requests) == 1


def test_a_missing_key_is_said_to_be_missing(endpoint: ScriptedEndpoint, chat: Chat) -> None:
    endpoint.queue(error(401, "no"))
    assert "refuses a request without a key" in fails(chat(key=None))


@pytest.mark.parametrize("streamed", [False, True])
def test_a_timeout_is_not_tried_again_and_names_the_setting(
    endpoint: ScriptedEndpoint, chat: Chat, streamed: bool
) -> None:
    endpoint.queue(hang(30))
    on_text = (lambda _: None) if streamed else None
    message = fails(chat(timeout_seconds=0.2), on_text=on_text)
    assert "within 0.2 s" in message
    assert "RAG_LLM_TIMEOUT_SECONDS" in message
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    "response",
    [
        html(),
        Response(body="not json"),
        Response(body="null"),
        Response(body="[]"),
        Response(body='"text"'),
        Response(body="{}"),
        Response(body='{"choices": []}'),
        Response(body='{"choices": [{"index": 0}]}'),
    ],
)
def test_anything_but_an_answer_is_an_error_that_names_the_address(
    endpoint: ScriptedEndpoint, chat: Chat, response: Response, streamed: bool
) -> None:
    endpoint.queue(response)
    message = fails(chat(), on_text=(lambda _: None) if streamed else None)
    assert "Check RAG_LLM_BASE_URL" in message


@pytest.mark.parametrize("event", ["{broken", "[]", "7", '{"choices": [7]}'])
def test_a_stream_of_something_else_is_an_error(
    endpoint: ScriptedEndpoint, chat: Chat, event: str
) -> None:
    endpoint.queue(Response(events=(event,)))
    assert "Check RAG_LLM_BASE_URL" in fails(chat(), on_text=lambda _: None)


def test_an_error_inside_a_stream_is_reported(endpoint: ScriptedEndpoint, chat: Chat) -> None:
    endpoint.queue(Response(events=('{"error": {"message": "out of memory"}}',)))
    assert 'reports: "out of memory"' in fails(chat(), on_text=lambda _: None)


def test_a_server_that_ignores_stream_is_understood(endpoint: ScriptedEndpoint, chat: Chat) -> None:
    whole = Response(body=text("Paris").body)
    endpoint.queue(whole)
    pieces: list[str] = []
    assert chat().complete(ASK, max_tokens=5, on_text=pieces.append).usage == Usage(11, 3)
    assert pieces == ["Paris"]


def test_a_stream_without_a_finish_reason_is_truncated(
    endpoint: ScriptedEndpoint, chat: Chat
) -> None:
    endpoint.queue(text("Par", finish_reason=None))
    reply = chat().complete(ASK, max_tokens=5, on_text=lambda _: None)
    assert (reply.text, reply.finish_reason, reply.truncated) == ("Par", None, True)


@pytest.mark.parametrize(
    ("reason", "cut"), [("stop", False), ("length", True), ("content_filter", True)]
)
@pytest.mark.parametrize("streamed", [False, True])
def test_an_answer_is_truncated_by_a_limit_or_a_filter(
    endpoint: ScriptedEndpoint, chat: Chat, reason: str, cut: bool, streamed: bool
) -> None:
    endpoint.queue(text("Par", finish_reason=reason))
    on_text = (lambda _: None) if streamed else None
    assert chat().complete(ASK, max_tokens=5, on_text=on_text).truncated is cut


def test_a_line_cut_half_way_keeps_what_was_shown(endpoint: ScriptedEndpoint, chat: Chat) -> None:
    endpoint.queue(broken("The cap"), text("never asked for"))
    pieces: list[str] = []
    reply = chat().complete(ASK, max_tokens=5, on_text=pieces.append)
    assert (reply.text, reply.truncated, pieces) == ("The cap", True, ["The cap"])
    assert len(endpoint.requests) == 1


def test_a_line_cut_before_any_text_is_tried_again(
    endpoint: ScriptedEndpoint, chat: Chat, pauses: list[float]
) -> None:
    endpoint.queue(broken(""), text("Paris"))
    assert chat().complete(ASK, max_tokens=5, on_text=lambda _: None).text == "Paris"
    assert len(pauses) == 1


def test_ctrl_c_in_a_stream_closes_it_and_goes_through(
    endpoint: ScriptedEndpoint, chat: Chat
) -> None:
    endpoint.queue(text("word " * 1_000_000, piece=100))

    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        chat().complete(ASK, max_tokens=5, on_text=interrupt)
    assert endpoint.disconnected.wait(5)


def test_an_error_of_the_listener_is_not_blamed_on_the_endpoint(
    endpoint: ScriptedEndpoint, chat: Chat
) -> None:
    endpoint.queue(text("Paris"))

    def broken_listener(_: str) -> None:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        chat().complete(ASK, max_tokens=5, on_text=broken_listener)


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503])
def test_passing_failures_are_tried_again(
    endpoint: ScriptedEndpoint, chat: Chat, pauses: list[float], status: int
) -> None:
    endpoint.queue(error(status, "busy"), html(status), text("Paris"))
    assert chat().complete(ASK, max_tokens=5).text == "Paris"
    assert len(pauses) == 2


def test_tries_end_and_the_servers_words_are_shown(
    endpoint: ScriptedEndpoint, chat: Chat, pauses: list[float]
) -> None:
    endpoint.default = error(503, "loading\x1b[31m \u202emodel")
    assert 'status 503. The server says: "loading [31m model".' in fails(chat(max_retries=1))
    assert len(pauses) == 1


def test_retry_after_is_honoured_up_to_half_a_minute(
    endpoint: ScriptedEndpoint, chat: Chat, pauses: list[float]
) -> None:
    for value in ("3", "86400", "Thu, 01 Jan 1970 00:00:00 GMT"):
        endpoint.queue(error(429, "slow down", headers={"retry-after": value}))
    endpoint.queue(text("Paris"))
    chat(max_retries=3).complete(ASK, max_tokens=5)
    assert pauses == [3.0, 30.0, 0.0]


@pytest.mark.parametrize("place", ["code", "type"])
def test_an_exhausted_quota_stops_at_once(
    endpoint: ScriptedEndpoint, chat: Chat, pauses: list[float], place: str
) -> None:
    body = {"error": {"message": "You exceeded your quota", place: "insufficient_quota"}}
    endpoint.queue(Response(429, json.dumps(body)))
    assert "has no quota left" in fails(chat())
    assert (len(endpoint.requests), pauses) == (1, [])


def test_an_unknown_model_is_named_with_those_there_are(
    endpoint: ScriptedEndpoint, chat: Chat
) -> None:
    endpoint.models = ("small", "large")
    endpoint.queue(error(404, "model not found"))
    message = fails(chat())
    assert "no model 'scripted'. Set RAG_LLM_MODEL to one of: large, small." in message


def test_an_unknown_address_is_named(endpoint: ScriptedEndpoint, chat: Chat) -> None:
    endpoint.queue(html(404))
    message = fails(chat())
    assert "RAG_LLM_MODEL" in message
    assert "ends with /v1" in message


@pytest.mark.parametrize(
    "refusal",
    [
        error(400, "maximum context length is 4097 tokens (max_tokens 5)"),
        error(400, "request (3030 tokens) exceeds the available context size (1024 tokens)"),
        error(400, "too long", code="context_length_exceeded"),
    ],
)
def test_an_overflowing_prompt_names_the_budget(
    endpoint: ScriptedEndpoint, chat: Chat, refusal: Response
) -> None:
    endpoint.queue(refusal)
    message = fails(chat())
    assert "RAG_LLM_CONTEXT_TOKENS" in message
    assert "RAG_ANSWER_EVIDENCE_TOKENS" in message
    assert len(endpoint.requests) == 1


def test_a_prompt_cut_in_silence_is_noticed(endpoint: ScriptedEndpoint, chat: Chat) -> None:
    long = [{"role": "user", "content": "one two three four " * 100}]
    endpoint.queue(text("ok", usage={"prompt_tokens": 128, "completion_tokens": 1}))
    model = chat()
    model.complete(long, max_tokens=5)
    (note,) = model.degraded
    assert "read 128 tokens of a prompt of about 401" in note


def test_a_redirect_is_not_followed(endpoint: ScriptedEndpoint, chat: Chat) -> None:
    with ScriptedEndpoint(text("stolen")) as elsewhere:
        target = f"{elsewhere.base_url}/chat/completions"
        endpoint.queue(Response(307, "", headers={"location": target}))
        message = fails(chat())
        assert elsewhere.requests == []
    assert "redirects elsewhere (status 307)" in message
    assert "RAG_LLM_BASE_URL" in message


def test_nothing_is_printed(endpoint: ScriptedEndpoint, chat: Chat) -> None:
    endpoint.queue(error(400, "no seed please"), text("Paris"))
    with redirect_stdout(io.StringIO()) as out:
        chat().complete(ASK, max_tokens=5)
    assert out.getvalue() == ""
