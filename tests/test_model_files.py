from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

import pytest

from rag.config import LLMSettings, Settings
from rag.errors import ModelError
from rag.llm import model_files
from rag.llm.model_files import QWEN, Release, language_model_file, status

CONTENT = b"GGUF" + bytes(range(256)) * 2 + b"end"
PARTS = (CONTENT[:200], CONTENT[200:450], CONTENT[450:])
RELEASE = Release(
    file_name="small.gguf",
    size=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    hub_repository="maker/small",
    part_packages=tuple(f"citewise_test_part{n}" for n in (1, 2, 3)),
)


class Site(NamedTuple):
    """A directory of installed packages and an empty cache."""

    packages: Path
    settings: Settings

    @property
    def cached(self) -> Path:
        assert self.settings.cache_dir is not None
        return self.settings.cache_dir / RELEASE.file_name

    @property
    def partial(self) -> Path:
        return self.cached.with_name("small.gguf.partial")

    def part(self, number: int) -> Path:
        return self.packages / f"citewise_test_part{number}" / "data" / f"part{number:02d}.bin"

    def install(self, *numbers: int) -> None:
        for number in numbers:
            self.part(number).parent.mkdir(parents=True)
            # Importing a part would fail: they must only be located.
            init = self.part(number).parents[1] / "__init__.py"
            init.write_text("raise RuntimeError('imported')")
            self.part(number).write_bytes(PARTS[number - 1])

    def allowing_download(self) -> Settings:
        return Settings(cache_dir=self.settings.cache_dir, llm=LLMSettings(allow_download=True))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    packages = tmp_path / "site"
    packages.mkdir()
    monkeypatch.syspath_prepend(str(packages))
    monkeypatch.setattr(model_files, "BLOCK_BYTES", 100)
    return Site(packages, Settings(cache_dir=tmp_path / "cache"))


def test_the_parts_are_assembled_into_the_cache_with_progress(site: Site) -> None:
    site.install(1, 2, 3)
    seen: list[tuple[int, int]] = []
    path = language_model_file(site.settings, lambda *p: seen.append(p), RELEASE)
    assert path == site.cached
    assert path.read_bytes() == CONTENT
    assert [done for done, _ in seen] == [100, 200, 300, 400, 450, 519]
    assert {total for _, total in seen} == {519}
    assert not site.partial.exists()


