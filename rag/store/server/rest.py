"""Chroma's HTTP interface, as far as a store needs it.

Not through chromadb's own client: that waits for ever (its timeout is None), asks the environment's
proxies even for this machine, and takes 1.5 s to import. https://docs.trychroma.com/reference/python
describes the calls, a server lists them under /docs.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from rag.config import ServerAddress, api_key
from rag.errors import ConfigError, StoreError
from rag.http import LONGEST_PAUSE_SECONDS, excerpt, is_sendable, is_this_machine, retry_after

if TYPE_CHECKING:
    import httpx

ATTEMPTS = 4
CONNECT_SECONDS = 10.0
# Deleting a collection of a million vectors takes a while; a server that is stuck takes longer.
ANSWER_SECONDS = 120.0

# Where a server does not say how many records it takes at once: what hosted Chroma allows.
FEWEST_AT_ONCE = 300
# A few MB a request, whatever more a server would take.
MOST_AT_ONCE = 1_000

_BUSY = (429, 502, 503, 504)

Metadata = Mapping[str, str | int | float | bool]


class LostError(StoreError):
    """The server lacks what it must have had."""


class Rest:
    """One database of a server. Every method raises StoreError where the server fails."""

    def __init__(
        self,
        address: ServerAddress,
        *,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Connect.

        Raises:
            ConfigError: the key cannot be sent.
            StoreError: there is no such server, or it refuses.
        """
        import httpx

        self.address = address
        self._sleep = sleep
        key = api_key("store", address.url)
        self._secret = key.get_secret_value() if key else None
        if self._secret and not is_sendable(self._secret):
            raise ConfigError("RAG_STORE_API_KEY holds characters that no key has. Set it again.")
        self._client = httpx.Client(
            base_url=f"{address.url}/api/v2",
            headers={"x-chroma-token": self._secret} if self._secret else {},
            transport=transport,
            trust_env=not is_this_machine(address.url),
        )
        self._database = f"/tenants/{_quoted(address.tenant)}/databases/{_quoted(address.database)}"
        try:
            self._read_limits()
            self.set_clock()
            self.call("GET", self._database, attempts=1)
        except LostError as error:
            self.close()
            raise StoreError(
                f"The server {address} has no database {address.database!r} of tenant "
                f"{address.tenant!r}. Set RAG_STORE_TENANT and RAG_STORE_DATABASE, or create it."
            ) from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the connections; safe to call twice."""
        self._client.close()

    def set_clock(self) -> None:
        """Read the server's clock; this machine's may stand still while it sleeps."""
        found = self.checked(self.call("GET", "/heartbeat"), dict)
        now = float(found.get("nanosecond heartbeat", time.time_ns())) / 1e9
        self._clock = now - time.monotonic()

    def now(self) -> float:
        """Seconds since 1970 by the server's clock, which all clients share."""
        return self._clock + time.monotonic()

    def collections(self) -> list[str]:
        """Names of all collections of the database."""
        names: list[str] = []
        while page := self.call(
            "GET", f"{self._database}/collections?limit={FEWEST_AT_ONCE}&offset={len(names)}"
        ):
            found = self.checked(page, list)
            names += [str(self.checked(one, dict).get("name")) for one in found]
        return names

    def create(self, name: str, configuration: Mapping[str, Any] | None = None) -> Collection:
        """The collection of this name, made where there is none."""
        body = {"name": name, "get_or_create": True, "configuration": configuration}
        return self._opened(self.call("POST", f"{self._database}/collections", body), name)

    def collection(self, name: str) -> Collection:
        """The collection of this name.

        Raises:
            LostError: there is none.
        """
        return self._opened(self.call("GET", f"{self._database}/collections/{_quoted(name)}"), name)

    def drop(self, name: str) -> None:
        """Delete a collection, if there is one of this name."""
        try:
            self.call("DELETE", f"{self._database}/collections/{_quoted(name)}")
        except LostError:
            return

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        attempts: int = ATTEMPTS,
        seconds: float = ANSWER_SECONDS,
    ) -> Any:
        """The server's answer, read as JSON.

        What fails on the way is tried again, as every call here can be made twice.
        """
        import httpx

        patience = httpx.Timeout(seconds, connect=min(seconds, CONNECT_SECONDS))
        for attempt in range(attempts):
            last = attempt == attempts - 1
            try:
                response = self._client.request(method, path, json=body, timeout=patience)
            except (httpx.TransportError, httpx.InvalidURL) as error:
                if last or not isinstance(error, httpx.TransportError):
                    raise StoreError(_unreachable(self.address, error)) from error
                pause = 2.0**attempt / 2
            else:
                if response.status_code not in _BUSY or last:
                    return self._read(response)
                asked = retry_after(response.headers.get("retry-after", ""))
                pause = 2.0**attempt if asked is None else asked
            self._sleep(min(pause, LONGEST_PAUSE_SECONDS))
        raise AssertionError("unreachable")

    def _read(self, response: httpx.Response) -> Any:
        status = response.status_code
        if status in (401, 403):
            how = "refuses the key in" if self._secret else "wants a key: set"
            raise StoreError(
                f"The server {self.address} {how} RAG_STORE_API_KEY (status {status}), or it opens "
                f"no tenant {self.address.tenant!r}, database {self.address.database!r} to it."
            )
        try:
            found = response.json()
        except ValueError:
            if status < 300:
                raise StoreError(self._stranger()) from None
            found = None
        if status < 300:
            return found
        if status in (404, 410) and not (isinstance(found, dict) and "error" in found):
            raise StoreError(self._stranger())
        said = excerpt(response.text, self._secret)
        if status == 404:
            raise LostError(f"The server {self.address} does not find it: {said}")
        raise StoreError(
            f"The server {self.address} refuses a request (status {status}: {said}). What it has "
            "acknowledged stays: check its disk, its quota and its log, then run the command again."
        )

    def _stranger(self) -> str:
        return (
            f"At {self.address} answers no Chroma server of version 1 or later. Check the address, "
            "or start one: chroma run --path DIR --host HOST --port PORT."
        )

    def _opened(self, found: Any, name: str) -> Collection:
        return Collection(self, str(self.checked(found, dict).get("id")), name, self._database)

    def _read_limits(self) -> None:
        found = self.checked(self.call("GET", "/pre-flight-checks", attempts=1), dict)
        most = found.get("max_batch_size")
        if not isinstance(most, int) or most < 1:
            most = FEWEST_AT_ONCE
        self.at_once = min(most, MOST_AT_ONCE)
        self.takes_base64 = found.get("supports_base64_encoding") is True

    def checked(self, found: Any, kind: type) -> Any:
        """`found`, which must be of this kind if a Chroma server gave it."""
        if not isinstance(found, kind):
            raise StoreError(self._stranger())
        return found


