from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from doubles.chat import USAGE, QueueChat
from doubles.commands import BETA, FACT, QUESTION, Rag, reply, write
from doubles.service import Service

from rag import prompts
from rag.answer import Turn
from rag.batch import identity as identity_module
from rag.batch.answering import Answering
from rag.batch.cache import AnswerCache
from rag.batch.engine import run_all
from rag.batch.journal import Journal
from rag.batch.metered import Metered
from rag.chat_model import ChatModel, Reply
from rag.config import Settings, load_settings
from rag.errors import EndpointDownError, StoreError
from rag.llm import open_chat
from rag.session import open_search
from rag.store.catalog import Catalog
from rag.types import Usage

DELTA = "DeltaNet folds a graph in two days."
GOOD = reply((FACT, [1]))
Make = Callable[..., Answering]


@pytest.fixture
def make(filled: Rag) -> Iterator[Make]:
    """Answering over the filled store; `model` is a queue of replies unless given."""
    with ExitStack() as held:

        def made(
            *replies: str | Reply,
            cache: AnswerCache | None = None,
            model: ChatModel | None = None,
            **settings: Any,
        ) -> Answering:
            chosen = load_settings(overrides=settings)
            search = held.enter_context(open_search(chosen))
            chat = model or QueueChat()
            if isinstance(chat, QueueChat):
                chat.replies.extend(replies)
            return Answering(search, chat, chosen, cache)

        yield made


@pytest.fixture
def cache() -> Iterator[AnswerCache]:
    with AnswerCache(Path("answers.sqlite")) as opened:
        yield opened


def test_a_line_has_all_that_is_documented(make: Make) -> None:
    answering = make(GOOD)
    found = answering.line("q1", QUESTION, (), 2)
    assert list(found) == [
        "id", "question", "asked", "attempt", "seed", "made_with", "prompt_hash", "at", "cached",
        "answer", "notes", "retrieved", "unknown_ids", "error", "spent",
    ]  # fmt: skip
    assert {k: found[k] for k in ("id", "question", "attempt", "seed", "cached", "error")} == {
        "id": "q1",
        "question": QUESTION,
        "attempt": 2,
        "seed": 0,
        "cached": False,
        "error": None,
    }
    assert found["made_with"] == answering.made_with
    assert found["prompt_hash"] == answering.identity["prompts"]
    assert (found["notes"], found["unknown_ids"]) == ([], [])
    assert found["answer"]["text"] == f"{FACT} [alpha]"
    assert list(found["answer"]) == [
        "question", "answered", "confidence", "text", "statements", "papers", "model", "usage",
        "seconds",
    ]  # fmt: skip
    assert [row["paper_id"] for row in found["retrieved"]] == ["alpha", "gamma", "beta"]
    assert {k: v for k, v in found["retrieved"][0].items() if k != "score"} == {
        "rank": 1,
        "paper_id": "alpha",
        "title": "AlphaNet",
        "dense_rank": 1,
        "lexical_rank": 1,
    }
    assert found["spent"] == {"prompt_tokens": 20, "completion_tokens": 4}
    json.dumps(found)


def test_an_error_of_one_question_is_its_lines_error_with_what_it_cost(make: Make) -> None:
    found = make("no JSON").line("q1", QUESTION, (), 1)
    assert found["answer"] is None
    assert found["error"].startswith("queue did not reply in the JSON")
    assert (found["retrieved"], found["notes"], found["unknown_ids"]) == ([], [], [])
    assert found["spent"] == {"prompt_tokens": 20, "completion_tokens": 4}
    assert make().line("q1", "x" * 9000, (), 1)["error"].startswith("The question has 9,000")
    unforeseen = make().line("q1", QUESTION, (), 1)  # the queue is empty
    assert unforeseen["error"].startswith("Internal error: IndexError: ")


def test_an_error_of_every_question_is_raised(make: Make) -> None:
    class Down(QueueChat):
        def yes_probability(self, messages: Any) -> Any:
            raise EndpointDownError("No quota left.")

    with pytest.raises(EndpointDownError):
        make(model=Down()).line("q1", QUESTION, (), 1)


# Cached answers.


def test_an_answer_is_asked_for_once(make: Make, cache: AnswerCache) -> None:
    first = make(GOOD, cache=cache).line("q1", QUESTION, (), 1)
    second = make(cache=cache).line("other", QUESTION, (), 3)
    assert (first["cached"], second["cached"]) == (False, True)
    for field in ("answer", "notes", "retrieved", "unknown_ids", "made_with", "error"):
        assert second[field] == first[field]
    assert (second["id"], second["attempt"]) == ("other", 3)
    assert second["spent"] == {"prompt_tokens": 0, "completion_tokens": 0}


