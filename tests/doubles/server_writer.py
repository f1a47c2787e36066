"""Ingests into a server's store and dies, as by kill -9, just before its n-th request.

python server_writer.py URL DATABASE CACHE FILE N
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from doubles.embedder import WordCountEmbedder

import rag.ingest.run
import rag.store.server.store
from rag.config import ServerAddress
from rag.ingest import ingest
from rag.store.server.rest import Rest

# Small, so that there are many moments to die at.
rag.store.server.store.PAPERS = rag.store.server.sync.PAPERS = 16
rag.ingest.run.BATCH = 8


def main(url: str, database: str, cache: str, file: str, requests: str) -> None:
    left = int(requests)
    send = Rest.call

    def call(self: Rest, *arguments: Any, **named: Any) -> Any:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return send(self, *arguments, **named)

    Rest.call = call  # type: ignore[method-assign]
    ingest([Path(file)], ServerAddress(url, Path(cache), database=database), WordCountEmbedder())


if __name__ == "__main__":
    main(*sys.argv[1:])
