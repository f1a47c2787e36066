"""Files into the store: read, recognise what is known, embed what is new, commit in small batches.

A run that is interrupted continues where it stopped when it is started again: every committed
batch is whole, and nothing that was committed is embedded a second time.
"""

from rag.entries import entries
from rag.ingest.run import BATCH, Progress, ingest
from rag.ingest.summary import Conflict, IngestSummary

__all__ = ["BATCH", "Conflict", "IngestSummary", "Progress", "entries", "ingest"]