def test_another_question_history_or_setting_is_asked_anew(make: Make, cache: AnswerCache) -> None:
    made = make(*[GOOD] * 4, cache=cache)
    assert not made.line("a", QUESTION, (), 1)["cached"]
    assert not made.line("a", QUESTION.upper(), (), 1)["cached"]
    turn = (Turn("What is AlphaNet?", "A net."),)
    rewritten = make(QUESTION, GOOD, cache=cache)
    assert not rewritten.line("a", "By how much does it?", turn, 1)["cached"]
    assert rewritten.line("a", "By how much does it?", turn, 1)["cached"]
    for changed in (
        {"answer": {"seed": 1}},
        {"answer": {"evidence_tokens": 600}},
        {"retrieval": {"papers": 5}},
        {"llm": {"context_tokens": 2048}},
        {"llm": {"base_url": "http://127.0.0.1:1/v1"}},
    ):
        assert not make(GOOD, cache=cache, **changed).line("a", QUESTION, (), 1)["cached"]
    other = QueueChat(deque([GOOD]), name="b")
    assert not make(cache=cache, model=other).line("a", QUESTION, (), 1)["cached"]
    same = {"llm": {"timeout_seconds": 7, "max_retries": 5}, "prices": {}}
    assert make(cache=cache, **same).line("a", QUESTION, (), 1)["cached"]


def test_truncated_replies_and_errors_are_not_kept(make: Make, cache: AnswerCache) -> None:
    cut = Reply(GOOD, USAGE, "length", truncated=True)
    assert make(cut, cache=cache).line("a", QUESTION, (), 1)["answer"] is not None
    assert make("no JSON", cache=cache).line("a", QUESTION, (), 1)["error"] is not None
    assert not make(GOOD, cache=cache).line("a", QUESTION, (), 1)["cached"]
    assert make(cache=cache).line("a", QUESTION, (), 1)["cached"]
    # A cut rewriting is a cut reply as well.
    turn = (Turn("x", "y"),)
    rewriting = Reply(QUESTION, USAGE, None, truncated=True)
    cut = make(rewriting, GOOD, cache=cache).line("a", "And it?", turn, 1)
    assert (cut["cached"], cut["error"]) == (False, None)
    assert not make(QUESTION, GOOD, cache=cache).line("a", "And it?", turn, 1)["cached"]


def test_a_hit_shows_where_the_papers_lie_now(make: Make, rag: Rag, cache: AnswerCache) -> None:
    first = make(GOOD, cache=cache).line("a", QUESTION, (), 1)
    Path("papers.jsonl").rename("elsewhere.jsonl")
    assert rag("ingest", "elsewhere.jsonl", "--store", "second").code == 0
    second = make(cache=cache, store=Path("second")).line("a", QUESTION, (), 1)
    assert second["cached"]
    assert first["answer"]["papers"][0]["sources"][0]["file"] == "papers.jsonl"
    assert second["answer"]["papers"][0]["sources"][0]["file"] == "elsewhere.jsonl"


def test_changed_papers_are_another_corpus(make: Make, rag: Rag, cache: AnswerCache) -> None:
    before = make(GOOD, cache=cache)
    before.line("a", QUESTION, (), 1)
    assert rag("ingest", write("new.jsonl", {"id": "d", "abstract": DELTA})).code == 0
    after = make(GOOD, cache=cache)
    assert not after.line("a", QUESTION, (), 1)["cached"]
    assert {k for k in after.identity if after.identity[k] != before.identity[k]} == {"corpus"}
    assert after.made_with != before.made_with


def test_papers_that_change_during_a_run_end_it(make: Make, rag: Rag, cache: AnswerCache) -> None:
    class Ingesting(QueueChat):
        def complete(self, *arguments: Any, **options: Any) -> Reply:
            assert rag("ingest", write("new.jsonl", {"id": "d", "abstract": DELTA})).code == 0
            return super().complete(*arguments, **options)

    made = make(GOOD, GOOD, model=Ingesting(), cache=cache)
    with pytest.raises(StoreError, match="changed while this run was at work"):
        made.line("a", QUESTION, (), 1)
    with pytest.raises(StoreError, match="changed while"):
        made.line("b", QUESTION, (), 1)
    assert not make(GOOD, cache=cache).line("a", QUESTION, (), 1)["cached"]


def test_papers_that_are_only_written_again_do_not_end_it(make: Make, rag: Rag) -> None:
    made = make(GOOD, GOOD)
    made.line("a", QUESTION, (), 1)
    write("again.jsonl", {"id": "beta", "abstract": BETA})
    assert rag("ingest", "again.jsonl").code == 0
    with closing(Catalog.open(Path("vectorstore/papers.sqlite"), write=True)) as catalog:
        catalog.touch()
    assert made.line("b", QUESTION, (), 1)["error"] is None


