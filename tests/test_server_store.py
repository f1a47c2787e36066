"""A store on a Chroma server, against a real one on loopback."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from doubles.chroma import Chroma, executable, free_port
from doubles.commands import ALPHA, FACT, QUESTION, RECORDS, Rag, reply, write
from doubles.embedder import WORDS, WordCountEmbedder
from doubles.service import Service

import rag.store.server.copying
import rag.store.server.lease
import rag.store.server.rest
import rag.store.server.store
import rag.store.server.sync
from rag.config import ServerAddress, load_settings
from rag.entries import entries
from rag.errors import ConfigError, StoreError
from rag.ingest import ingest
from rag.rebuild import rebuild
from rag.removal import plan, remove
from rag.store import fingerprint_of, open_store, store_exists
from rag.store.server.lease import Lease
from rag.store.server.records import FileRecord, Gone, PaperRecord, pack, unpack
from rag.store.server.remote import Remote
from rag.store.server.rest import Rest
from rag.types import Paper, Source

pytestmark = pytest.mark.skipif(executable() is None, reason="chroma is not beside this Python")

EMBEDDER = WordCountEmbedder()
FINGERPRINT = fingerprint_of(EMBEDDER)
Machines = Callable[[str], ServerAddress]


@pytest.fixture(scope="module")
def chroma(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chroma]:
    running = Chroma(tmp_path_factory.mktemp("chroma"))
    running.start()
    yield running
    running.stop()


@pytest.fixture
def machines(chroma: Chroma, tmp_path: Path) -> Machines:
    """The address of one new database, as machines of different names have it."""
    database = chroma.database()
    return lambda name: chroma.address(tmp_path / name, database)


@pytest.fixture(autouse=True)
def always_news(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rag.store.server.store, "NEWS_SECONDS", -1.0)


def paper(paper_id: str, text: str, number: int = 1, **other: Any) -> Paper:
    return Paper(paper_id, f"Title {paper_id}", text, text, (Source("list.txt", number),), **other)


PAPERS = [
    paper("aaa", "A graph of a graph."),
    paper("bbb", "An image with noise. The image is a protein.", 2),
    paper("ccc", "Language and reward.", 3, metadata={"year": 2026, "authors": ["Ä. Ö"]}),
    paper("ddd", "A graph of a graph.", 4),
]


def many() -> list[Paper]:
    """240 papers of two chunks, no two of which count the words alike."""
    found = [c for c in itertools.product(range(3), repeat=6) if 3 <= sum(c) <= 8][:480]
    sentences = [
        " ".join(w for w, n in zip(WORDS, c, strict=True) for _ in range(n)).capitalize() + "."
        for c in found
    ]
    pairs = zip(sentences[::2], sentences[1::2], strict=True)
    texts = [" ".join([a, "Then.", "So.", b]) for a, b in pairs]
    return [Paper(f"p{i:03}", "", t, t, (Source("f", i),)) for i, t in enumerate(texts)]


def fill(where: Path | ServerAddress, papers: Sequence[Paper] = PAPERS) -> None:
    with open_store(where, FINGERPRINT, write=True) as store:
        store.upsert(entries(papers, EMBEDDER))


def tables(where: ServerAddress) -> list[list[Any]]:
    """All that a machine's copy holds, but for the numbers of chunks."""
    with open_store(where, FINGERPRINT) as store:
        return [
            store.catalog.rows("SELECT * FROM papers ORDER BY pk"),
            store.catalog.rows("SELECT * FROM sources ORDER BY pk"),
            store.catalog.rows("SELECT * FROM files ORDER BY name"),
            store.catalog.rows(
                "SELECT paper_pk, number, first, last, vector FROM chunks ORDER BY paper_pk, number"
            ),
            [store.catalog.meta("dimension")],
        ]


def on_server(where: ServerAddress) -> tuple[set[str], dict[str, str]]:
    """Keys of all vectors, and those that papers name with the papers' IDs, straight from there."""
    with closing(Remote(Rest(where))) as remote:
        head = remote.head()
        assert head is not None
        keys: set[str] = set()
        while page := remote.chunks(head).page(len(keys), keys_only=True):
            keys |= set(page)
        records = [unpack(m) for m in remote.papers(head).page(0).values()]
    named = {
        chunk[3]: str(record.row["id"])
        for record in records
        if isinstance(record, PaperRecord)
        for chunk in record.chunks
    }
    return keys, named


