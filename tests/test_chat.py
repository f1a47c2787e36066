from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from doubles.commands import FACT, QUESTION, RECORDS, UNSEEN, Rag, reply, write
from doubles.endpoint import error
from doubles.service import Service
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag.chat import export
from rag.chat.exchanges import replay
from rag.chat.line import LONGEST
from rag.chat.sessions import (
    listed,
    read_session,
    sessions_directory,
)

ANSWERED = reply((FACT, [1]))
ODD = "a\x1b[31m*b* <i>`c` [d](e) \u202e\U000e0041"


def piped(*lines: str) -> bytes:
    return "".join(line + "\n" for line in lines).encode()


def kept() -> list[dict[str, Any]]:
    (path,) = sessions_directory().glob("*.jsonl")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_each_line_of_a_pipe_is_answered(filled: Rag, service: Service) -> None:
    service.replies += [ANSWERED, "In how many seconds does BetaNet fold?"]
    service.replies.append(reply(("BetaNet folds a protein in 7 seconds.", [1])))
    ran = filled("chat", stdin=piped(QUESTION, "", "and BetaNet?"))
    assert ran.code == 0
    assert f"> {QUESTION}\n{FACT} [alpha]\n" in ran.out
    assert "> and BetaNet?\nBetaNet folds a protein in 7 seconds. [beta]\n" in ran.out
    assert ran.err == "Understood as: In how many seconds does BetaNet fold?\n"
    assert "\x1b" not in ran.out + ran.err
    assert [r["type"] for r in kept()] == ["session", *["question", "answer"] * 2]


def test_each_question_of_a_pipe_is_a_line_of_json(filled: Rag, service: Service) -> None:
    service.replies += [ANSWERED, error(500, "out of order"), reply(("\u2028" + FACT, [1]))]
    lines = (QUESTION, "/search noise", "💡 ?!", QUESTION, f"核 {QUESTION}")
    ran = filled("chat", "--json", "--no-save", stdin=piped(*lines))
    assert ran.code == 1
    rows = [json.loads(line) for line in ran.out.splitlines()]
    service.replies.append(ANSWERED)
    asked = filled("ask", "--json", QUESTION).json
    assert {**rows[0], "seconds": {}} == {**asked, "seconds": {}}
    assert [(row["question"], row.get("answered")) for row in rows] == [
        (QUESTION, True),
        ("💡 ?!", None),
        (QUESTION, None),
        (f"核 {QUESTION}", True),
    ]
    assert "out of order" in rows[2]["error"]
    said = [line for line in ran.err.splitlines() if line.startswith("Line ")]
    assert [f"Line {n}: {row['error']}" for n, row in zip((3, 4), rows[1:3], strict=True)] == said
    assert "alpha  AlphaNet" in ran.err
    assert ran.out.isascii()


def test_exit_codes_of_a_pipe(filled: Rag, service: Service) -> None:
    service.yes = 0.1
    ran = filled("chat", stdin=piped(QUESTION))
    assert ran.code == 3
    assert "The papers do not answer this.\n\nClosest papers\n  alpha  AlphaNet" in ran.out
    service.yes = 0.9
    service.replies += [ANSWERED, error(500, "out of order")]
    ran = filled("chat", stdin=piped(QUESTION, QUESTION))
    assert ran.code == 1
    assert FACT in ran.out
    assert "out of order" in ran.err
    assert filled("chat", stdin=b"").code == 0
    assert filled("chat", stdin=piped("?!")).code == 1
    assert filled("chat", stdin=piped("/exit", "/nope")).code == 0


def test_without_a_store_nothing_begins(rag: Rag) -> None:
    ran = rag("chat", stdin=piped(QUESTION))
    assert (ran.code, ran.out) == (1, "")
    assert "rag ingest" in ran.err
    assert not sessions_directory().exists()