def test_a_verified_file_is_neither_hashed_nor_assembled_again(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.install(1, 2, 3)
    language_model_file(site.settings, release=RELEASE)
    shutil.rmtree(site.packages)
    monkeypatch.setattr(model_files, "_sha256", lambda *_: pytest.fail("hashed again"))
    assert language_model_file(site.settings, release=RELEASE) == site.cached


def test_a_touched_file_is_hashed_again_and_kept(site: Site) -> None:
    site.install(1, 2, 3)
    path = language_model_file(site.settings, release=RELEASE)
    os.utime(path, ns=(1, 1))
    shutil.rmtree(site.packages)
    seen: list[int] = []
    assert language_model_file(site.settings, lambda d, _: seen.append(d), RELEASE) == path
    assert seen[-1] == len(CONTENT)
    assert status(site.settings, RELEASE).detail == "verified"


@pytest.mark.parametrize("damage", [CONTENT[:-1], CONTENT[:-1] + b"X", b""])
def test_a_damaged_cached_file_is_assembled_again(site: Site, damage: bytes) -> None:
    site.install(1, 2, 3)
    path = language_model_file(site.settings, release=RELEASE)
    path.write_bytes(damage)
    os.utime(path, ns=(1, 1))
    assert language_model_file(site.settings, release=RELEASE).read_bytes() == CONTENT


def test_a_damaged_cached_file_without_another_source_is_removed_and_named(site: Site) -> None:
    site.cached.parent.mkdir()
    site.cached.write_bytes(b"GGUF damaged")
    with pytest.raises(ModelError, match=r"small\.gguf was damaged and has been removed") as info:
        language_model_file(site.settings, release=RELEASE)
    assert 'pip install "citewise[local]"' in str(info.value)
    assert not site.cached.exists()


def test_an_interrupted_assembly_is_continued_in_the_same_file(site: Site) -> None:
    site.install(1, 2, 3)

    def interrupt(done: int, _total: int) -> None:
        if done == 300:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        language_model_file(site.settings, interrupt, RELEASE)
    assert site.partial.read_bytes() == CONTENT[:300]
    inode = site.partial.stat().st_ino
    path = language_model_file(site.settings, release=RELEASE)
    assert path.read_bytes() == CONTENT
    assert path.stat().st_ino == inode


@pytest.mark.parametrize(
    "left_over", [b"\0" * 300, CONTENT[:250] + b"\0" * 100, CONTENT + b"more", b"\0" * 9000]
)
def test_a_partial_file_that_holds_something_else_does_no_harm(
    site: Site, left_over: bytes
) -> None:
    site.install(1, 2, 3)
    site.partial.parent.mkdir()
    site.partial.write_bytes(left_over)
    assert language_model_file(site.settings, release=RELEASE).read_bytes() == CONTENT


def test_parts_with_another_hash_are_refused_and_the_file_removed(site: Site) -> None:
    site.install(1, 2, 3)
    site.part(2).write_bytes(bytes(len(PARTS[1])))
    with pytest.raises(ModelError, match="--force-reinstall") as info:
        language_model_file(site.settings, release=RELEASE)
    assert RELEASE.sha256 in str(info.value)
    assert not site.partial.exists()
    assert not site.cached.exists()


def test_missing_parts_are_named_with_every_way_out(site: Site) -> None:
    site.install(1, 3)
    with pytest.raises(ModelError, match=r"missing: citewise-test-part2\.") as info:
        language_model_file(site.settings, release=RELEASE)
    for way in (
        'pip install "citewise[local]"',
        "RAG_LLM_BASE_URL",
        "RAG_LLM_MODEL_PATH",
        "RAG_LLM_ALLOW_DOWNLOAD=true",
    ):
        assert way in str(info.value)


def test_parts_of_another_size_are_refused_before_anything_is_written(site: Site) -> None:
    site.install(1, 2, 3)
    site.part(3).write_bytes(b"short")
    with pytest.raises(ModelError, match="455 bytes together, not 519: damaged"):
        language_model_file(site.settings, release=RELEASE)
    assert not site.partial.exists()


def test_too_little_room_is_said_before_writing(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.install(1, 2, 3)
    usage = shutil.disk_usage(site.packages)._replace(free=model_files.SPARE_BYTES)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(ModelError, match=r"no room.* 0\.1 GB in .*cache.*RAG_CACHE_DIR"):
        language_model_file(site.settings, release=RELEASE)
    assert not site.partial.exists()


def test_a_cache_that_cannot_be_made_is_named(site: Site, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file in the way")
    with pytest.raises(ModelError, match=r"cannot be kept.*RAG_CACHE_DIR"):
        language_model_file(site.settings, release=RELEASE)


def test_the_users_own_file_needs_no_hash(site: Site, tmp_path: Path) -> None:
    own = tmp_path / "own.gguf"
    own.write_bytes(b"GGUF and anything")
    settings = Settings(llm=LLMSettings(model_path=own), cache_dir=tmp_path / "cache")
    assert language_model_file(settings, release=RELEASE) == own
    assert status(settings, RELEASE).source == "path"
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read"),
        (b"", "not a GGUF"),
        (b"GGU", "not a GGUF"),
        (b"PK..", "not a GGUF"),
    ],
)
def test_an_own_file_that_is_no_gguf_is_refused(
    tmp_path: Path, content: bytes | None, message: str
) -> None:
    own = tmp_path / "own.gguf"
    if content is not None:
        own.write_bytes(content)
    settings = Settings(llm=LLMSettings(model_path=own))
    with pytest.raises(ModelError, match=f"{message}.*RAG_LLM_MODEL_PATH"):
        language_model_file(settings, release=RELEASE)
    assert status(settings, RELEASE).source == "missing"


def test_status_follows_the_order_of_the_sources_and_writes_nothing(site: Site) -> None:
    missing = status(site.settings, RELEASE)
    assert (missing.source, missing.remedy) == ("missing", 'pip install "citewise[local]"')
    assert status(site.allowing_download(), RELEASE).source == "hub"
    site.install(1, 2, 3)
    assert status(site.allowing_download(), RELEASE).source == "parts"
    assert not site.cached.parent.exists()
    path = language_model_file(site.settings, release=RELEASE)
    assert status(site.settings, RELEASE) == model_files.ModelStatus(
        "cache", path, "verified", None
    )


def test_the_release_is_the_official_one() -> None:
    assert QWEN.size == 1_117_320_768
    assert QWEN.sha256 == "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
    assert len(QWEN.part_packages) == 22


# Run in processes of their own: argv = cache, packages, what to do after 300 bytes, hub's address.
PROGRAM = """
import os, signal, sys, time
sys.path[:0] = [sys.argv[2]]
sys.path.insert(0, sys.argv[4])
from pathlib import Path
from rag.llm import model_files
from rag.config import LLMSettings, Settings
from tests.test_model_files import RELEASE
model_files.BLOCK_BYTES = 100
def progress(done, total):
    if done == 300 and sys.argv[3] == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if sys.argv[3] == "slowly":
        time.sleep(0.05)
settings = Settings(cache_dir=sys.argv[1], llm=LLMSettings(allow_download=sys.argv[3] == "hub"))
try:
    path = model_files.language_model_file(settings, progress, RELEASE)
except model_files.ModelError as error:
    sys.exit(str(error))
print(path.stat().st_ino, path.read_bytes().hex())
"""


def _start(site: Site, mode: str, **environment: str) -> subprocess.Popen[str]:
    root = str(Path(__file__).parents[1])
    cache = str(site.settings.cache_dir)
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, cache, str(site.packages), mode, root],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def test_after_a_kill_half_way_the_next_process_finishes(site: Site) -> None:
    site.install(1, 2, 3)
    killed = _start(site, "die")
    assert killed.wait(60) == -signal.SIGKILL
    killed.communicate()
    assert len(site.partial.read_bytes()) <= 300
    out, err = _start(site, "finish").communicate(timeout=60)
    assert (out.split()[1:], err) == ([CONTENT.hex()], "")