# What determines an answer.


def test_the_same_papers_elsewhere_in_another_order_are_the_same_corpus(rag: Rag) -> None:
    records = [
        {"id": f"p{n}", "title": f"T{n}", "abstract": f"It has text number {n} of five."}
        for n in range(5)
    ]
    changed = [*records[:4], {**records[4], "year": 2020}]
    digests = []
    for number, papers in enumerate((records, records[::-1], changed)):
        store = Path(f"store{number}")
        assert rag("ingest", write(f"f{number}.jsonl", *papers), "--store", store).code == 0
        with open_search(load_settings(overrides={"store": store})) as search:
            digests.append(search.store.corpus_digest())
    assert digests[0] == digests[1] != digests[2]
    assert len(digests[0]) == 64


def test_the_code_and_the_prompts_count(
    make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = make()
    source = tmp_path / "rag"
    for name in ("__init__.py", "sub/verify.py", "cli/app.py", "sub/data.txt"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("x = 1\n")
    monkeypatch.setattr(identity_module.rag, "__file__", str(source / "__init__.py"))
    first = identity_module.code_digest()
    (source / "cli/app.py").write_text("x = 2\n")
    (source / "sub/data.txt").write_text("x = 2\n")
    assert identity_module.code_digest() == first
    (source / "sub/verify.py").write_text("x = 2\n")
    second = identity_module.code_digest()
    assert second != first
    (source / "sub/verify.py").rename(source / "sub/other.py")
    assert identity_module.code_digest() not in (first, second)
    assert make().made_with != before.made_with
    assert make().identity["prompts"] == identity_module.prompts_digest()
    (tmp_path / "system.md.j2").write_text("Be kind.")
    monkeypatch.setattr(prompts, "directory", lambda: tmp_path)
    assert identity_module.prompts_digest() != before.identity["prompts"]


def test_a_model_file_counts_by_its_content(make: Make) -> None:
    def identity(content: bytes, name: str = "m.gguf") -> str:
        Path(name).write_bytes(content)
        llm = {"model_path": Path(name), "base_url": None}
        return make(llm=llm).identity["endpoint"]

    first = identity(b"GGUF-1")
    assert first.startswith("this machine, sha256:")
    assert identity(b"GGUF-2") != first
    Path("elsewhere").mkdir()
    assert identity(b"GGUF-1", "elsewhere/m.gguf") == first
    assert make(llm={"base_url": None}).identity["endpoint"] == (
        "this machine, sha256:cc324af070c2ecbf"
    )


# The meter.


def test_each_thread_has_a_meter_of_its_own() -> None:
    metered = Metered(QueueChat(deque([GOOD] * 20)))
    ready = threading.Barrier(2)
    counted: dict[int, Usage] = {}

    def work(calls: int) -> None:
        tally = metered.begin()
        ready.wait(10)
        for _ in range(calls):
            metered.complete([], max_tokens=5)
        counted[calls] = tally.usage

    threads = [threading.Thread(target=work, args=(calls,)) for calls in (2, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counted == {2: Usage(20, 4), 5: Usage(50, 10)}
    assert metered.begin().usage == Usage()


def test_tokens_that_an_endpoint_does_not_count_are_estimated() -> None:
    reply = Reply("two words", Usage(), "stop", truncated=False)
    metered = Metered(QueueChat(deque([reply])))
    tally = metered.begin()
    metered.complete([{"role": "user", "content": "one two three"}], max_tokens=5)
    assert tally.usage == Usage(3, 2)
    assert not tally.truncated


def test_answers_of_several_threads_are_those_of_one(filled: Rag, service: Service) -> None:
    def answered(name: str, jobs: int) -> list[Any]:
        settings: Settings = load_settings()
        service.replies.extend([GOOD] * 40)
        questions = [(f"q{n}", f"{QUESTION} And number {n}?") for n in range(40)]
        with (
            Journal.open(Path(name)) as journal,
            open_search(settings) as search,
            open_chat(settings, slots=jobs) as model,
        ):
            answering = Answering(search, model, settings, None)
            run_all(questions, lambda q, a: answering.line(q, q, (), a), journal, jobs=jobs)
            journal.settle([item_id for item_id, _ in questions])
            lines = list(journal.lines())
        for line in lines:
            line.pop("at")
            line["answer"].pop("seconds")
        return lines

    one = answered("one.jsonl", 1)
    assert len(one) == 40
    assert answered("many.jsonl", 8) == one
