"""Servers that lose, refuse, restart or are none, and copies that are damaged."""

from __future__ import annotations

import socket
import threading
from contextlib import closing
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from doubles.chroma import Chroma, Machines, free_port
from doubles.embedder import WordCountEmbedder
from doubles.papers import EMBEDDER, FINGERPRINT, PAPERS, fill, on_server, paper, papers_of

import rag.store.server.connection
import rag.store.server.store
import rag.store.store
from rag.config import ServerAddress, load_settings
from rag.entries import entries
from rag.errors import ConfigError, StoreError
from rag.ingest import ingest
from rag.rebuild import rebuild
from rag.store import fingerprint_of, open_store, store_exists
from rag.store.server.collection import Collection
from rag.store.server.records import FileRecord, Gone, PaperRecord, pack, unpack
from rag.store.server.remote import Head, Remote
from rag.store.server.rest import Rest


@pytest.fixture(autouse=True)
def always_news(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rag.store.server.store, "NEWS_SECONDS", -1.0)


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


def test_what_is_removed_is_not_read_on_the_server_and_a_rebuild_drops_its_vectors(
    machines: Machines,
) -> None:
    rare = "".join(map(chr, range(300, 9_000)))
    fill(machines("a"), [*PAPERS, paper("long", f"Noise {rare}.")])
    with open_store(machines("b"), FINGERPRINT, write=True) as store:
        store.catalog.remove(["long"])
    with closing(Remote(Rest(machines("a")))) as remote:
        head = remote.head()
        assert head is not None
        (gone,) = [m for m in remote.papers(head).page(0).values() if m["gone"]]
    assert gone["json0"]
    assert {value for name, value in gone.items() if name[:4] == "json" and name != "json0"} == {""}
    keys, named = on_server(machines("a"))
    assert (len(keys), len(named)) == (5, 4)
    assert rebuild(machines("b"), EMBEDDER).embedded == 0
    keys, named = on_server(machines("a"))
    assert keys == set(named)
    assert list(papers_of(machines("a"))) == PAPERS


def test_an_open_reader_follows_a_rebuild(machines: Machines) -> None:
    fill(machines("a"))
    with open_store(machines("b"), FINGERPRINT) as reader:
        assert rebuild(machines("a"), EMBEDDER).embedded == 0
        fill(machines("a"), [paper("eee", "Protein protein.")])
        assert reader.nearest(EMBEDDER.queries(["protein"])[0], 1)[0][0] == "eee"


def test_a_rebuild_between_two_requests_of_a_reader_is_followed(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (rag.store.store, rag.store.server.store):
        monkeypatch.setattr(module, "EXACT_LIMIT", 1)
    fill(machines("a"))
    query = EMBEDDER.queries(["language"])[0]
    with open_store(machines("b"), FINGERPRINT) as reader:
        assert reader.nearest(query, 1)[0][0] == "ccc"
        rebuild(machines("a"), EMBEDDER)
        monkeypatch.setattr(rag.store.server.store, "NEWS_SECONDS", 1e9)
        assert reader.nearest(query, 1)[0][0] == "ccc"
    fill(machines("a"), [paper("eee", "Noise.")])
    opened = Remote.papers
    rebuilt: list[int] = []

    def papers(self: Remote, head: Head) -> Collection:
        if not rebuilt:
            rebuilt.append(1)
            rebuild(machines("a"), EMBEDDER)
        return opened(self, head)

    monkeypatch.setattr(Remote, "papers", papers)
    assert len(papers_of(machines("c"))) == 5


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


def test_a_server_that_does_not_answer_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rag.store.server.connection, "GREETING_SECONDS", 0.2)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = ServerAddress(f"http://127.0.0.1:{silent.getsockname()[1]}", tmp_path)
        with pytest.raises(StoreError, match=r"did not answer within 0\.2 s"):
            open_store(address, None)


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
