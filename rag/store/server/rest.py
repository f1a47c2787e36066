"""The collections of a database on a Chroma server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag.store.server.collection import Collection
from rag.store.server.connection import FEWEST_AT_ONCE, Connection, LostError, quoted


class Rest(Connection):
    """One database of a server. Every method raises StoreError where the server fails."""

    def collections(self) -> list[str]:
        """Names of all collections of the database."""
        names: list[str] = []
        while page := self.call(
            "GET", f"{self.database}/collections?limit={FEWEST_AT_ONCE}&offset={len(names)}"
        ):
            found = self.checked(page, list)
            names += [str(self.checked(one, dict).get("name")) for one in found]
        return names

    def create(self, name: str, configuration: Mapping[str, Any] | None = None) -> Collection:
        """The collection of this name, made where there is none."""
        body = {"name": name, "get_or_create": True, "configuration": configuration}
        return self._opened(self.call("POST", f"{self.database}/collections", body))

    def collection(self, name: str) -> Collection:
        """The collection of this name.

        Raises:
            LostError: there is none.
        """
        return self._opened(self.call("GET", f"{self.database}/collections/{quoted(name)}"))

    def drop(self, name: str) -> None:
        """Delete a collection, if there is one of this name."""
        try:
            self.call("DELETE", f"{self.database}/collections/{quoted(name)}")
        except LostError:
            return

    def _opened(self, found: Any) -> Collection:
        return Collection(self, str(self.checked(found, dict).get("id")))
