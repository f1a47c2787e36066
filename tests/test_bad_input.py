from __future__ import annotations

import os
import re
import shutil
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest
from doubles.commands import BETA, FACT, QUESTION, RECORDS, Rag, failed, reply, write
from doubles.service import Service

from rag.cli import entry
from rag.store.directory import writer_lock


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("empty.txt", b" \n", "is empty. Give a file with abstracts, or leave it out."),
        (
            "list.txt",
            bytes(range(256)) * 4,
            "cannot be read. It is a binary file, not text. Give a text, JSON or JSONL file.",
        ),
    ],
)
def test_a_file_that_is_no_text(rag: Rag, name: str, content: bytes, reason: str) -> None:
    Path(name).write_bytes(content)
    reason = f"'{Path(name).resolve()}' {reason}"
    ran = rag("ingest", name)
    assert ran.code == 1
    assert ran.err == f"Rejected {name}: {reason}\n"
    assert rag("ingest", name, "--json").json["rejected"] == [
        {"source": name, "position": 0, "line": 0, "reason": reason}
    ]


def test_a_missing_file_is_named_and_the_others_are_taken(rag: Rag) -> None:
    write("papers.jsonl", *RECORDS)
    ran = rag("ingest", "nowhere.txt", "papers.jsonl", "--json")
    assert ran.code == 1
    assert ran.json["added"] == 3
    reason = "There is no file or folder 'nowhere.txt'. Check the path."
    (rejected,) = ran.json["rejected"]
    assert rejected == {"source": "nowhere.txt", "position": 0, "line": 0, "reason": reason}
    assert ran.err == f"Rejected nowhere.txt: {reason}\n"
    shutil.rmtree("vectorstore")
    alone = rag("ingest", "nowhere.txt")
    assert (alone.code, alone.err) == (1, f"Rejected nowhere.txt: {reason}\n")
    assert alone.out.startswith("0 added")


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"id": "x", "abstract": ""}, None),
        ({"id": "x", "title": "No abstract"}, None),
        ({"id": "x", "abstract": "Withdrawn"}, "The abstract has 1 word; 5 words are the least."),
    ],
)
def test_a_record_without_a_real_abstract_is_rejected_with_its_place(
    rag: Rag, record: dict[str, str], reason: str | None
) -> None:
    ran = rag("ingest", write("papers.jsonl", RECORDS[0], record), "--json")
    assert ran.code == 0
    (rejected,) = ran.json["rejected"]
    assert (rejected["source"], rejected["position"]) == ("papers.jsonl", 2)
    assert "abstract" in rejected["reason"]
    assert reason is None or rejected["reason"] == reason
    alone = rag("ingest", write("alone.jsonl", record), "--store", "other", "--json")
    assert (alone.code, alone.json["papers"]) == (1, 0)


def test_a_hundred_thousand_words_are_found_and_quoted_in_short(rag: Rag, service: Service) -> None:
    words = "It begins. " + " ".join(f"w{n}" for n in range(99_990)) + " protein folding ends it."
    assert rag("ingest", write("long.jsonl", RECORDS[0], {"id": "l", "abstract": words})).code == 0
    (hit, _) = rag("search", "protein folding", "--json").json
    assert hit["paper_id"] == "l"
    assert all(len(e["text"]) <= 1_000 for e in hit["evidence"])
    assert "protein folding ends it." in hit["evidence"][-1]["text"]
    service.replies.append(reply(("The protein folding ends it.", [1])))
    assert rag("ask", "protein folding").code in (0, 3)
    assert max(len(str(chat.body["messages"])) for chat in service.chats) < 8_000


def test_an_id_used_twice_loses_neither_silently(rag: Rag) -> None:
    other = {"id": "alpha", "abstract": BETA}
    ran = rag("ingest", write("papers.jsonl", RECORDS[0], other), "--json")
    assert ran.code == 0
    reason = (
        "ID alpha is already that of papers.jsonl, record 1, a different paper (alpha). Both are "
        "kept, this one as alpha~2; if they are one paper, remove one with `rag remove ID`."
    )
    assert ran.json["conflicts"] == [
        {
            "paper_id": "alpha~2",
            "source": "papers.jsonl",
            "position": 2,
            "line": 2,
            "other_id": "alpha",
            "other": {"file": "papers.jsonl", "position": 1},
            "reason": reason,
        }
    ]
    assert ran.err == f"Conflict papers.jsonl, line 2, record 2: {reason}\n"
    assert rag("show", "alpha~2", "--json").json["text"] == BETA