class Collection:
    """One collection; batches are cut to what the server takes at once."""

    def __init__(self, rest: Rest, identifier: str, name: str, database: str) -> None:
        self._rest = rest
        self._path = f"{database}/collections/{_quoted(identifier)}"
        self.name = name

    def add(self, key: str, metadata: Metadata) -> None:
        """Add one record without a vector of its own; one that is there stays as it is."""
        self._send("add", [key], None, [metadata])

    def upsert(
        self,
        keys: Sequence[str],
        vectors: NDArray[np.float32] | None,
        metadatas: Sequence[Metadata] | None = None,
    ) -> None:
        """Write records: vectors, shape (n, d), or metadata, whose other keys stay."""
        for start in range(0, len(keys), self._rest.at_once):
            some = slice(start, start + self._rest.at_once)
            rows = None if vectors is None else vectors[some]
            self._send("upsert", keys[some], rows, metadatas[some] if metadatas else None)

    def update(self, key: str, metadata: Metadata, seconds: float = ANSWER_SECONDS) -> None:
        """Change the metadata of a record, if it is there; once, waiting no longer than that."""
        body = {"ids": [key], "metadatas": [dict(metadata)]}
        self._rest.call("POST", f"{self._path}/update", body, attempts=1, seconds=seconds)

    def delete(self, keys: Sequence[str]) -> None:
        """Delete records; those that are not there do not matter."""
        for start in range(0, len(keys), self._rest.at_once):
            self._call("delete", {"ids": list(keys[start : start + self._rest.at_once])})

    def count(self) -> int:
        """How many records."""
        return int(self._rest.call("GET", f"{self._path}/count"))

    def page(
        self, offset: int, where: Mapping[str, Any] | None = None, *, keys_only: bool = False
    ) -> dict[str, dict[str, Any]]:
        """Metadata of some records by key, from `offset` on; none after the last."""
        include = [] if keys_only else ["metadatas"]
        body = {"where": where, "limit": self._rest.at_once, "offset": offset, "include": include}
        found = self._call("get", body)
        keys = self._list(found, "ids")
        metadatas = [{}] * len(keys) if keys_only else self._list(found, "metadatas")
        return {str(k): m or {} for k, m in zip(keys, metadatas, strict=False)}

    def records(self, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Metadata of those of the records that are there, by key."""
        return {k: m or {} for k, m in self._get(keys, "metadatas")}

    def vectors(self, keys: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """Vectors of those of the records that are there, by key."""
        read = {k: np.array(v, dtype=np.float32) for k, v in self._get(keys, "embeddings")}
        for vector in read.values():
            whole = vector.ndim == 1 and bool(np.isfinite(vector).all())
            self._rest.checked(vector if whole else None, np.ndarray)
        return read

    def query(self, vector: NDArray[np.float32], keys: int) -> list[str]:
        """Keys of the nearest vectors, approximately, the nearest first."""
        most = min(keys, self._rest.at_once)
        body = {"query_embeddings": [vector.tolist()], "n_results": most, "include": []}
        found = self._list(self._call("query", body), "ids")
        return [str(key) for key in found[0]] if found else []

    def _get(self, keys: Sequence[str], what: str) -> Iterator[tuple[str, Any]]:
        for start in range(0, len(keys), self._rest.at_once):
            some = list(keys[start : start + self._rest.at_once])
            found = self._call("get", {"ids": some, "include": [what]})
            yield from zip(self._list(found, "ids"), self._list(found, what), strict=False)

    def _call(self, what: str, body: object) -> Any:
        return self._rest.call("POST", f"{self._path}/{what}", body)

    def _list(self, found: Any, name: str) -> list[Any]:
        held = found.get(name) if isinstance(found, dict) else None
        return list(self._rest.checked(held, list))

    def _send(
        self,
        how: str,
        keys: Sequence[str],
        vectors: NDArray[np.float32] | None,
        metadatas: Sequence[Metadata] | None,
    ) -> None:
        # Every record must have a vector; those that nobody searches have the same one.
        rows = np.ones((len(keys), 1), dtype=np.float32) if vectors is None else vectors
        body = {
            "ids": list(keys),
            "embeddings": _in_base64(rows) if self._rest.takes_base64 else rows.tolist(),
            "metadatas": [dict(m) for m in metadatas] if metadatas else None,
        }
        self._call(how, body)


def _in_base64(rows: NDArray[np.float32]) -> list[str]:
    return [base64.b64encode(row.astype("<f4").tobytes()).decode() for row in rows]


def _quoted(name: str) -> str:
    return quote(name, safe="")


def _unreachable(address: ServerAddress, error: Exception) -> str:
    import httpx

    if isinstance(error, httpx.TimeoutException) and not isinstance(error, httpx.ConnectTimeout):
        return (
            f"The server {address} did not answer within {ANSWER_SECONDS:.0f} s. What it has "
            "acknowledged stays: see to the server, then run the command again."
        )
    return (
        f"The store's server {address} cannot be reached ({excerpt(str(error), None)}). Start it "
        "(chroma run --path DIR --host HOST --port PORT), or check the address in --store or "
        "RAG_STORE; then run the command again."
    )