# Another machine


def test_another_machine_finds_what_was_stored(machines: Machines) -> None:
    fill(machines("a"))
    with open_store(machines("b"), FINGERPRINT) as store:
        assert list(store.papers()) == PAPERS
        assert store.count() == (4, 4)
        # "graph": (1, ..., 1)/sqrt 2 against (2, ..., 1)/sqrt 5 is 3/sqrt 10.
        assert store.nearest(EMBEDDER.queries(["graph"])[0], 2) == [
            ("aaa", pytest.approx(0.948683)),
            ("ddd", pytest.approx(0.948683)),
        ]
        assert [i for i, _ in store.lexical().rank("graphs", 5)] == ["aaa", "ddd"]
        text = f"{PAPERS[1].title}. {PAPERS[1].text}"
        assert np.array_equal(store.chunks("bbb")[1], EMBEDDER.documents([text]))


@pytest.mark.parametrize("limit", [50_000, 1])
def test_results_are_those_of_a_directory(
    machines: Machines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    fill(tmp_path / "directory", many())
    fill(machines("a"), many())
    queries = ["graph image noise", "protein reward", "noise noise language"]
    among = frozenset(f"p{i:03}" for i in range(5, 230))
    for module in (rag.store.store, rag.store.server.store):
        monkeypatch.setattr(module, "EXACT_LIMIT", limit)
    results = []
    for where in (tmp_path / "directory", machines("a"), machines("b")):
        with open_store(where, FINGERPRINT) as store:
            results.append(
                [
                    (
                        store.nearest(EMBEDDER.queries([query])[0], 20),
                        store.nearest(EMBEDDER.queries([query])[0], 20, among),
                        store.lexical().rank(query, 50, among),
                    )
                    for query in queries
                ]
            )
            assert (store._chroma is not None) == (limit == 1)
    assert results[0] == results[1] == results[2]


def test_every_copy_is_the_writer_s(machines: Machines, tmp_path: Path) -> None:
    texts = [paper.text for paper in many()[:60]]
    lines = [{"id": f"q{i}", "abstract": text, "year": 2000} for i, text in enumerate(texts)]
    first = write("first.jsonl", *lines[:40], {"abstract": "Too short."})
    second = write("second.jsonl", *lines[30:])
    assert ingest([first, second], machines("a"), EMBEDDER).added == 60
    assert tables(machines("b")) == tables(machines("a"))
    # By the other machine: a file that changed, one that shrank, a removal and a new paper.
    write("first.jsonl", {"id": "q0", "abstract": f"{texts[0]} Noise."}, *lines[5:20])
    write("second.jsonl", *lines[35:], {"id": "new", "abstract": "A graph of reward and noise."})
    summary = ingest([first, second], machines("b"), EMBEDDER, sync=True)
    assert (summary.added, summary.updated, summary.removed, summary.papers) == (1, 1, 19, 42)
    assert remove(machines("b"), plan(machines("b"), ["q7"])) == 1
    assert tables(machines("a")) == tables(machines("b")) == tables(machines("c"))
    keys, named = on_server(machines("a"))
    assert keys == set(named)
    embedder = WordCountEmbedder()
    again = ingest([first, second], machines("c"), embedder)
    assert (again.added, again.updated, again.unchanged) == (1, 0, 41)  # q7 is in its file still
    assert len(embedder.embedded) == 2
    assert tables(machines("a")) == tables(machines("c"))


def test_an_open_reader_sees_what_is_acknowledged(machines: Machines) -> None:
    fill(machines("a"))
    query = EMBEDDER.queries(["reward reward reward"])[0]
    with open_store(machines("b"), FINGERPRINT) as reader:
        assert reader.nearest(query, 1)[0][0] == "ccc"
        with open_store(machines("a"), FINGERPRINT, write=True) as writer:
            writer.upsert(entries([paper("eee", "Reward reward reward.")], EMBEDDER))
            writer.catalog.remove(["aaa"])
            writer.finish()
            assert reader.nearest(query, 1)[0][0] == "eee"
            assert [i for i, _ in reader.lexical().rank("graph", 5)] == ["ddd"]


def test_a_copy_that_is_current_costs_three_requests(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(machines("a"))
    asked: list[str] = []
    call = Rest.call

    def counting(self: Rest, method: str, path: str, *rest: Any, **named: Any) -> Any:
        asked.append(path.rsplit("/", 1)[-1])
        return call(self, method, path, *rest, **named)

    monkeypatch.setattr(Rest, "call", counting)
    with open_store(machines("a"), FINGERPRINT) as store:
        assert len(list(store.papers())) == 4
    database = machines("a").database
    assert asked == ["pre-flight-checks", "heartbeat", database, "citewise-meta", "get"]


def test_batches_are_cut_to_what_the_server_takes(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    call = Rest.call

    def counting(self: Rest, method: str, path: str, body: Any = None, **named: Any) -> Any:
        if path == "/pre-flight-checks":
            return {"max_batch_size": 7}
        sizes.append(len((body or {}).get("ids") or ()))
        assert (body or {}).get("n_results", 0) <= 7
        return call(self, method, path, body, **named)

    monkeypatch.setattr(Rest, "call", counting)
    for module in (rag.store.store, rag.store.server.store):
        monkeypatch.setattr(module, "EXACT_LIMIT", 1)
    fill(machines("a"), many()[:30])
    with open_store(machines("b"), FINGERPRINT) as store:
        assert store.count() == (30, 60)
        assert store.nearest(EMBEDDER.queries(["graph"])[0], 2)
    assert max(sizes) == 7


# Writers


def test_of_many_that_want_to_write_exactly_one_does(machines: Machines, tmp_path: Path) -> None:
    fill(machines("a"))
    start = threading.Barrier(6)

    def take(number: int) -> Lease | str:
        rest = Rest(machines(str(number)))
        remote = Remote(rest)
        start.wait()
        try:
            return Lease.take(rest, remote.make(), f"owner {number}")
        except StoreError as error:
            return str(error)

    for _ in range(3):
        with ThreadPoolExecutor(6) as pool:
            found = list(pool.map(take, range(6)))
        (lease,) = [x for x in found if isinstance(x, Lease)]
        refused = [x for x in found if isinstance(x, str)]
        assert len(refused) == 5
        assert all(f"is being written by {lease.holder}" in x for x in refused)
        lease.release()


def test_a_second_writer_is_told_who_writes_and_a_reader_is_not_kept(machines: Machines) -> None:
    with open_store(machines("a"), FINGERPRINT, write=True) as store:
        store.upsert(entries(PAPERS[:2], EMBEDDER))
        for other in ("a", "b"):
            with pytest.raises(StoreError, match=rf"being written by .*PID {os.getpid()}.*again"):
                open_store(machines(other), FINGERPRINT, write=True)
        store.finish()
        for other in ("a", "b"):
            with open_store(machines(other), FINGERPRINT) as reader:
                assert reader.count() == (2, 2)
    fill(machines("b"))


def test_a_lease_that_its_holder_let_end_is_taken_over(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rag.store.server.lease, "LEASE_SECONDS", 0.4)
    monkeypatch.setattr(Lease, "_renew", lambda self: None)
    first = open_store(machines("a"), FINGERPRINT, write=True)
    first.upsert(entries(PAPERS[:1], EMBEDDER))
    with pytest.raises(StoreError, match="being written"):
        open_store(machines("b"), FINGERPRINT, write=True)
    threading.Event().wait(0.5)
    fill(machines("b"), PAPERS[1:])
    with pytest.raises(StoreError, match=r"now being written by .* run the command again later"):
        first.finish()
    first.close()
    assert [p.id for p in papers_of(machines("c"))] == ["bbb", "ccc", "ddd"]
    # What had not reached the server counts no longer, as another machine has written since.
    assert [p.id for p in papers_of(machines("a"))] == ["bbb", "ccc", "ddd"]


def test_a_lease_is_renewed_while_its_holder_embeds(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rag.store.server.lease, "LEASE_SECONDS", 0.8)
    with open_store(machines("a"), FINGERPRINT, write=True) as store:
        threading.Event().wait(1.6)
        with pytest.raises(StoreError, match="being written"):
            open_store(machines("b"), FINGERPRINT, write=True)
        store.upsert(entries(PAPERS, EMBEDDER))
    assert list(papers_of(machines("b"))) == PAPERS


def papers_of(where: ServerAddress) -> list[Paper]:
    with open_store(where, None) as store:
        return list(store.papers())


def die_in_ingest(where: ServerAddress, file: Path, request: int) -> None:
    """Ingest in another process, which is killed before this one of its requests."""
    script = Path(__file__).parent / "doubles" / "server_writer.py"
    command = [sys.executable, script, where.url, where.database, where.cache, file, str(request)]
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    ran = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, check=False)
    assert ran.returncode == -9


# Requests of an ingest of 64 papers, 16 a push: the first one to the last.
@pytest.mark.parametrize("request_number", [8, 12, 13, 18, 19, 20, 21, 24, 25, 33, 39, 40])
def test_a_killed_writer_loses_and_doubles_nothing(machines: Machines, request_number: int) -> None:
    file = write("all.jsonl", *({"id": p.id, "abstract": p.text} for p in many()[:64]))
    here = machines("a")
    die_in_ingest(here, file, request_number)
    # A reader meanwhile sees whole papers only.
    with suppress(StoreError), open_store(machines("reader"), FINGERPRINT) as reader:
        for found in reader.papers():
            assert reader.chunks(found.id)[1].shape == (2, 7)
    embedder = WordCountEmbedder()
    # The same machine need not wait for the lease's end: it knows that its holder is dead.
    summary = ingest([file], here, embedder)
    assert summary.papers == 64
    assert summary.added + summary.unchanged == 64
    assert len(embedder.embedded) == 2 * summary.added
    other = machines("b")
    assert tables(other) == tables(here) == tables(machines("reader"))
    keys, named = on_server(other)
    assert keys == set(named)
    with open_store(other, FINGERPRINT) as store, closing(Remote(Rest(other))) as remote:
        head = remote.head()
        assert head is not None and not head.writing
        for key, paper_id in itertools.islice(named.items(), 0, None, 5):
            vector = remote.chunks(head).vectors([key])[key]
            # Two chunks may count the words alike.
            assert key in remote.chunks(head).query(vector, 3)
            assert (paper_id, 1.0) in store.nearest(vector, 3)


def test_another_machine_goes_on_after_a_killed_one(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write("all.jsonl", *({"id": p.id, "abstract": p.text} for p in many()[:64]))
    here = machines("a")
    die_in_ingest(here, file, 24)
    with pytest.raises(StoreError, match=r"If it has crashed, that is in [3-6][0-9] s"):
        ingest([file], machines("b"), EMBEDDER)
    with closing(Rest(here)) as rest:
        meta = Remote(rest).make()
        (lease,) = [key for key in meta.page(0) if key.startswith("lease-")]
        meta.update(lease, {"ends": 0.0})
    assert ingest([file], machines("b"), EMBEDDER).papers == 64
    assert tables(machines("a")) == tables(machines("b")) == tables(machines("c"))
    keys, named = on_server(here)
    assert keys == set(named)
    assert len(keys) == 128


# Rebuilding, damage and loss


def test_a_rebuild_with_another_model_reaches_every_machine(machines: Machines) -> None:
    fill(machines("a"))
    with open_store(machines("b"), FINGERPRINT) as reader:
        other = WordCountEmbedder("other-model")
        assert rebuild(machines("a"), other).embedded == 4
        with pytest.raises(StoreError, match="rebuilt with embedding other-model"):
            reader.nearest(EMBEDDER.queries(["graph"])[0], 1)
    for write_too in (False, True):
        with pytest.raises(StoreError, match=r"at http://.*built with .*other-model.*word-counts"):
            open_store(machines("b"), FINGERPRINT, write=write_too)
    with open_store(machines("b"), fingerprint_of(other)) as store:
        assert list(store.papers()) == PAPERS
    assert on_server(machines("a"))[0] == set(on_server(machines("a"))[1])
    with closing(Rest(machines("a"))) as rest:
        assert len(rest.collections()) == 3


def test_an_open_reader_follows_a_rebuild(machines: Machines) -> None:
    fill(machines("a"))
    with open_store(machines("b"), FINGERPRINT) as reader:
        assert rebuild(machines("a"), EMBEDDER).embedded == 0
        fill(machines("a"), [paper("eee", "Protein protein.")])
        assert reader.nearest(EMBEDDER.queries(["protein"])[0], 1)[0][0] == "eee"


def test_an_interrupted_rebuild_leaves_the_store_and_embeds_nothing_twice(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(machines("a"))
    new = WordCountEmbedder("new-model")

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Remote, "write_head", stop)
        with pytest.raises(KeyboardInterrupt):
            rebuild(machines("a"), new)
    with open_store(machines("b"), FINGERPRINT) as store:
        assert store.nearest(EMBEDDER.queries(["graph"])[0], 1)[0][0] == "aaa"
    assert rebuild(machines("a"), new).embedded == 0
    assert len(new.embedded) == 4
    with open_store(machines("b"), fingerprint_of(new)) as store:
        assert list(store.papers()) == PAPERS


@pytest.mark.parametrize("part", ["papers.sqlite", "bm25/words.sqlite"])
def test_a_damaged_copy_is_made_again(machines: Machines, part: str) -> None:
    fill(machines("a"))
    with open_store(machines("b"), None) as store:
        path = store.path / part
    path.write_bytes(b"not a database" * 1000)
    fill(machines("a"), [paper("eee", "Noise.")])
    with open_store(machines("b"), FINGERPRINT) as store:
        assert store.count()[0] == 5
        assert store.lexical().rank("noise", 2)


def test_damage_found_while_reading_mends_the_copy(machines: Machines) -> None:
    fill(machines("a"))
    with open_store(machines("a"), None) as store:
        path = store.path / "bm25" / "words.sqlite"
    path.write_bytes(b"not a database" * 1000)
    with (
        pytest.raises(StoreError, match=r"copy of http://.* was damaged.*Run the command again"),
        open_store(machines("a"), FINGERPRINT) as store,
    ):
        store.lexical()
    with open_store(machines("a"), FINGERPRINT) as store:
        assert store.lexical().rank("noise", 1) == [("bbb", pytest.approx(1.36, abs=1))]


@pytest.mark.parametrize("lost", ["citewise-chunks", "citewise-papers", "citewise-meta"])
def test_what_the_server_lost_comes_back_from_a_copy(machines: Machines, lost: str) -> None:
    fill(machines("a"))
    with closing(Rest(machines("a"))) as rest:
        for name in rest.collections():
            if name.startswith(lost):
                rest.drop(name)
    with pytest.raises(StoreError, match=r"rag index rebuild` on a machine that has used"):
        open_store(machines("fresh"), None)
    for change in (rebuild, lambda where, _: fill(where)):
        with pytest.raises(StoreError, match=r"rag index rebuild` on a machine that has used"):
            change(machines("fresh"), EMBEDDER)
    embedder = WordCountEmbedder()
    assert rebuild(machines("a"), embedder).papers == 4
    assert embedder.embedded == []
    assert list(papers_of(machines("fresh"))) == PAPERS
    with open_store(machines("fresh"), FINGERPRINT) as store:
        assert store.nearest(EMBEDDER.queries(["language"])[0], 1)[0][0] == "ccc"


def test_a_server_set_back_to_a_backup_sets_back_the_copies(machines: Machines) -> None:
    fill(machines("a"), PAPERS[:1])
    with closing(Remote(Rest(machines("a")))) as remote:
        earlier = remote.head()
        assert earlier is not None
        records = remote.papers(earlier).page(0)
        fill(machines("a"), PAPERS[1:])
        now = on_server(machines("a"))
        remote.papers(earlier).delete(
            [k for k in remote.papers(earlier).page(0) if k not in records]
        )
        remote.write_head(earlier)
    assert len(now[0]) == 4
    assert [p.id for p in papers_of(machines("a"))] == ["aaa"]


# Servers that cannot be used


def test_nothing_stored_yet_names_the_command(machines: Machines) -> None:
    assert not store_exists(machines("a"))
    with pytest.raises(StoreError, match=r"no store at http://127.*yet. Run `rag ingest PATH"):
        open_store(machines("a"), None)
    assert ingest([Path("nowhere")], machines("a"), EMBEDDER).papers == 0
    assert not store_exists(machines("a"))


def test_an_unknown_database_names_the_settings(machines: Machines) -> None:
    with pytest.raises(StoreError, match=r"no database 'other' .*Set RAG_STORE_TENANT and"):
        open_store(replace(machines("a"), database="other"), None)


def test_a_server_that_is_down_is_named_with_its_command(tmp_path: Path) -> None:
    address = ServerAddress(f"http://127.0.0.1:{free_port()}", tmp_path)
    with pytest.raises(StoreError, match=r"cannot be reached .*refused.*chroma run --path"):
        open_store(address, None)


def test_a_server_that_restarts_is_waited_for(tmp_path: Path) -> None:
    chroma = Chroma(tmp_path / "data")
    chroma.start()
    try:
        where = chroma.address(tmp_path / "a", chroma.database())
        with open_store(where, FINGERPRINT, write=True) as store:
            store.upsert(entries(PAPERS[:2], EMBEDDER))
            store.finish()
            chroma.stop()
            again = threading.Timer(0.6, chroma.start)
            again.start()
            store.upsert(entries(PAPERS[2:], EMBEDDER))
            store.finish()
            again.join()
        assert list(papers_of(replace(where, cache=tmp_path / "b"))) == PAPERS
        chroma.stop()
        with pytest.raises(StoreError, match="cannot be reached"):
            open_store(where, None)
    finally:
        chroma.stop()


class _Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        page = b"<html>Sign in</html>"
        self.send_response(200 if "pre-flight" in self.path else 404)
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_: object) -> None:
        pass


def test_a_server_that_is_no_chroma_is_told(tmp_path: Path) -> None:
    with HTTPServer(("127.0.0.1", 0), _Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = ServerAddress(f"http://127.0.0.1:{server.server_port}", tmp_path)
        with pytest.raises(StoreError, match="answers no Chroma server of version 1 or later"):
            open_store(address, None)
        server.shutdown()


KEY = "ck-very-secret-1234"


def refusing(status: int, body: object) -> httpx.MockTransport:
    """A server that opens, and then answers every further request so."""

    def answer(request: httpx.Request) -> httpx.Response:
        assert request.headers.get("x-chroma-token") == KEY
        path = request.url.path.rsplit("/", 1)[-1]
        known = {"pre-flight-checks": {"max_batch_size": 300}, "heartbeat": {}, "d": {}}
        if path in known:
            return httpx.Response(200, json=known[path])
        if isinstance(body, str):
            return httpx.Response(status, text=body)
        return httpx.Response(status, json=body)

    return httpx.MockTransport(answer)


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (401, {"error": "AuthError", "message": KEY}, "refuses the key in RAG_STORE_API_KEY"),
        (403, "no", "refuses the key"),
        (400, {"error": "QuotaError", "message": f"big {KEY}"}, r"400.*big \[key\].*quota"),
        (429, {"error": "RateLimitError", "message": "slow down"}, "status 429: .*slow down"),
        (500, {"error": "InternalError", "message": "disk full"}, "disk full.*check its disk"),
        (404, "nothing", "no Chroma server of version 1"),
        (200, "<html>", "no Chroma server of version 1"),
        (200, [1], "no Chroma server of version 1"),
    ],
)
def test_refusals_say_what_to_do_and_never_the_key(
    status: int, body: object, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAG_STORE_API_KEY", KEY)
    waited: list[float] = []
    address = ServerAddress("https://chroma.example", tmp_path, "t", "d")
    with (
        closing(Rest(address, transport=refusing(status, body), sleep=waited.append)) as rest,
        pytest.raises(StoreError, match=message) as caught,
    ):
        Remote(rest).make()
    assert KEY not in str(caught.value)
    assert "chroma.example" in str(caught.value)
    assert waited == ([1.0, 2.0, 4.0] if status == 429 else [])


def test_a_key_that_no_header_can_hold_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAG_STORE_API_KEY", "two\nlines")
    with pytest.raises(ConfigError, match="RAG_STORE_API_KEY holds characters"):
        Rest(ServerAddress("http://127.0.0.1:9", tmp_path))


def test_a_proxy_of_the_environment_does_not_see_this_machine_s_requests(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    fill(machines("a"))
    assert list(papers_of(machines("b"))) == PAPERS


# Settings and records


def test_an_address_is_read_from_the_settings(tmp_path: Path) -> None:
    environ = {
        "RAG_STORE": "HTTPS://Chroma.Example:8443/",
        "RAG_STORE_TENANT": "team",
        "RAG_STORE_DATABASE": "papers",
        "RAG_STORE_API_KEY": KEY,
        "RAG_CACHE_DIR": str(tmp_path),
    }
    found = load_settings(environ=environ)
    expected = ServerAddress("https://chroma.example:8443", tmp_path, "team", "papers")
    assert found.store == expected
    assert found.model_dump(mode="json")["store"] == "https://chroma.example:8443"
    assert KEY not in repr(found)


@pytest.mark.parametrize("given", ["http://", "http:/host", "http://h:port", "https://h/path?x=1"])
def test_what_is_no_address_is_refused(given: str) -> None:
    with pytest.raises(ConfigError, match=r"the environment do not fit: RAG_STORE: "):
        load_settings(environ={"RAG_STORE": given})


def test_a_password_in_an_address_is_refused_and_not_shown() -> None:
    with pytest.raises(ConfigError, match="RAG_STORE_API_KEY") as caught:
        load_settings(environ={"RAG_STORE": "http://me:hush@h:1"})
    assert "hush" not in str(caught.value)


PAPER_ROW = {"pk": 1, "title_derived": 0} | dict.fromkeys(
    ("id", "title", "text", "original", "metadata", "content_hash"), "x"
)
SOURCE_ROW = {"file": "f", "record_id": None, "doi": "10.1/x", "arxiv": None}
FILE_ROW = {"path": None, "run": 1, "places": 2} | dict.fromkeys(
    ("name", "content_hash", "reading", "report"), "x"
)


@pytest.mark.parametrize(
    "record",
    [
        PaperRecord(
            {**PAPER_ROW, "id": "ä\u2028", "text": "".join(map(chr, range(300, 40_000)))},
            [dict.fromkeys(("pk", "position", "run", "since", "text_key"), 3) | SOURCE_ROW],
            [(0, 0, 5, "key")],
        ),
        FileRecord(FILE_ROW),
        Gone("paper", "p"),
    ],
)
def test_records_come_back_as_they_were(record: PaperRecord | FileRecord | Gone) -> None:
    packed = pack(record, 3)
    assert packed["rev"] == 3
    assert max(len(v) for v in packed.values() if isinstance(v, str)) <= 4_000
    # A longer record that stood there before leaves its parts.
    assert unpack({"json9": "???", **packed}) == record


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"parts": 1, "json0": "!"},
        {"parts": 1, "json0": "YQ=="},
        pack(FileRecord({"name": "f"}), 1),
        pack(FileRecord({**FILE_ROW, "path": []}), 1),
        pack(PaperRecord({**PAPER_ROW, "text": None}, [], []), 1),
    ],
)
def test_a_record_of_another_program_is_told(broken: dict[str, Any]) -> None:
    with pytest.raises(StoreError, match=r"did not write .*rag index rebuild"):
        unpack(broken)