@pytest.mark.parametrize("command", ["ask", "search"])
def test_an_empty_question(filled: Rag, command: str) -> None:
    message = 'The question is empty. Ask something, as in: rag ask "What is ...?"'
    failed(filled(command, " "), 2, message)
    failed(filled(command, stdin=b"\n"), 2, message)
    failed(filled(command, "-", stdin=b""), 2, message)
    nothing = 'Nothing to look for. Give it in quotes, or through a pipe: rag ask "..."'
    failed(filled(command), 2, nothing)


@pytest.mark.parametrize("command", ["ask", "search"])
def test_a_question_of_fifty_thousand_characters(filled: Rag, command: str) -> None:
    message = (
        "The question has 50,000 characters; at most 8,000 can be read at once. "
        "Ask its parts one by one."
    )
    failed(filled(command, "a" * 50_000), 2, message)
    failed(filled(command, stdin=b"a" * 50_000), 2, message)


def test_a_question_from_a_pipe(filled: Rag, service: Service) -> None:
    service.replies.append(reply((FACT, [1])))
    ran = filled("ask", "--json", stdin=f"{QUESTION}\r\n".encode())
    assert (ran.code, ran.json["question"]) == (0, QUESTION)
    latin = filled("search", "--json", stdin="graph caf\xe9".encode("latin-1"))
    assert (latin.code, len(latin.json)) == (0, 3)


def test_an_unknown_id(filled: Rag) -> None:
    failed(
        filled("show", "alfa"), 2, "There is no paper 'alfa' in the store. Closest: alpha, gamma."
    )
    far = "There is no paper 'q\\x1b[31m9' in the store. Run `rag papers` for the list."
    failed(filled("show", "q\x1b[31m9"), 2, far)


def test_links_that_lead_nowhere_and_endless_names_stop_nothing(rag: Rag) -> None:
    Path("in").mkdir()
    write("in/papers.jsonl", *RECORDS)
    links = {"broken.txt": "nowhere", "loop.jsonl": "loop.jsonl"}
    for name, target in links.items():
        Path("in", name).symlink_to(target)
    long = "a" * 300
    ran = rag("ingest", "in", long, "in/loop.jsonl", "--json")
    assert (ran.code, ran.json["added"]) == (1, 3)
    reasons = {item["source"]: item["reason"] for item in ran.json["rejected"]}
    here = Path("in").resolve()
    no_file = "is no file. Check the path and its permissions."
    assert reasons == {
        long: f"'{long}' cannot be read: file name too long. Check the path and its permissions.",
        **{f"in/{name}": f"'{here / name}' {no_file}" for name in links},
    }


