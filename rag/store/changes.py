"""Which papers a writer's connection has changed, so that what is made from them need not look."""

from __future__ import annotations

from collections.abc import Iterator

from rag.store.catalog import Catalog

# Temporary: they belong to the connection, and a transaction that fails takes its part back.
_WATCH = (
    "CREATE TEMP TABLE IF NOT EXISTS touched (id TEXT NOT NULL)",
    "CREATE TEMP TRIGGER IF NOT EXISTS came AFTER INSERT ON main.papers "
    "BEGIN INSERT INTO touched VALUES (new.id); END",
    "CREATE TEMP TRIGGER IF NOT EXISTS changed AFTER UPDATE OF id, title, text ON main.papers "
    "BEGIN INSERT INTO touched VALUES (old.id), (new.id); END",
    "CREATE TEMP TRIGGER IF NOT EXISTS gone AFTER DELETE ON main.papers "
    "BEGIN INSERT INTO touched VALUES (old.id); END",
)


class Changes:
    """The papers that came, changed or went since the catalog was in the state `since`."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        for statement in _WATCH:
            catalog.run(statement)
        self.since = catalog.state

    def there(self) -> Iterator[tuple[str, str, str]]:
        """(ID, title, text) of those that the catalog has."""
        yield from self._catalog.stream(
            "SELECT id, title, text FROM papers WHERE id IN (SELECT id FROM temp.touched)"
        )

    def gone(self) -> list[str]:
        """IDs of those that it has no longer."""
        rows = self._catalog.rows("SELECT id FROM temp.touched EXCEPT SELECT id FROM main.papers")
        return [row[0] for row in rows]

    def forget(self, state: str) -> None:
        """Begin anew: all up to `state` is known."""
        self._catalog.run("DELETE FROM temp.touched")
        self.since = state
