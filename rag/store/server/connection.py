"""A connection to a Chroma server: requests, patience, and what went wrong in words.

Not through chromadb's own client: that waits for ever (its timeout is None), asks the environment's
proxies even for this machine, and takes 1.5 s to import. https://docs.trychroma.com/reference/python
describes the calls, a server lists them under /docs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from rag.config import ServerAddress, api_key
from rag.errors import ConfigError, StoreError
from rag.http import LONGEST_PAUSE_SECONDS, excerpt, is_sendable, is_this_machine, retry_after

if TYPE_CHECKING:
    import httpx

ATTEMPTS = 4
CONNECT_SECONDS = 10.0
# Deleting a collection of a million vectors takes a while; a server that is stuck takes longer.
ANSWER_SECONDS = 120.0
# For the first answer, which needs no work.
GREETING_SECONDS = 20.0

# Where a server does not say how many records it takes at once: what hosted Chroma allows.
FEWEST_AT_ONCE = 300
# A few MB a request, whatever more a server would take.
MOST_AT_ONCE = 1_000

_BUSY = (429, 502, 503, 504)


class LostError(StoreError):
    """The server lacks what it must have had."""


class Connection:
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
        self.database = f"/tenants/{quoted(address.tenant)}/databases/{quoted(address.database)}"
        try:
            self._read_limits()
            self.set_clock()
            self.call("GET", self.database, attempts=1)
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
                    raise StoreError(_unreachable(self.address, error, seconds)) from error
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

    def _read_limits(self) -> None:
        found = self.checked(
            self.call("GET", "/pre-flight-checks", attempts=1, seconds=GREETING_SECONDS), dict
        )
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


def quoted(name: str) -> str:
    """A name as a part of a path."""
    return quote(name, safe="")


def _unreachable(address: ServerAddress, error: Exception, seconds: float) -> str:
    import httpx

    if isinstance(error, httpx.TimeoutException) and not isinstance(error, httpx.ConnectTimeout):
        return (
            f"The server {address} did not answer within {seconds:g} s. What it has "
            "acknowledged stays: see to the server, then run the command again."
        )
    return (
        f"The store's server {address} cannot be reached ({excerpt(str(error), None)}). Start it "
        "(chroma run --path DIR --host HOST --port PORT), or check the address in --store or "
        "RAG_STORE; then run the command again."
    )