# The command line


def test_every_command_works_with_a_server(
    rag: Rag, service: Service, chroma: Chroma, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAG_STORE_DATABASE", chroma.database())
    monkeypatch.setenv("RAG_CACHE_DIR", "cache")
    at = ("--store", f"{chroma.url}/")
    said = rag("ingest", write("papers.jsonl", *RECORDS), *at)
    assert said.out.endswith(f"rejected. {chroma.url} holds 3 papers in 3 passages.\n")
    monkeypatch.setenv("RAG_STORE", chroma.url)
    monkeypatch.setenv("RAG_CACHE_DIR", "another")
    assert [p["paper_id"] for p in rag("papers", "--json").json] == ["alpha", "beta", "gamma"]
    assert rag("show", "alpha", "--json").json["text"] == ALPHA
    assert rag("search", QUESTION, "--json").json[0]["paper_id"] == "alpha"
    service.replies.extend([reply((FACT, [1]))] * 3)
    assert rag("ask", QUESTION, "--json").json["answered"] is True
    assert f"{FACT} [alpha]" in rag("chat", stdin=f"{QUESTION}\n".encode()).out
    questions = write("q.jsonl", {"question": f"{QUESTION} Once more?"})
    assert rag("batch", questions, "--out", "a.jsonl").code == 0
    assert "alpha" in Path("a.jsonl").read_text(encoding="utf-8")
    diagnosis = rag("doctor", "--json").json
    assert f"{chroma.url} (the store)" in diagnosis["sends_to"]
    store = next(c for c in diagnosis["checks"] if c["name"] == "store")
    assert store["ok"] and "abstracts and their vectors are kept at that address" in store["detail"]
    assert rag("index", "rebuild", "--json").json == {"papers": 3, "chunks": 3, "embedded": 0}
    assert rag("remove", "beta", "--yes").code == 0
    assert len(rag("export").out.splitlines()) == 2
    monkeypatch.setenv("RAG_STORE", f"http://127.0.0.1:{free_port()}")
    down = rag("papers")
    assert (down.code, down.out) == (1, "")
    assert "cannot be reached" in down.err
