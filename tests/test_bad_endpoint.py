from __future__ import annotations

import pytest
from doubles.commands import FACT, QUESTION, Rag, failed, reply
from doubles.endpoint import Response, broken, error, hang, html, text
from doubles.service import Service


@pytest.mark.parametrize(
    ("response", "said"),
    [
        (html(), "answered something other than a stream, perhaps a web page. Check RAG_LLM_BASE"),
        (error(401, "bad key sk-abcdefgh"), "(status 401). Set RAG_LLM_API_KEY to a key that is"),
        (error(500, "oh"), 'answered with status 500. The server says: "oh". Check the server'),
        (text("It is 12.5%."), "did not reply in the JSON that it was asked for. Choose a model"),
        (broken('{"statements": [{"evid'), "broke off before its first statement. Try again."),
        (text("<think>", finish_reason="length"), "Raise RAG_ANSWER_MAX_ANSWER_TOKENS, or"),
    ],
)
def test_an_endpoint_that_fails(
    filled: Rag, service: Service, response: Response, said: str
) -> None:
    for flags in ((), ("--json",)):
        service.replies.append(response)
        ran = filled("ask", QUESTION, *flags)
        assert (ran.code, ran.out) == (1, "")
        assert said in ran.err
        assert ran.err.count("\n") == 1
        assert "sk-" not in ran.err


def test_an_endpoint_that_is_down(filled: Rag, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAG_LLM_BASE_URL", "http://127.0.0.1:9/v1")
    ran = filled("ask", QUESTION)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("http://127.0.0.1:9/v1 cannot be reached (")
    assert ran.err.endswith("Start the server, or correct RAG_LLM_BASE_URL.\n")


def test_an_endpoint_that_does_not_answer_in_time(
    filled: Rag, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAG_LLM_TIMEOUT_SECONDS", "0.2")
    service.replies.append(hang(5))
    failed(
        filled("ask", QUESTION),
        1,
        f"{service.base_url} did not answer within 0.2 s. Try again, or raise "
        "RAG_LLM_TIMEOUT_SECONDS.",
    )


def test_a_stream_that_stops_keeps_what_was_said_and_says_so(filled: Rag, service: Service) -> None:
    service.replies.append(broken(reply((FACT, [1]))[:-2] + ', {"evidence": [1], "te'))
    ran = filled("ask", QUESTION, "--json")
    assert ran.code == 0
    assert [s["text"] for s in ran.json["statements"]] == [FACT]
    note = "The model's reply broke off; a last statement may be missing."
    assert ran.err == f"Note: {note}\n"


def test_an_endpoint_without_schemas_is_said_to_have_none(filled: Rag, service: Service) -> None:
    refusal = error(400, "response_format is not supported", param="response_format")
    service.replies.extend([refusal, refusal, reply((FACT, [1]))])
    ran = filled("ask", QUESTION)
    assert ran.code == 0
    assert ran.err == (
        "Note: The endpoint does not enforce a JSON schema: answers are checked in code.\n"
    )
