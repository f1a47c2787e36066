"""The vectors of a large store in one file, mapped into memory: read at the speed of memory.

vectors/GENERATION.f32   rows of float32, in the order in which chunks were stored
vectors/GENERATION.keys  the key of each row's chunk in the catalog, int64

Rows are only ever added. Which of them count is always asked of the catalog, and what the file
lacks is read from there: so a file that is behind is slow, never wrong.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rag.errors import StoreError
from rag.store.catalog import Catalog, as_matrix

_AT_ONCE = 10_000
_SAMPLES = 8


class DamagedVectorsError(StoreError):
    """The file of vectors is not what was written."""

    def __init__(self, file: Path) -> None:
        super().__init__(
            f"The vectors in {file} are damaged. Run `rag index rebuild`: the catalog holds them "
            "too, so nothing is embedded again."
        )


class MappedVectors:
    """The rows of one generation's file: `matrix`, shape (n, d), and `keys`, ascending."""

    def __init__(self, directory: Path, catalog: Catalog) -> None:
        """Map what there is, which may be nothing.

        Raises:
            DamagedVectorsError: sampled rows are not the catalog's.
            StoreError: the file cannot be read.
        """
        self._catalog = catalog
        generation = (catalog.meta("generation") or "")[:8]
        self._file = directory / f"{generation}.f32"
        self._keys_file = directory / f"{generation}.keys"
        self.dimension = int(catalog.meta("dimension") or 0)
        try:
            self._map()
        except OSError as error:
            raise StoreError(
                f"{self._file} cannot be read: {error.strerror or error}. Check its permissions."
            ) from error
        if not self._holds(np.linspace(0, len(self.keys) - 1, _SAMPLES).astype(np.int64)):
            raise DamagedVectorsError(self._file)

    def _map(self) -> None:
        self.keys = np.zeros(0, dtype=np.int64)
        self.matrix = np.zeros((0, self.dimension), dtype=np.float32)
        if not self._file.exists() or not self._keys_file.exists() or not self.dimension:
            return
        keys = np.fromfile(self._keys_file, dtype="<i8")
        # A killed writer may have left vectors without keys, or part of a row.
        rows = min(len(keys), self._file.stat().st_size // (4 * self.dimension))
        if rows:
            self.keys = keys[:rows]
            self.matrix = np.asarray(
                np.memmap(self._file, dtype="<f4", mode="r", shape=(rows, self.dimension))
            )

    def places(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """The row of each key; they must not be beyond the last.

        Raises:
            DamagedVectorsError: one has none.
        """
        found = np.searchsorted(self.keys, keys)
        if not np.array_equal(self.keys[found], keys):
            raise DamagedVectorsError(self._file)
        return found

    def check(self) -> None:
        """Compare every row with the catalog.

        Raises:
            DamagedVectorsError: one differs.
        """
        for start in range(0, len(self.keys), _AT_ONCE):
            rows = np.arange(start, min(start + _AT_ONCE, len(self.keys)))
            if not self._holds(rows):
                raise DamagedVectorsError(self._file)

    def _holds(self, rows: NDArray[np.int64]) -> bool:
        """Whether these rows are as the catalog has them, where it still has them."""
        if not len(self.keys):
            return True
        places = {int(self.keys[row]): row for row in rows.tolist()}
        found = self._catalog.rows(
            "SELECT pk, vector FROM chunks WHERE pk IN (SELECT value FROM json_each(?))",
            (f"[{','.join(map(str, places))}]",),
        )
        return all(self.matrix[places[key]].astype("<f4").tobytes() == blob for key, blob in found)

    def complete(self) -> None:
        """Add the rows that the file lacks."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        if len(self.keys) > 2 * self._catalog.count()[1]:  # most are of chunks that are gone
            discard(self._file.parent)
            self._file.parent.mkdir()
            self._map()
        self._drop_others()
        with self._file.open("ab") as vectors, self._keys_file.open("ab") as keys:
            vectors.truncate(len(self.keys) * 4 * self.dimension)
            keys.truncate(len(self.keys) * 8)
            for fresh, matrix in self._missing():
                vectors.write(matrix.tobytes())
                vectors.flush()
                os.fsync(vectors.fileno())
                # A key says that its row is there.
                keys.write(fresh.astype("<i8").tobytes())
                keys.flush()
            os.fsync(keys.fileno())
        self._map()

    def _missing(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        last = int(self.keys[-1]) if len(self.keys) else 0
        while found := self._catalog.rows(
            "SELECT pk, vector FROM chunks WHERE pk > ? ORDER BY pk LIMIT ?", (last, _AT_ONCE)
        ):
            last = found[-1][0]
            yield np.array([row[0] for row in found]), as_matrix(row[1] for row in found)

    def _drop_others(self) -> None:
        for other in self._file.parent.iterdir():
            if other not in (self._file, self._keys_file):
                other.unlink()


def complete(directory: Path, catalog: Catalog) -> None:
    """Bring the file up to the catalog, and make it anew where it is damaged.

    Raises:
        StoreError, OSError: it cannot be written.
    """
    try:
        MappedVectors(directory, catalog).complete()
    except DamagedVectorsError:
        discard(directory)
        MappedVectors(directory, catalog).complete()


def discard(directory: Path) -> None:
    """Delete every file of vectors, so that the next writer makes them anew."""
    shutil.rmtree(directory, ignore_errors=True)
