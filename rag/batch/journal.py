"""Results as JSON lines, each appended the moment it is done; a killed run loses none of them."""

from __future__ import annotations

import errno
import json
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from filelock import FileLock, Timeout

from rag.batch.lines import BEGINNING, Attempt, attempt_of, encoded
from rag.errors import BatchError
from rag.types import Usage

__all__ = ["Attempt", "Journal"]


@dataclass(frozen=True, slots=True)
class _Place:
    start: int
    size: int


class Journal:
    """The lines of one file, held by one process at a time; use it as a context manager.

    `attempts` maps an item's ID to its latest attempt, `spent` are the tokens of every attempt, of
    those that a later one replaced too, `repaired` says what an interrupted run left torn, if it
    did. `append` and `lines` may be called from several threads.
    """

    def __init__(self, path: Path, lock: FileLock) -> None:
        self.path = path
        self.repaired: str | None = None
        self.spent = Usage()
        self.attempts: dict[str, Attempt] = {}
        self._lock = lock
        self._places: dict[str, _Place] = {}
        self._mutex = threading.Lock()
        self._end = 0
        self._torn = False
        self._made = not path.exists()
        # Unbuffered: what `append` has written, a killed process leaves behind.
        self._file = path.open("x+b" if self._made else "r+b", buffering=0)

    @classmethod
    def open(cls, path: Path) -> Journal:
        """Lock `path`, made where there is none, read what it holds and mend a torn last line.

        Raises:
            BatchError: another process is at work on it, it cannot be opened, or a line is no
                result; nothing was changed then.
        """
        if not path.parent.is_dir():  # the lock would make it
            raise BatchError(
                f"{path.parent}, where {path.name} is to be, is no directory. Make it."
            )
        lock = FileLock(path.with_name(f".{path.name}.lock"), thread_local=False)
        with _explained(path):
            try:
                lock.acquire(timeout=0)
            except Timeout as error:
                raise BatchError(
                    f"Another process is at work on {path}. Nothing was changed: wait until it is "
                    "done, or choose another file."
                ) from error
            try:
                journal = cls(path, lock)
                journal._read()
            except BaseException:
                lock.release()
                raise
            return journal

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the file and its lock, and leave no empty file; a second call does nothing."""
        with self._mutex:
            if self._file.closed:
                return
            self._file.close()
            if self._made and not self._end:
                self.path.unlink(missing_ok=True)
            self._lock.release()

    def append(self, line: Mapping[str, Any]) -> None:
        """Add the line of an item; it has "id", "attempt", "answer" and "error".

        Raises:
            BatchError: it cannot be written; of it nothing is left in the file.
        """
        with self._mutex, _explained(self.path):
            if self._file.closed:
                raise BatchError(f"{self.path} is closed: its run has ended.")
            before = self._cost_of(line["id"])
            content, attempt = encoded(line, before), attempt_of(line, before)
            if self._torn:
                self._take_back()
            try:
                self._write(content)
            except OSError:
                self._torn = True
                self._take_back()
                raise
            self._note(line["id"], attempt, _Place(self._end, len(content)))
            self._end += len(content)

    def lines(self, ids: Iterable[str] | None = None) -> Iterator[dict[str, Any]]:
        """The latest line of each item, in the order of the file; one at a time in memory.

        With `ids` those of these items, in this order; an ID without a line is passed over.
        """
        with self._mutex:
            places = dict(self._places)
        wanted = places if ids is None else (i for i in ids if i in places)
        with _explained(self.path), self.path.open("rb") as file:
            for item_id in wanted:
                file.seek(places[item_id].start)
                yield json.loads(file.read(places[item_id].size))

    def settle(self, order: Sequence[str]) -> None:
        """Rewrite the file at once: the latest line of each item, in `order`; others follow.

        Raises:
            BatchError: it cannot be written; the file is as it was.
        """
        with self._mutex, _explained(self.path):
            ids = [i for i in dict.fromkeys(order) if i in self._places]
            known = set(ids)
            ids += [i for i in self._places if i not in known]
            places = [self._places[i] for i in ids]
            if not _settled(places, self._end):
                self._rewrite(ids, places)

    def _rewrite(self, ids: Sequence[str], places: Sequence[_Place]) -> None:
        beside = self.path.with_name(f".{self.path.name}.new")
        try:
            with beside.open("wb") as target:
                moved = list(self._copied(places, target))
                target.flush()
                os.fsync(target.fileno())
            # Windows replaces no open file.
            self._file.close()
            beside.replace(self.path)
        except OSError:
            beside.unlink(missing_ok=True)
            raise
        finally:
            if self._file.closed:
                self._file = self.path.open("r+b", buffering=0)
        self._places = dict(zip(ids, moved, strict=True))
        self._end = sum(place.size for place in moved)

    def _copied(self, places: Sequence[_Place], target: IO[bytes]) -> Iterator[_Place]:
        end = 0
        for place in places:
            self._file.seek(place.start)
            content = self._file.read(place.size)
            target.write(content)
            yield _Place(end, len(content))
            end += len(content)

    def _write(self, content: bytes) -> None:
        if os.fstat(self._file.fileno()).st_nlink == 0:
            raise BatchError(
                f"{self.path} was removed while the run was at work, which stops here. Run the "
                "same command again: it begins anew, with the answers that the cache has kept."
            )
        self._file.seek(self._end)
        rest = memoryview(content)
        while rest:  # a disk that fills up takes a part
            written = self._file.write(rest)
            if not written:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            rest = rest[written:]

    def _take_back(self) -> None:
        self._file.truncate(self._end)
        self._torn = False

    def _read(self) -> None:
        with self.path.open("rb") as file:
            for number, content in enumerate(file, start=1):
                if content.endswith(b"\n"):
                    self._take(content, number)
                    self._end += len(content)
                else:
                    self._mend(content, number)

    def _take(self, content: bytes, number: int) -> None:
        if not content.strip():
            return
        try:
            line = json.loads(content)
            attempt = attempt_of(line, self._cost_of(line["id"]))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise self._no_result(number) from error
        self._note(line["id"], attempt, _Place(self._end, len(content)))

    def _mend(self, tail: bytes, number: int) -> None:
        """A last line without an end: whole but for its line feed, or torn by a kill."""
        try:
            whole = isinstance(json.loads(tail), dict)
        except (ValueError, RecursionError):
            whole = False
        if whole:
            self._take(tail + b"\n", number)
            self._file.seek(self._end + len(tail))
            self._file.write(b"\n")
            self._end += len(tail) + 1
            self.repaired = f"Line {number} of {self.path} lacked its end; it was whole."
            return
        # After a power cut a file may end in zeros.
        begun = tail.rstrip(b"\0")[: len(BEGINNING)]
        if begun != BEGINNING[: len(begun)]:
            raise self._no_result(number)
        self._take_back()
        self.repaired = (
            f"Line {number} of {self.path} was torn when the run before was stopped; it was cut "
            "off, and its item is done again."
        )

    def _note(self, item_id: str, attempt: Attempt, place: _Place) -> None:
        before = self._cost_of(item_id)
        self.spent += Usage(
            attempt.usage.prompt_tokens - before.prompt_tokens,
            attempt.usage.completion_tokens - before.completion_tokens,
        )
        # Taken out first, so that the dictionary's order stays the file's.
        self._places.pop(item_id, None)
        self._places[item_id] = place
        self.attempts[item_id] = attempt

    def _cost_of(self, item_id: str) -> Usage:
        """What is known of the attempts at an item."""
        known = self.attempts.get(item_id)
        return known.usage if known is not None else Usage()

    def _no_result(self, number: int) -> BatchError:
        return BatchError(
            f"{self.path}, line {number}, is not a result that a run wrote. Nothing was changed: "
            "correct or remove that line, or choose another file."
        )


def _settled(places: Sequence[_Place], end: int) -> bool:
    """Whether lines lie one after the other, with nothing between or after them."""
    at = 0
    for place in places:
        if place.start != at:
            return False
        at += place.size
    return at == end


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Errors of the file system as advice."""
    try:
        yield
    except OSError as error:
        raise BatchError(_advice(path, error)) from error


def _advice(path: Path, error: OSError) -> str:
    if error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", None)):
        return (
            f"There is no space left on the disk of {path}. What is done is kept: free some space "
            "and run the same command again; it goes on where it stopped."
        )
    return (
        f"{path} cannot be read or written: {error.strerror or error}. Check its permissions and "
        "its disk, or choose another file."
    )