@pytest.mark.parametrize(
    "options",
    [("--continue", "--no-save"), ("--session", "a", "-c"), ("--no-save", "--session", "")],
)
def test_options_that_contradict_each_other(filled: Rag, options: tuple[str, ...]) -> None:
    ran = filled("chat", *options, stdin=b"")
    assert ran.code == 2
    assert "only one can be given" in ran.err


COMMANDS_AND_WHAT_THEY_SHOW = [
    ("/help", ["/sources", "/filter [CONDITIONS]", "Ctrl-D leaves"]),
    ("/sources", ["Sources\n  alpha  AlphaNet  (papers.jsonl:1)", f"“{FACT}”"]),
    ("/why", [f"Searched for: {QUESTION}", "  1* 1.000", "alpha  AlphaNet", "* cited"]),
    ("/show gamma", ["GammaNet: Images", "authors   Ann, Bo"]),
    ("/show 1", ["ID        alpha", "year      2026"]),
    ("/search protein", ["  1. 1.000  beta"]),
    ("/tokens", ["Last answer: 800 tokens read, 60 written.", "with the last 1 of 1 turns"]),
    ("/model", ["scripted at http://127.0.0.1:", "4096 tokens of context"]),
    ("/filter", ["No filter. /filter year=2024-2026 venue="]),
    ("/filter year=2026", ["Filter: year=2026. 1 of 3 papers remain."]),
    ("/filter year=1999", ["0 of 3 papers remain. 2 of 3 carry no year."]),
    ("/filter keyword=noise", ["Filter: keyword=noise. 3 of 3 papers remain.\n"]),
    ("/filter clear", ["No filter. 3 of 3 papers remain."]),
    ("/clear", []),
]


@pytest.mark.parametrize(("line", "shown"), COMMANDS_AND_WHAT_THEY_SHOW)
def test_commands(filled: Rag, service: Service, line: str, shown: list[str]) -> None:
    service.replies.append(ANSWERED)
    ran = filled("chat", "--no-save", stdin=piped(QUESTION, line))
    assert ran.code == 0, ran.err
    behind = ran.out.split("scripted\n", 1)[1]
    assert [text for text in shown if text not in behind] == []


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/nope", "There is no command /nope. /help lists them all."),
        ("/sorces", "There is no command /sorces. Is /sources meant? /help lists them all."),
        ("/show", "Which paper? /show ID, or its place in the last list: /show 2"),
        ("/show zeta", "There is no paper 'zeta' in the store. Closest: beta."),
        ("/search", "Search for what? /search TEXT"),
        ("/save", "Save it where? /save FILE.md"),
        ("/save a.md", "There is nothing to save yet."),
        ("/sources", "There is no answer yet. Ask a question first."),
        ("/why", "There is no answer yet. Ask a question first."),
        ("/retry", "There is nothing to ask again yet."),
        ("/clear foo", "/clear takes nothing behind it: 'foo' is too much."),
        ("/EXIT now", "/exit takes nothing behind it: 'now' is too much."),
        ("/filter yeer=1", "'yeer=1' is no condition. Is year=... meant?"),
    ],
)
def test_commands_that_lack_something_say_so_and_the_chat_goes_on(
    filled: Rag, service: Service, line: str, said: str
) -> None:
    service.replies.append(ANSWERED)
    ran = filled("chat", "--no-save", stdin=piped(line, QUESTION))
    assert ran.code == 1
    assert ran.err.startswith(f"Line 1: {said}")
    assert FACT in ran.out


def test_a_filter_narrows_what_is_answered_from(filled: Rag, service: Service) -> None:
    service.yes = 0.1
    lines = ("/filter keyword=protein", QUESTION, "/search noise", "/filter year=1999", QUESTION)
    ran = filled("chat", stdin=piped(*lines))
    assert ran.code == 1
    assert "Closest papers\n  beta  " in ran.out
    assert "alpha" not in ran.out
    assert "No paper is left by the filter year=1999." in ran.err
    ran = filled("chat", "--continue", stdin=piped("/filter"))
    assert ran.out == "Filter: year=1999. /filter clear takes it off.\n"


