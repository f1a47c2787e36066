"""Which of several machines may write: a lease on the server that ends unless it is renewed.

Leases are numbered; the highest counts. Who wants the next one adds the record of its number, which
the server keeps only if there is none, and reads again to see who came first. A lease that its
holder gave back, or let end, is succeeded in the same way. All times are the server's.
"""

from __future__ import annotations

import os
import socket
import threading
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from rag.errors import StoreError
from rag.store.server.collection import Collection
from rag.store.server.rest import Rest

# A holder that fell silent for so long is gone; it renews its lease four times as often.
LEASE_SECONDS = 60.0
# Nobody who wants to leave waits longer for a server that does not answer.
RENEWAL_SECONDS = 5.0

_PREFIX = "lease-"


@dataclass(frozen=True, slots=True)
class _Term:
    number: int
    token: str
    owner: str
    holder: str
    ends: float
    released: bool


class Lease:
    """A lease that `holder` has. A thread renews it until it is released."""

    def __init__(self, rest: Rest, meta: Collection, number: int, token: str, holder: str) -> None:
        self._rest = rest
        self._meta = meta
        self._number = number
        self.holder = holder
        self._token = token
        self._over = threading.Event()
        self._renewal = threading.Thread(target=self._keep, daemon=True)
        self._renewal.start()

    @classmethod
    def take(cls, rest: Rest, meta: Collection, owner: str) -> Lease:
        """Become the one writer. The caller is the only process of the replica `owner`.

        Raises:
            StoreError: another machine writes.
        """
        before = _last(meta.page(0))
        # A former process of the same replica is dead, since this one has its lock.
        if before and not before.released and before.ends > rest.now() and before.owner != owner:
            raise StoreError(_in_use(rest, before))
        number, token = (before.number if before else 0) + 1, uuid.uuid4().hex
        holder = f"{socket.gethostname()}, PID {os.getpid()}"
        record: dict[str, str | bool] = {
            "token": token,
            "owner": owner,
            "holder": holder,
            "released": False,
        }
        meta.add(_key(number), {**record, "ends": rest.now() + LEASE_SECONDS})
        found = meta.page(0)
        winner = _last(found)
        if winner is None or winner.token != token:
            raise StoreError(_in_use(rest, winner))
        meta.delete([key for key in found if key.startswith(_PREFIX) and key != _key(number)])
        return cls(rest, meta, number, token, holder)

    def require(self, found: Mapping[str, Mapping[str, Any]]) -> None:
        """Make sure that the lease among these records of the server is still this one.

        Raises:
            StoreError: another machine has taken over.
        """
        last = _last(found)
        if last is None or last.token != self._token or last.released:
            raise StoreError(
                f"The store at {self._rest.address} is now being written by "
                f"{last.holder if last else 'another machine'}, since this one was silent for over "
                f"{LEASE_SECONDS:.0f} s. What was acknowledged stays: run the command again later."
            )

    def release(self) -> None:
        """Let others write."""
        self._over.set()
        self._renewal.join()
        with suppress(StoreError):  # it ends by itself
            self._meta.update(_key(self._number), {"released": True}, RENEWAL_SECONDS)

    def renew(self) -> None:
        """Put off the end.

        Raises:
            StoreError: the server does not take it.
        """
        self._rest.set_clock()
        ends = self._rest.now() + LEASE_SECONDS
        self._meta.update(_key(self._number), {"ends": ends}, RENEWAL_SECONDS)

    def _keep(self) -> None:
        while not self._over.wait(LEASE_SECONDS / 4):
            with suppress(StoreError):  # which shows at the next write
                self.renew()


def _key(number: int) -> str:
    return f"{_PREFIX}{number:010}"


def _last(found: Mapping[str, Mapping[str, Any]]) -> _Term | None:
    return max(_terms(found), key=lambda term: term.number, default=None)


def _terms(found: Mapping[str, Mapping[str, Any]]) -> Iterable[_Term]:
    for key, held in found.items():
        number = key.removeprefix(_PREFIX)
        if key.startswith(_PREFIX) and number.isdecimal():
            yield _Term(
                int(number),
                str(held.get("token")),
                str(held.get("owner")),
                str(held.get("holder")),
                float(held.get("ends") or 0),
                held.get("released") is True,
            )


def _in_use(rest: Rest, term: _Term | None) -> str:
    holder = term.holder if term else "another process"
    left = max(0.0, term.ends - rest.now()) if term else LEASE_SECONDS
    return (
        f"The index at {rest.address} is being written by {holder}. Nothing was changed: wait "
        f"until it is done, then run the command again. If it has crashed, that is in {left:.0f} s."
    )
