"""A catalog of an earlier version, brought up to date in place before it is first written."""

from __future__ import annotations

import json

from rag.keys import identifiers, paper_keys, text_key
from rag.store.database import Database, statements
from rag.store.schema import ADDED_COLUMNS, KEYED
from rag.types import Paper


def migrate(database: Database) -> None:
    """Add the columns and keys that this version looks papers up by; all or nothing.

    Also completes papers that an earlier version wrote without keys afterwards.
    """
    current = is_current(database)
    if current and not database.rows("SELECT 1 FROM papers WHERE start_key IS NULL LIMIT 1"):
        return
    with database.transaction():
        if not current:
            for statement in statements(ADDED_COLUMNS + KEYED):
                database.run(statement)
        _fill(database)


def is_current(database: Database) -> bool:
    """Whether the catalog has the tables and columns of this version."""
    return bool(database.rows("SELECT 1 FROM sqlite_master WHERE name = 'files'"))


def _fill(database: Database) -> None:
    pks = [row[0] for row in database.rows("SELECT pk FROM papers WHERE start_key IS NULL")]
    for pk in pks:
        ((paper_id, title, derived, text, metadata, digest),) = database.rows(
            "SELECT id, title, title_derived, text, metadata, content_hash FROM papers "
            "WHERE pk = ?",
            (pk,),
        )
        paper = Paper(paper_id, title, text, "", (), bool(derived))
        database.run(
            "UPDATE papers SET title_key = ?, start_key = ?, end_key = ? WHERE pk = ?",
            (*paper_keys(paper), pk),
        )
        found = identifiers(paper_id, json.loads(metadata))
        # Which source gave an identifier is no longer known: each may have.
        database.run(
            "UPDATE sources SET doi = ?, arxiv = ?, text_key = ? WHERE paper_pk = ?",
            (found.doi, found.arxiv, text_key(digest), pk),
        )