def test_retry_asks_again_and_takes_the_place_of_the_last(filled: Rag, service: Service) -> None:
    service.replies += [error(500, "out of order"), ANSWERED, ANSWERED]
    ran = filled("chat", "--session", "a", stdin=piped(QUESTION, "/retry", f"/retry {QUESTION}"))
    assert ran.code == 1
    assert ran.out.count(FACT + " [alpha]") == 2
    past = replay(read_session("a")[0])
    assert [(e.question, e.error) for e in past.exchanges] == [(QUESTION, "")]


def test_whatever_comes_of_asking_again_the_answer_before_is_kept(
    filled: Rag, service: Service
) -> None:
    service.replies += [ANSWERED, error(500, "out of order")]
    ran = filled("chat", "--session", "a", stdin=piped(QUESTION, "/retry", "/sources"))
    assert "out of order" in ran.err
    assert ran.out.count("Sources\n  alpha") == 2
    past = replay(read_session("a")[0]).exchanges
    assert [(e.whole, e.retry) for e in past] == [(True, False), (False, True)]


def test_tokens_of_answers_that_others_took_the_place_of_are_counted(
    filled: Rag, service: Service
) -> None:
    service.replies += [ANSWERED, ANSWERED, error(500, "out of order")]
    lines = (QUESTION, "/retry", "/retry", "/tokens")
    ran = filled("chat", "--session", "a", stdin=piped(*lines))
    # Of the failed one, the question whether the papers answer.
    assert "This conversation: 2000 read, 150 written.\n" in ran.out
    ran = filled("chat", "--continue", stdin=piped("/tokens"))
    assert "This conversation: 2000 read, 150 written.\n" in ran.out


def test_a_line_of_a_pipe_that_is_too_long_is_refused_whole(filled: Rag, service: Service) -> None:
    service.replies.append(ANSWERED)
    too_long = "/search " + "x" * LONGEST + " " + QUESTION
    ran = filled("chat", "--no-save", stdin=piped(too_long, QUESTION))
    assert ran.code == 1
    assert (
        ran.err == f"Line 1: A line has more than {LONGEST} bytes. Put a question on each line.\n"
    )
    assert ran.out.count(QUESTION) == 1
    for end in ("\n", "\r\n", ""):
        fits = "/x".ljust(LONGEST - end.count("\r"), "x") + end
        ran = filled("chat", "--no-save", stdin=fits.encode())
        assert ran.err.startswith("Line 1: There is no command /xxx")
        ran = filled("chat", "--no-save", stdin=f"{'x' * 3 * LONGEST}xx{end}".encode())
        assert ran.err.startswith("Line 1: A line has more than")


def test_clear_forgets_the_conversation_but_keeps_it_in_the_session(
    filled: Rag, service: Service
) -> None:
    service.replies += [ANSWERED, ANSWERED]
    ran = filled("chat", "--session", "a", stdin=piped(QUESTION, "/clear", "and the noise?"))
    assert ran.code == 0
    assert "Understood as" not in ran.err
    assert len(replay(read_session("a")[0]).exchanges) == 2
    ran = filled("chat", "--session", "a", stdin=piped("/tokens"))
    assert "with the last 1 of 1 turns" in ran.out


def test_another_model_of_the_endpoint(filled: Rag, service: Service) -> None:
    service.replies.append(ANSWERED)
    ran = filled("chat", "--no-save", stdin=piped("/model other", QUESTION))
    assert "other at http://" in ran.out
    assert ran.err == "The endpoint does not list other. It lists: scripted.\n"
    assert service.chats[-1].body["model"] == "other"


