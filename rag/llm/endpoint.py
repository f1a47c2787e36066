"""What OpenAI-compatible endpoints accept, refuse and answer, as pure functions; no network here.

Servers that call themselves compatible differ in what they accept. `Dialect` is what one endpoint
has been found to take; a refusal gives the next weaker dialect until nothing is left to give up.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from rag.chat_model import Message, Reply
from rag.llm.refusals import is_context_overflow
from rag.types import Usage

YES = frozenset({"yes", "是"})
NO = frozenset({"no", "否", "不", "不是"})
# OpenAI allows 20; beyond the tenth token the bundled model's probabilities are under 0.0001.
TOP_LOGPROBS = 10

_SCHEMA_REFUSED = re.compile(
    r"response[ _.]?format|json[ _]?schema|json[ _]?object|structured[ _]?output|guided|grammar",
    re.IGNORECASE,
)
_DROPPABLE = ("temperature", "seed", "logprobs", "stream_options")


@dataclass(frozen=True, slots=True)
class Call:
    """One question to a model, before it is put in the words of an endpoint."""

    messages: Sequence[Message]
    max_tokens: int
    schema: Mapping[str, Any] | None = None
    logprobs: bool = False
    stream: bool = False


@dataclass(frozen=True, slots=True)
class Dialect:
    """What an endpoint takes. `refused` are parameters that it does not."""

    schema_mode: Literal["json_schema", "json_object", "none"] = "json_schema"
    max_tokens_name: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    refused: frozenset[str] = frozenset()

    def body(self, call: Call, model: str, seed: int) -> dict[str, Any]:
        """The request's JSON body."""
        body: dict[str, Any] = {
            "model": model,
            "messages": [_encodable(message) for message in call.messages],
            self.max_tokens_name: call.max_tokens,
            "temperature": 0,
            "seed": seed,
            "stream": call.stream,
        }
        if call.logprobs:
            body |= {"logprobs": True, "top_logprobs": TOP_LOGPROBS}
        if call.stream:
            body["stream_options"] = {"include_usage": True}
        if call.schema is not None:
            body |= self._schema_fields(body["messages"], call.schema)
        dropped = {*self.refused, *({"top_logprobs"} if "logprobs" in self.refused else ())}
        return {name: value for name, value in body.items() if name not in dropped}

    def _schema_fields(
        self, messages: Sequence[Message], schema: Mapping[str, Any]
    ) -> dict[str, Any]:
        if self.schema_mode == "json_schema":
            wrapped = {"name": "answer", "strict": True, "schema": schema}
            return {"response_format": {"type": "json_schema", "json_schema": wrapped}}
        fields: dict[str, Any] = {"messages": with_schema(messages, schema)}
        if self.schema_mode == "json_object":
            fields["response_format"] = {"type": "json_object"}
        return fields

    def weaker(self, refusal: str, body: Mapping[str, Any]) -> tuple[Dialect, str] | None:
        """The next dialect to try after `refusal`, and what to tell the user; None: give up."""
        if is_context_overflow(refusal):
            return None
        if "response_format" in body and _SCHEMA_REFUSED.search(refusal):
            if self.schema_mode == "json_schema":
                weaker = replace(self, schema_mode="json_object")
            else:
                weaker = replace(self, schema_mode="none")
            return weaker, NO_SCHEMA
        if "max_tokens" in body and re.search(r"max_(completion_)?tokens", refusal):
            return replace(self, max_tokens_name="max_completion_tokens"), ""
        for name in _DROPPABLE:
            if name in body and name in refusal:
                return replace(self, refused=self.refused | {name}), _NOTES[name]
        return None


_NOTES = {
    "temperature": "The endpoint refuses `temperature`: answers may differ from run to run.",
    "seed": "The endpoint refuses `seed`: answers may differ from run to run.",
    "logprobs": "The endpoint refuses `logprobs`: yes/no answers come without a probability.",
    "stream_options": "The endpoint does not count tokens while streaming: they are shown as 0.",
}
NO_SCHEMA = "The endpoint does not enforce a JSON schema: answers are checked in code."
NO_LOGPROBS = "The endpoint gives no `logprobs`: yes/no answers come without a probability."


def _encodable(message: Message) -> Message:
    """Half a surrogate pair cannot be sent; odd bytes on a command line leave some."""
    content = message["content"].encode("utf-8", "replace").decode("utf-8")
    return {**message, "content": content}


def with_schema(messages: Sequence[Message], schema: Mapping[str, Any]) -> list[Message]:
    """The messages with the schema written into the first, where the endpoint does not take it."""
    first, *rest = messages
    addition = f"JSON schema of the answer:\n{json.dumps(schema, ensure_ascii=False)}"
    return [{**first, "content": f"{first['content']}\n\n{addition}"}, *rest]


def yes_probability(top: Mapping[str, float]) -> float | None:
    """P(Yes) among yes and no, from natural log probabilities of the first token.

    `{"Yes": ln 0.6, " yes": ln 0.2, "No": ln 0.2}` -> 0.8; None where neither is among them.
    """
    mass = {True: 0.0, False: 0.0}
    for token, logprob in top.items():
        verdict = yes_or_no(token)
        if verdict is not None:
            mass[verdict] += math.exp(logprob)
    total = mass[True] + mass[False]
    return mass[True] / total if total else None


def yes_or_no(text: str) -> bool | None:
    """What a one-word answer says: "Yes." -> True, " no" -> False, "Maybe" -> None."""
    word = re.sub(r"^\W+|\W+$", "", text).casefold()
    return True if word in YES else False if word in NO else None


@dataclass(slots=True)
class Gathered:
    """A stream's answer so far."""

    text: str = ""
    finish_reason: str | None = None
    usage: Usage = field(default_factory=Usage)

    def pieces(self, chunks: Iterator[Any]) -> Iterator[str]:
        """The new text of each chunk; one without choices (usage, keep-alive) has none: ""."""
        for chunk in chunks:
            self.usage = _usage(chunk) or self.usage
            piece = ""
            for choice in (chunk.choices or ())[:1]:
                self.finish_reason = choice.finish_reason or self.finish_reason
                piece = (choice.delta.content or "") if choice.delta is not None else ""
            self.text += piece
            yield piece

    def reply(self) -> Reply:
        """The answer, once the stream has ended."""
        return Reply(self.text, self.usage, self.finish_reason, _is_cut(self.finish_reason))


def whole_reply(completion: Any) -> Reply:
    """A completion in one piece; AttributeError, IndexError or TypeError where it is none."""
    choice = completion.choices[0]
    first = (choice.logprobs.content or ())[:1] if choice.logprobs else ()
    top = {entry.token: entry.logprob for token in first for entry in token.top_logprobs}
    return Reply(
        text=choice.message.content or "",
        usage=_usage(completion) or Usage(),
        finish_reason=choice.finish_reason,
        truncated=_is_cut(choice.finish_reason),
        yes_probability=yes_probability(top),
    )


def _usage(answer: Any) -> Usage | None:
    found = answer.usage
    return Usage(found.prompt_tokens or 0, found.completion_tokens or 0) if found else None


def _is_cut(finish_reason: str | None) -> bool:
    return finish_reason in (None, "length", "content_filter")
