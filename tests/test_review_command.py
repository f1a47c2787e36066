from __future__ import annotations

import json

import pytest
from doubles.commands import FACT, Rag
from doubles.endpoint import Request, Response, error
from doubles.reviews import GOOD, OWN, RELATED, given_review, judge, told
from doubles.service import Service

from rag.state import state_directory


def test_what_is_done_is_not_asked_again(filled: Rag, service: Service) -> None:
    service.replies.append(GOOD)
    first = filled("review", given_review(), "--json")
    asked = len(service.chats)
    again = filled("review", given_review(), "--json")
    assert (again.code, again.out) == (0, first.out)
    assert len(service.chats) == asked
    service.replies.append(GOOD)
    redone = filled("review", given_review(), "--json", "--only", "2")
    assert redone.json[1]["answer"]["text"] == first.json[1]["answer"]["text"]
    assert len(service.chats) == 2 * asked


def test_only_chosen_items_are_worked_on(filled: Rag, service: Service) -> None:
    ran = filled("review", given_review(), "--json", "--only", "1")
    assert [x["item"] for x in ran.json] == [1]
    assert (ran.code, told(ran.err)) == (3, "2 items: 1 for the authors, 1 not worked on")
    shown = filled("review", given_review(), "--only", "1-1")
    assert "*Not worked on yet: 2.*" in shown.out
    assert not service.chats


def test_a_failed_item_says_why_and_is_tried_again(filled: Rag, service: Service) -> None:
    service.replies.append(lambda _: error(400, "too warm"))
    ran = filled("review", given_review(), "--json")
    assert ran.code == 1
    assert [x["error"] is None for x in ran.json] == [True, False]
    assert "too warm" in ran.json[1]["error"]
    assert "Failed review.md, item 2: " in ran.err
    assert told(ran.err) == "2 items: 1 for the authors, 1 failed"
    service.replies.append(GOOD)
    ran = filled("review", given_review(), "--json")
    assert (ran.code, ran.json[1]["error"]) == (0, None)


def test_the_paper_under_review_comes_first(filled: Rag, service: Service) -> None:
    service.replies.append(GOOD)
    ran = filled("review", given_review(), "--json", "--about", "alpha")
    own, related = ran.json
    assert related["answer"]["papers"] == [
        {
            "paper_id": "alpha",
            "title": "AlphaNet",
            "sources": [{"file": "papers.jsonl", "position": 1}],
        }
    ]
    assert "alpha" not in [c["paper_id"] for c in own["closest"]]
    (prompt,) = {r.body["messages"][1]["content"].split("\n\n")[0] for r in service.chats}
    assert "BetaNet" not in prompt
    assert "GammaNet" not in prompt


def test_other_papers_answer_where_the_one_under_review_does_not(
    filled: Rag, service: Service
) -> None:
    judge(service, lambda asked: 0.9 if "AlphaNet lowers" in asked else 0.1)
    service.replies.append(GOOD)
    ran = filled("review", given_review(), "--json", "--about", "beta")
    assert ran.json[1]["answer"]["text"] == f"{FACT} [alpha]"


def test_papers_that_do_not_answer(filled: Rag, service: Service) -> None:
    service.yes = 0.1
    ran = filled("review", given_review())
    assert ran.code == 3
    assert "**The papers do not answer this.**\n\nClosest papers:\n\n- AlphaNet" in ran.out
    assert told(ran.err) == "2 items: 1 not answered by the papers, 1 for the authors"


def test_responses_are_kept_for_the_user_alone(filled: Rag, service: Service) -> None:
    service.replies.append(GOOD)
    filled("review", given_review())
    assert (state_directory() / "reviews").stat().st_mode & 0o077 == 0


def test_a_dead_endpoint_stops_the_run_and_is_named_once(
    filled: Rag, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAG_LLM_BASE_URL", "http://127.0.0.1:9/v1")
    text = f"QUESTIONS:\n1. {RELATED}\n2. Is BetaNet known in prior work on proteins?\n"
    ran = filled("review", given_review(text))
    assert ran.code == 1
    assert ran.err.count("127.0.0.1:9") == 1
    assert told(ran.err) == "2 items: 2 not worked on"


def test_two_files_are_answered_under_their_names(filled: Rag, service: Service) -> None:
    service.replies.append(GOOD)
    second = given_review(f"QUESTIONS:\n1. {OWN}\n", "b.md")
    ran = filled("review", given_review(), second, "--json")
    assert [(x["review"], x["item"]) for x in ran.json] == [
        ("review.md", 1),
        ("review.md", 2),
        ("b.md", 1),
    ]
    assert told(ran.err) == "3 items: 1 answered, 2 for the authors"


def test_what_stops_a_run_leaves_the_rest_open(
    filled: Rag, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = given_review(f"QUESTIONS:\n1. {OWN}\n", "b.md")
    monkeypatch.setenv("RAG_LLM_BASE_URL", "http://127.0.0.1:9/v1")
    ran = filled("review", given_review(), second)
    assert ran.code == 1
    assert told(ran.err) == "3 items: 1 for the authors, 2 not worked on"
    assert ran.out.count("*Not worked on yet: ") == 2


def test_a_paper_that_cannot_be_sought_fails_its_item_alone(filled: Rag, service: Service) -> None:
    usual = service.default
    assert callable(usual)

    def respond(request: Request) -> Response:
        if request.path.endswith("/embeddings") and "ablation" in json.dumps(request.body):
            return error(400, "too long")
        return usual(request)

    service.default = respond
    service.replies.append(GOOD)
    ran = filled("review", given_review(), "--json")
    assert ran.code == 1
    own, related = ran.json
    assert (own["answer"], own["closest"]) == (None, [])
    assert "too long" in own["error"]
    assert related["answer"]["answered"]