def test_what_may_not_be_read_is_not_refused_as_a_mistake_of_usage(
    rag: Rag, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("papers.jsonl", *RECORDS)
    write("locked.jsonl", *RECORDS)
    opens, asks = Path.open, os.access

    def open_(path: Path, *arguments: Any, **named: Any) -> Any:
        if path.name == "locked.jsonl":
            raise PermissionError(13, "Permission denied")
        return opens(path, *arguments, **named)

    monkeypatch.setattr(Path, "open", open_)
    monkeypatch.setattr(os, "access", lambda p, m: "locked" not in str(p) and asks(p, m))
    ran = rag("ingest", "locked.jsonl", "papers.jsonl", "--store", "locked-too", "--json")
    assert (ran.code, ran.json["added"]) == (1, 3)
    (rejected,) = ran.json["rejected"]
    assert rejected["reason"] == (
        f"'{Path('locked.jsonl').resolve()}' cannot be read: permission denied. "
        "Check its permissions."
    )


def test_arguments_that_are_not_text(filled: Rag) -> None:
    message = "There is no paper '{}' in the store. Run `rag papers` for the list."
    failed(filled("show", "zz\udcc3\udca9zz"), 2, message.format("zzézz"))
    failed(filled("show", "zz\udce9zz"), 2, message.format("zz\ufffdzz"))
    assert filled("search", "gr\udce9ph graph", "--json").code == 0


def test_help_has_a_short_option_everywhere(rag: Rag) -> None:
    for command in ((), ("search",), ("index",), ("index", "rebuild")):
        ran = rag(*command, "-h")
        assert (ran.code, ran.err) == (0, "")
        assert ran.out == rag(*command, "--help").out


NO_STORE = (
    "There is no store at vectorstore yet. Run `rag ingest PATH...` to make one, or name another "
    "with --store DIR."
)


@pytest.mark.parametrize(
    "command", [("papers",), ("show", "x"), ("search", "x"), ("ask", "x"), ("index", "rebuild")]
)
def test_no_store_yet(rag: Rag, command: tuple[str, ...]) -> None:
    failed(rag(*command), 1, NO_STORE)
    assert not Path("vectorstore").exists()


def test_a_store_of_another_model(filled: Rag, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAG_EMBEDDING_MODEL", "another")
    for command in (("search", "x"), ("ask", "x"), ("ingest", "papers.jsonl")):
        ran = filled(*command)
        assert (ran.code, ran.out) == (1, "")
        assert ran.err.startswith(
            "The store at vectorstore was built with embedding endpoint:word-"
        )
        assert "now in use: embedding endpoint:another@512" in ran.err
        assert "`rag index rebuild`" in ran.err
    assert len(filled("papers", "--json").json) == 3
    assert filled("index", "rebuild").code == 0
    assert filled("search", "graph", "--json").code == 0


@pytest.mark.parametrize("size", [0, 100, 0.5])
def test_a_damaged_catalog(filled: Rag, size: float) -> None:
    catalog = Path("vectorstore/papers.sqlite")
    content = catalog.read_bytes()
    catalog.write_bytes(content[: int(size * len(content)) if size < 1 else int(size)])
    for command in (("papers",), ("search", "x"), ("ask", "x"), ("ingest", "papers.jsonl")):
        ran = filled(*command)
        assert (ran.code, ran.out) == (1, ""), command
        assert "papers.sqlite" in ran.err
        assert "rag ingest PATH..." in ran.err


def test_a_deleted_index_is_no_loss(filled: Rag) -> None:
    whole = filled("search", "graph noise", "--json").json
    for part in ("chroma", "bm25"):
        shutil.rmtree(Path("vectorstore", part))
    assert filled("search", "graph noise", "--json").json == whole
    assert filled("ingest", "papers.jsonl").code == 0
    assert Path("vectorstore/chroma").is_dir()
    assert filled("search", "graph noise", "--json").json == whole


def test_an_emptied_word_index_is_made_in_memory_and_check_names_it(filled: Rag) -> None:
    whole = filled("search", "graph noise", "--json").json
    for file in Path("vectorstore/bm25").rglob("*.*"):
        file.write_bytes(b"\x00")
    assert filled("search", "graph noise", "--json").json == whole
    ran = filled("index", "check")
    assert ran.code == 1
    assert "the word index is missing" in ran.out
    assert "Run `rag index rebuild`." in ran.out
    assert filled("index", "rebuild").code == 0
    assert filled("index", "check").code == 0


def test_a_damaged_word_index_names_the_command_that_mends_it(filled: Rag) -> None:
    for file in Path("vectorstore/bm25").rglob("*.*"):
        if file.is_file():
            file.write_bytes(b"\x00" * 8192)
    ran = filled("search", "graph")
    assert (ran.code, ran.out) == (1, "")
    assert "is damaged or of another version" in ran.err
    assert "Run `rag index rebuild`" in ran.err
    assert filled("index", "rebuild").code == 0
    assert filled("search", "graph").code == 0


def test_a_full_disk(rag: Rag, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10, 10, 0))
    ran = rag("ingest", write("papers.jsonl", *RECORDS))
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("There is no space left on the disk of vectorstore.")


def test_a_second_writer_is_told_who_writes(filled: Rag) -> None:
    with writer_lock(Path("vectorstore")):
        failed(
            filled("ingest", "papers.jsonl"),
            1,
            f"The index at vectorstore is being written by PID {os.getpid()}. Nothing was "
            "changed: wait until it is done, then run the command again.",
        )
        assert filled("search", "graph").code == 0
    assert filled("ingest", "papers.jsonl").code == 0


def test_usage_errors_exit_with_2(rag: Rag) -> None:
    for arguments in (("ask", "x", "--nonsense"), ("nonsense",), ("search", "x", "--k", "0"), ()):
        ran = rag(*arguments)
        assert (ran.code, ran.out) == (2, ""), arguments
        assert "Usage: rag" in ran.err


def test_a_setting_that_does_not_fit(rag: Rag, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAG_LLM_MODLE", "x")
    message = (
        "Settings from the environment do not fit: RAG_LLM_MODLE: unknown setting "
        "(is RAG_LLM_MODEL meant?). Correct or remove them."
    )
    for command in (("ask", "x"), ("papers",), ("doctor",)):
        failed(rag(*command), 2, message)


def test_an_unforeseen_error_leaves_its_traceback_in_a_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], isolated: Path
) -> None:
    def burst() -> None:
        raise ZeroDivisionError("by\nzero")

    monkeypatch.setattr("rag.cli.app.app", lambda **_: burst())
    assert entry.run() == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    said = re.fullmatch(
        r"Internal error: ZeroDivisionError: by zero\. Details are in (.+\.txt)\. "
        r"Please report it with that file\.\n",
        shown.err,
    )
    assert said
    assert isolated in Path(said[1]).parents
    assert "ZeroDivisionError" in Path(said[1]).read_text()
