"""A scripted OpenAI-compatible server on loopback: a queue of replies and faults.

    with ScriptedEndpoint(text("Paris")) as endpoint:
        ...  # talk to endpoint.base_url
        assert endpoint.requests[0].body["temperature"] == 0

Every chat request takes the next item of the queue, or `default` when the queue is empty; without
a default it gets status 500 naming the empty script. An item may also be a function from the
`Request` to a `Response`, for answers that depend on the prompt. `GET /models` answers from
`models` and takes nothing from the queue.
"""

from __future__ import annotations

import json
import math
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

USAGE = {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14}


@dataclass(frozen=True, slots=True)
class Request:
    """What the server was sent; header names in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any


@dataclass(frozen=True, slots=True)
class Response:
    """What it sends back. `events` is the form for a request that asks for a stream.

    After `stall_after` of them nothing more comes until the client or the server goes.
    """

    status: int = 200
    body: str = ""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    events: tuple[str, ...] | None = None
    delay_seconds: float = 0.0
    drop: bool = False
    stall_after: int | None = None


Script = Response | Callable[[Request], Response]


def text(
    content: str,
    *,
    finish_reason: str | None = "stop",
    probabilities: Mapping[str, float] | None = None,
    usage: Mapping[str, int] | None = USAGE,
    piece: int = 8,
) -> Response:
    """An answer; `probabilities` are those of its first token, `{"Yes": 0.9, "No": 0.1}`."""
    logprobs = _logprobs(probabilities) if probabilities else None
    message = {"role": "assistant", "content": content}
    choice = {"index": 0, "message": message, "finish_reason": finish_reason, "logprobs": logprobs}
    body = {**_frame("chat.completion"), "choices": [choice], "usage": usage}
    pieces = [content[i : i + piece] for i in range(0, len(content), piece)]
    events = [_delta({"role": "assistant", "content": ""}, None)]
    events += [_delta({"content": part}, None) for part in pieces]
    if finish_reason is not None:
        events.append(_delta({}, finish_reason))
    if usage is not None:
        last = {**_frame("chat.completion.chunk"), "choices": [], "usage": usage}
        events.append(json.dumps(last))
    return Response(body=json.dumps(body), events=(*events, "[DONE]"))


def answer(value: Any, **options: Any) -> Response:
    """A JSON answer, as a model under a schema gives it."""
    return text(json.dumps(value), **options)


def error(
    status: int,
    message: str,
    *,
    code: str | None = None,
    param: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """A refusal in OpenAI's form."""
    body = {"error": {"message": message, "type": "error", "code": code, "param": param}}
    return Response(status=status, body=json.dumps(body), headers=headers or {})


def html(status: int = 200) -> Response:
    """A web page where an answer should be."""
    return Response(status, "<html><body>Sign in</body></html>", "text/html")


def broken(content: str) -> Response:
    """A stream whose connection is cut in the middle, after `content`."""
    return Response(body="", events=(_delta({"content": content}, None),), drop=True)


def stalled(content: str, piece: int = 8) -> Response:
    """A stream that says `content` and then neither goes on nor ends."""
    whole = text(content, piece=piece)
    return replace(whole, stall_after=1 + -(-len(content) // piece))


def hang(seconds: float) -> Response:
    """An answer that comes only after `seconds`, or when the server is closed."""
    return Response(body="{}", delay_seconds=seconds)


class ScriptedEndpoint:
    """The server; `base_url` ends with `/v1`."""

    def __init__(
        self,
        *script: Script,
        models: tuple[str, ...] = ("scripted",),
        default: Script | None = None,
    ) -> None:
        self.requests: list[Request] = []
        self.models = models
        self.default = default
        self.disconnected = threading.Event()
        self._script: deque[Script] = deque(script)
        self.closed = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        self._thread.start()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def chats(self) -> list[Request]:
        """The requests that asked for an answer, in order."""
        return [r for r in self.requests if r.path.endswith("/chat/completions")]

    def queue(self, *script: Script) -> None:
        """Put more items at the end of the script."""
        self._script.extend(script)

    def close(self) -> None:
        self.closed.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.close()

    def respond(self, request: Request) -> Response:
        """Choose the answer to a request."""
        self.requests.append(request)
        if request.method == "GET" and request.path.endswith("/models"):
            data = [{"id": name, "object": "model"} for name in self.models]
            return Response(body=json.dumps({"object": "list", "data": data}))
        item = self._script.popleft() if self._script else self.default
        if item is None:
            return error(500, f"the script is empty: {request.method} {request.path}")
        response = item(request) if callable(item) else item
        self.closed.wait(response.delay_seconds)
        return response


def _handler(endpoint: ScriptedEndpoint) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._serve()

        def do_POST(self) -> None:
            self._serve()

        def log_message(self, format: str, *args: object) -> None:
            pass

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            request = Request(
                method=self.command,
                path=self.path,
                headers={name.lower(): value for name, value in self.headers.items()},
                body=json.loads(body) if body else None,
            )
            response = endpoint.respond(request)
            streamed = bool(request.body) and request.body.get("stream") is True
            try:
                self._send(response, streamed)
            except ConnectionError:
                endpoint.disconnected.set()

        def _send(self, response: Response, streamed: bool) -> None:
            stream = streamed and response.events is not None
            self.send_response(response.status)
            for name, value in response.headers.items():
                self.send_header(name, value)
            content = response.body.encode()
            kind = "text/event-stream" if stream else response.content_type
            self.send_header("content-type", kind)
            # A promised length that never comes is how a client learns that the line was cut.
            length = 10_000 if response.drop else None if stream else len(content)
            if length is not None:
                self.send_header("content-length", str(length))
            self.end_headers()
            for number, part in enumerate(_wire(response) if stream else (content,)):
                if number == response.stall_after:
                    endpoint.closed.wait(60)
                self.wfile.write(part)
                self.wfile.flush()

    return Handler


def _wire(response: Response) -> Iterator[bytes]:
    for event in response.events or ():
        yield f"data: {event}\n\n".encode()


def _frame(kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": "scripted"}


def _delta(delta: Mapping[str, str], finish_reason: str | None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}
    return json.dumps({**_frame("chat.completion.chunk"), "choices": [choice]})


def _logprobs(probabilities: Mapping[str, float]) -> dict[str, Any]:
    top = [
        {"token": token, "bytes": list(token.encode()), "logprob": math.log(p)}
        for token, p in sorted(probabilities.items(), key=lambda item: -item[1])
    ]
    return {"content": [{**top[0], "top_logprobs": top}]}
