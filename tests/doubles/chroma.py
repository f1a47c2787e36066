"""A real Chroma server on this machine, and a database of its own for each test."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import httpx

from rag.config import ServerAddress

_SECONDS_TO_START = 60

# The address of one database, as the machine of a name has it.
Machines = Callable[[str], ServerAddress]


def executable() -> Path | None:
    """The `chroma` that belongs to this Python, if it is installed."""
    found = shutil.which("chroma", path=str(Path(sys.executable).parent))
    return Path(found) if found else None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Chroma:
    """`chroma run` on a directory; it can be stopped, and started again at the same address."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self._process: subprocess.Popen[bytes] | None = None
        self._client = httpx.Client(base_url=f"{self.url}/api/v2", trust_env=False, timeout=30)

    def start(self) -> None:
        found = executable()
        assert found is not None
        at = ["--host", "127.0.0.1", "--port", str(self._port)]
        self._process = subprocess.Popen(
            [found, "run", "--path", self._directory, *at],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        end = time.monotonic() + _SECONDS_TO_START
        while not self._answers():
            assert self._process.poll() is None, "chroma did not start"
            assert time.monotonic() < end, "chroma does not answer"
            time.sleep(0.05)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def database(self) -> str:
        """A new, empty database."""
        name = f"test-{uuid.uuid4().hex}"
        path = "/tenants/default_tenant/databases"
        self._client.post(path, json={"name": name}).raise_for_status()
        return name

    def address(self, cache: Path, database: str) -> ServerAddress:
        """The database, for a machine that keeps its copies in `cache`."""
        return ServerAddress(self.url, cache, database=database)

    def _answers(self) -> bool:
        try:
            return self._client.get("/heartbeat").is_success
        except httpx.TransportError:
            return False
