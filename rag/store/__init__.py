"""Papers kept in one directory, found by meaning and by words.

`store` is what the rest of the package uses; `catalog` (SQLite) holds the truth, `vectors` (Chroma)
is made from it, `directory` says who may write. `server` is the same for several machines.
"""

from rag.store.opening import open_store, store_exists
from rag.store.schema import Entry, Fingerprint, Place
from rag.store.store import Store, fingerprint_of

__all__ = [
    "Entry",
    "Fingerprint",
    "Place",
    "Store",
    "fingerprint_of",
    "open_store",
    "store_exists",
]