def test_the_store_may_change_or_go_in_the_middle(filled: Rag, service: Service) -> None:
    # The endpoint does what somebody else would do between two questions.
    def another_store(_: object) -> Any:
        Path("vectorstore").rename("moved")
        return error(500, "out of order")

    service.replies += [ANSWERED]
    service.replies.append(another_store)
    ran = filled("chat", "--no-save", stdin=piped(QUESTION, QUESTION, QUESTION, "/help"))
    assert ran.code == 1
    refused, *others = ran.err.splitlines()
    assert 'The server says: "out of order".' in refused
    gone = "Line 3: There is no store at vectorstore yet. Run `rag ingest PATH...` to make one, or "
    assert others == [gone + "name another with --store DIR."]
    assert "/sources" in ran.out


def test_no_save_leaves_no_trace(filled: Rag, service: Service, isolated: Path) -> None:
    service.replies.append(ANSWERED)
    before = sorted(isolated.glob("*"))
    assert filled("chat", "--no-save", stdin=piped(QUESTION)).code == 0
    assert (
        sorted(isolated.glob("*"))
        == before
        == [Path.cwd() / "papers.jsonl", Path.cwd() / "vectorstore"]
    )


NO_FILES = [
    *(
        "/nowhere/x\0",
        "papers.jsonl/x.md",
        "papers.jsonl",
        "~nobody-of-this-name/x",
        "~/..",
        "核" * 200,
    ),
    *("/", ".", "..", "vectorstore", "a.md", "\udcff.md", "/dev/null", "-"),
]

TYPED = st.one_of(
    st.sampled_from(
        [
            *(line for line, _ in COMMANDS_AND_WHAT_THEY_SHOW),
            *("/retry", "/exit now", "/", "/filter year=\0", "/show [alpha]"),
            *(f"/save {name}" for name in NO_FILES),
            *(
                QUESTION,
                "and on it?",
                "the second one?",
                "which of these?",
                "核会改变吗？",
                "\x03\x04\x1b[A",
            ),
        ]
    ),
    st.text(max_size=30),
    st.text(max_size=20).map(lambda text: f"/{text}"),
    st.sampled_from(["x", "词", "/show ", "\udcff"]).map(lambda text: text * 9_000),
)


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(first=st.sampled_from([[], [QUESTION]]), lines=st.lists(TYPED, max_size=6))
def test_whatever_is_typed_the_chat_goes_on_and_its_session_stays_readable(
    filled: Rag, service: Service, first: list[str], lines: list[str]
) -> None:
    service.replies.clear()
    service.replies += [ANSWERED] * 60
    data = "".join(f"{line}\n" for line in [*first, *lines, "/help"]).encode(
        "utf-8", "surrogatepass"
    )
    ran = filled("chat", "--session", "all", stdin=data)
    assert ran.code in (0, 1, 3)
    assert not UNSEEN.search(ran.out + ran.err)
    if not any(line.casefold().strip() == "/exit" for text in lines for line in text.splitlines()):
        assert "/sources" in ran.out
    path = sessions_directory() / "all.jsonl"
    for line in path.read_bytes().split(b"\n")[:-1] if path.exists() else ():
        assert isinstance(json.loads(line), dict)
    if path.exists():
        export.markdown("all", replay(read_session("all")[0]).exchanges)


def test_hostile_text_changes_nothing_in_a_chat(rag: Rag, service: Service) -> None:
    hostile = {"id": "evil", "title": "\x1b]0;T\x07 [red]Evil", "abstract": f"{ODD} graph noise 5."}
    assert rag("ingest", write("papers.jsonl", hostile, *RECORDS)).code == 0
    service.replies += [reply((f"{ODD} 5 \x1b[2J", [1])), f"\x1b[2J{QUESTION}", ANSWERED]
    lines = (f"{ODD} graph noise?", "/sources", "/why", "/show evil", "and \x1b[2J it?")
    ran = rag("chat", "--session", "evil", stdin=piped(*lines))
    assert not UNSEEN.search(ran.out + ran.err)
    assert not UNSEEN.search(rag("sessions").out)
    assert not UNSEEN.search(rag("sessions", "export", "evil").out)
    assert listed()[0].questions == 2
