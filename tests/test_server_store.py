"""A store on a Chroma server, against a real one on loopback: machines that read and write."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from doubles.chroma import Chroma, Machines, free_port
from doubles.commands import ALPHA, FACT, QUESTION, RECORDS, Rag, reply, write
from doubles.embedder import WordCountEmbedder
from doubles.papers import (
    EMBEDDER,
    FINGERPRINT,
    PAPERS,
    fill,
    many,
    on_server,
    paper,
    papers_of,
    tables,
)
from doubles.service import Service

import rag.store.server.lease
import rag.store.server.store
import rag.store.store
from rag.config import ServerAddress
from rag.entries import entries
from rag.errors import StoreError
from rag.ingest import ingest
from rag.removal import plan, remove
from rag.store import open_store
from rag.store.server.connection import Connection
from rag.store.server.lease import Lease
from rag.store.server.remote import Remote
from rag.store.server.rest import Rest


@pytest.fixture(autouse=True)
def always_news(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rag.store.server.store, "NEWS_SECONDS", -1.0)


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
    assert keys >= set(named)
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


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Lets seconds pass on the server's clock."""
    passed = [0.0]
    now = Connection.now
    monkeypatch.setattr(Connection, "now", lambda self: now(self) + passed[0])

    def pass_by(seconds: float) -> None:
        passed[0] += seconds

    return pass_by


def test_a_lease_that_its_holder_let_end_is_taken_over(
    machines: Machines, later: Callable[[float], None]
) -> None:
    first = open_store(machines("a"), FINGERPRINT, write=True)
    first.upsert(entries(PAPERS[:1], EMBEDDER))
    with pytest.raises(StoreError, match="being written"):
        open_store(machines("b"), FINGERPRINT, write=True)
    later(61)
    fill(machines("b"), PAPERS[1:])
    with pytest.raises(StoreError, match=r"now being written by .* run the command again later"):
        first.finish()
    first.close()
    assert [p.id for p in papers_of(machines("c"))] == ["bbb", "ccc", "ddd"]
    # What had not reached the server counts no longer, as another machine has written since.
    assert [p.id for p in papers_of(machines("a"))] == ["bbb", "ccc", "ddd"]


def test_a_lease_that_is_renewed_does_not_end(
    machines: Machines, later: Callable[[float], None]
) -> None:
    with closing(Rest(machines("a"))) as rest:
        lease = Lease.take(rest, Remote(rest).make(), "a")
        later(50)
        lease.renew()
        later(50)
        with pytest.raises(StoreError, match="being written"):
            open_store(machines("b"), FINGERPRINT, write=True)
        lease.release()
    fill(machines("b"))


def test_a_lease_renews_itself(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rag.store.server.lease, "LEASE_SECONDS", 0.1)
    renewed = threading.Event()
    monkeypatch.setattr(Lease, "renew", lambda self: renewed.set())
    with open_store(machines("a"), FINGERPRINT, write=True):
        assert renewed.wait(30)


def die_in_ingest(where: ServerAddress, file: Path, request: int) -> None:
    """Ingest in another process, which is killed before this one of its requests."""
    script = Path(__file__).parent / "doubles" / "server_writer.py"
    command = [sys.executable, script, where.url, where.database, where.cache, file, str(request)]
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    ran = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, check=False)
    assert ran.returncode == -9


# Requests of an ingest of 64 papers, 16 a push: the first one to the last.
@pytest.mark.parametrize("request_number", [8, 12, 13, 18, 19, 20, 21, 25, 39, 40])
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
    assert keys >= set(named)
    with open_store(other, FINGERPRINT) as store, closing(Remote(Rest(other))) as remote:
        head = remote.head()
        assert head is not None and not head.writing
        for key, paper_id in itertools.islice(named.items(), 0, None, 5):
            vector = remote.chunks(head).vectors([key])[key]
            assert remote.chunks(head).query(vector, 1) == [key]
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
    assert keys >= set(named)
    assert len(named) == 128


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
