"""From the server to a replica, and from a replica to the server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rag.store.server.connection import LostError
from rag.store.server.ledger import Ledger, Vectors
from rag.store.server.records import Gone, PaperRecord, Record, pack, record_key, unpack
from rag.store.server.remote import Head, Remote

# Papers a push: few enough that an interruption costs seconds, enough to hide the four requests.
PAPERS = 256


def pull(remote: Remote, head: Head, ledger: Ledger, *, everything: bool = False) -> bool:
    """Bring a replica up to the server; whether there was anything to do.

    That it is complete is for the caller to note, once what is made from it is complete, too.

    What the replica has and the server lacks, as its process was killed, stays, so that the next
    writer can push it, unless another machine has written since: then the server's word counts.
    `everything` also takes over what a killed writer left beyond the head.

    Raises:
        LostError: the server lacks what it must have.
    """
    since = ledger.revision
    if since == head.revision and not everything:
        return False
    papers = remote.papers(head)
    if since != head.revision and (changed := ledger.changed_all()):
        keys = {record_key(kind, name): Gone(kind, name) for kind, name in changed}
        found = {key: unpack(record) for key, record in papers.records(list(keys)).items()}
        _take_over(remote, head, ledger, [found.get(key, keys[key]) for key in keys])
        ledger.forget_changes()
    where = None if since < 0 else {"rev": {"$gt": since}}
    done = 0
    while page := papers.page(done, where):
        _take_over(remote, head, ledger, [unpack(record) for record in page.values()])
        done += len(page)
    return True


def _take_over(remote: Remote, head: Head, ledger: Ledger, records: Sequence[Record]) -> None:
    wanted = ledger.lacking(records)
    vectors: Vectors = remote.chunks(head).vectors(wanted)
    if len(vectors) < len(wanted):
        records, vectors = _again(remote, head, ledger, records)
    ledger.take_over(records, vectors)


def _again(
    remote: Remote, head: Head, ledger: Ledger, records: Sequence[Record]
) -> tuple[list[Record], Vectors]:
    """Records as they are now: a paper may have changed before its vectors were asked for."""
    papers = [r for r in records if isinstance(r, PaperRecord)]
    keys = [record_key("paper", paper.row["id"]) for paper in papers]
    fresh = [unpack(record) for record in remote.papers(head).records(keys).values()]
    wanted = ledger.lacking(fresh)
    vectors = remote.chunks(head).vectors(wanted)
    if missing := len(wanted) - len(vectors):
        raise LostError(
            f"The server {remote.address} has lost {missing} vectors of its papers. Run `rag index "
            "rebuild` on a machine that has used the store: nothing is embedded again."
        )
    return [*fresh, *(r for r in records if not isinstance(r, PaperRecord))], vectors


def push(remote: Remote, head: Head, ledger: Ledger, *, tell: bool = True) -> Head:
    """Bring some of what has changed to the server; the head that is written then.

    It is the same where there was nothing. A writer shows as writing from its first push on. With
    `tell` unset no head is written, for a store that nobody shall see before it is complete.
    """
    changed = ledger.changed(PAPERS)
    if not changed:
        return head
    if not head.writing:
        head = replace(head, writing=True)
        if tell:
            remote.write_head(head)
    some = ledger.unpushed(changed)
    remote.chunks(head).add_vectors(some.keys, some.vectors)
    head = replace(head, revision=head.revision + 1, run=ledger.run)
    names = [_named(record) for record in some.records]
    records = [pack(record, head.revision) for record in some.records]
    remote.papers(head).upsert(names, records)
    if tell:
        remote.write_head(head)
    ledger.pushed(changed, some, head.revision)
    return head


def _named(record: Record) -> str:
    if isinstance(record, Gone):
        return record_key(record.kind, record.name)
    if isinstance(record, PaperRecord):
        return record_key("paper", record.row["id"])
    return record_key("file", record.row["name"])