def test_of_two_processes_one_assembles_and_both_get_its_file(site: Site) -> None:
    site.install(1, 2, 3)
    outs = [p.communicate(timeout=60) for p in [_start(site, "slowly") for _ in range(2)]]
    assert outs[0] == outs[1]
    assert outs[0][0].split()[1] == CONTENT.hex()


class _Hub(BaseHTTPRequestHandler):
    """As much of a model hub as one public file needs."""

    content = CONTENT
    authorizations: list[str | None] = []  # noqa: RUF012

    def do_HEAD(self) -> None:
        self._send(with_body=False)

    def do_GET(self) -> None:
        self._send(with_body=True)

    def _send(self, *, with_body: bool) -> None:
        self.authorizations.append(self.headers.get("authorization"))
        found = self.path == "/maker/small/resolve/main/small.gguf"
        self.send_response(200 if found else 404)
        self.send_header("X-Repo-Commit", "a" * 40)
        self.send_header("ETag", f'"{hashlib.sha256(self.content).hexdigest()}"')
        self.send_header("Content-Length", str(len(self.content) if found else 0))
        self.end_headers()
        if with_body and found:
            self.wfile.write(self.content)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def hub() -> Iterator[str]:
    _Hub.authorizations.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Hub)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_an_allowed_download_is_verified_and_sends_no_token(site: Site, hub: str) -> None:
    environment = {"HF_ENDPOINT": hub, "HF_TOKEN": "hf_secret", "NO_PROXY": "127.0.0.1"}
    out, err = _start(site, "hub", **environment).communicate(timeout=120)
    assert out.split()[1:] == [CONTENT.hex()], err
    assert set(_Hub.authorizations) == {None}
    assert sorted(p.name for p in site.cached.parent.iterdir() if p.suffix != ".lock") == [
        "small.gguf",
        "small.gguf.verified",
    ]


def test_a_download_of_other_bytes_is_refused(
    site: Site, hub: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_Hub, "content", b"GGUF something else")
    process = _start(site, "hub", HF_ENDPOINT=hub, NO_PROXY="127.0.0.1")
    _, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert f"instead of {RELEASE.sha256}" in err
    assert not site.cached.exists()


def test_a_hub_that_may_not_be_asked_is_an_error_with_the_other_way(site: Site, hub: str) -> None:
    process = _start(site, "hub", HF_ENDPOINT=hub, HF_HUB_OFFLINE="1")
    _, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "could not be downloaded from maker/small" in err
    assert 'pip install "citewise[local]"' in err
    assert "Traceback" not in err
    assert _Hub.authorizations == []


def test_status_names_a_cache_that_cannot_be_made(site: Site, tmp_path: Path) -> None:
    site.install(1, 2, 3)
    (tmp_path / "file").touch()
    cache = tmp_path / "file" / "cache"
    assert status(Settings(cache_dir=cache), RELEASE) == model_files.ModelStatus(
        "missing",
        None,
        f"{cache}, where its file is kept, cannot be written",
        "Set RAG_CACHE_DIR to a directory that can.",
    )
