"""What one change makes of the documents and postings of a lexical index."""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter

from rag.lexical.file import BLOCK, MARK_BYTES, Block, Entries, IndexFile
from rag.lexical.scoring import GONE
from rag.lexical.words import tokens

# A byte holds no more, and BM25 hardly tells 255 occurrences from more.
_MOST = 255


class Writer:
    """Puts and removes documents within one transaction of `file`; memory is that of one block."""

    def __init__(self, file: IndexFile) -> None:
        self._file = file
        self._blocks = file.blocks()
        self._numbers = numbers(self._blocks)
        self._changed: set[int] = set()
        # Postings of the last block that are not in the file yet.
        self._added: dict[str, Entries] = {}

    def put(self, paper_id: str, text: str) -> None:
        """Index `text` under an ID, in place of what stood there; nothing if that is the same."""
        mark = hashlib.blake2b(
            text.encode("utf-8", "surrogatepass"), digest_size=MARK_BYTES
        ).digest()
        known = self._numbers.get(paper_id)
        if known is not None:
            block, place = divmod(known, BLOCK)
            if self._blocks[block].mark(place) == mark:
                return
            self.remove(paper_id)
        self._append(paper_id, text, mark)

    def remove(self, paper_id: str) -> None:
        """Forget a document, if there is one of this ID."""
        known = self._numbers.pop(paper_id, None)
        if known is not None:
            block, place = divmod(known, BLOCK)
            self._blocks[block].lengths[place] = GONE
            self._changed.add(block)

    def keep(self, paper_ids: set[str]) -> None:
        """Remove every document but these."""
        for paper_id in self._numbers.keys() - paper_ids:
            self.remove(paper_id)

    def flush(self) -> None:
        """Hand to the file what it lacks."""
        if self._added:
            self._file.add_postings(self._blocks[-1], self._added)
            self._added = {}
        for number in sorted(self._changed):
            self._file.put_block(self._blocks[number])
        self._changed = set()

    def _append(self, paper_id: str, text: str, mark: bytes) -> None:
        if not self._blocks or len(self._blocks[-1].ids) == BLOCK:
            self.flush()
            self._blocks.append(Block(len(self._blocks)))
        block = self._blocks[-1]
        place = len(block.ids)
        counts = Counter(tokens(text))
        for term, count in counts.items():
            found = self._added.get(term)
            if found is None:
                found = self._added[term] = (array("H"), bytearray())
            found[0].append(place)
            found[1].append(min(count, _MOST))
        block.ids.append(paper_id)
        block.lengths[place] = counts.total()
        block.marks += mark
        self._numbers[paper_id] = block.number * BLOCK + place
        self._changed.add(block.number)


def numbers(blocks: list[Block]) -> dict[str, int]:
    """The number of each document that is there, by ID."""
    found: dict[str, int] = {}
    for block in blocks:
        there = (block.lengths[: len(block.ids)] != GONE).nonzero()[0].tolist()
        start = block.number * BLOCK
        found.update((block.ids[place], start + place) for place in there)
    return found
