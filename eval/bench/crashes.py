"""An ingest that is killed at random moments and begun again, and what is left of it."""

from __future__ import annotations

import hashlib
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eval.bench.papers import GivenVectors
from rag.check import check
from rag.entries import cut
from rag.errors import RagError
from rag.ingest import ingest
from rag.store import Store, store_exists

# A run that has not ended by then hangs.
LONGEST_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Crashes:
    """What killing came to; all but the first two should be 0.

    `lost` are papers that had been stored, or that are missing at the end; `doubled` those there
    twice; `unreachable` vectors that do not find themselves, and other findings of a check; `again`
    texts that were embedded although their papers were stored.
    """

    kills: int
    runs: int
    lost: int
    doubled: int
    unreachable: int
    again: int


def crashes(  # noqa: PLR0913, PLR0917
    file: Path,
    folder: Path,
    kills: int,
    seed: int,
    sizes: Sequence[int] = (),
    said: Callable[[str], None] = lambda _: None,
) -> Crashes:
    """Kill ingests of `file` into stores in `folder` until there were so many kills.

    A store that was completed is checked, and the next one begun. `sizes` makes batches smaller, as
    `main` takes them.
    """
    chance = random.Random(seed)
    trial = _Trial(file, folder / "whole", sizes)
    trial.run(None)
    expected = trial.papers()
    seconds, done, runs, found = trial.seconds, 0, 0, [trial.verdict(expected)]
    while done < kills or not trial.ended:
        if trial.ended:
            trial = _Trial(file, folder / f"killed-{runs}", sizes)
        runs += 1
        moment = chance.uniform(0, seconds) if done < kills else None
        if trial.run(moment):
            done += 1
        if trial.ended:
            found.append(trial.verdict(expected))
        faults = sum(map(sum, found))
        said(f"{done} of {kills} kills, {len(trial.stored)} papers stored, {faults} faults")
    total = np.sum(found, axis=0)
    return Crashes(done, runs, *(int(number) for number in total))


class _Trial:
    """One store, and what is known of it from outside."""

    def __init__(self, file: Path, store: Path, sizes: Sequence[int]) -> None:
        self.ended = False
        self.stored: dict[str, str] = {}
        self._file, self._store, self._sizes = file, store, sizes
        self._log = store.with_suffix(".log")
        self._lost = self._again = 0
        # What the last run took.
        self.seconds = 0.0

    def run(self, seconds: float | None) -> bool:
        """Ingest, and kill after `seconds`; whether it was still at work then."""
        self._log.write_text("")
        arguments = list(map(str, (self._file, self._store, self._log, *self._sizes)))
        command = [sys.executable, "-m", "eval.bench.crashes", *arguments]
        started = time.perf_counter()
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            code = process.wait(LONGEST_SECONDS if seconds is None else seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            code = process.wait()
            if seconds is None:
                raise RagError(f"An ingest into {self._store} did not end.") from None
        if code not in (0, -signal.SIGKILL):
            said = process.stderr.read() if process.stderr else ""
            raise RagError(f"An ingest into {self._store} ended with code {code}: {said[-2000:]}")
        if process.stderr:
            process.stderr.close()
        self.seconds = time.perf_counter() - started
        self.ended = code == 0
        self._look()
        return not self.ended

    def papers(self) -> dict[str, str]:
        """ID -> text of what is stored."""
        if not store_exists(self._store):
            return {}
        with Store.open(self._store, None) as store:
            return {paper.id: paper.text for paper in store.papers()}

    def verdict(self, expected: dict[str, str]) -> tuple[int, int, int, int]:
        """Lost, doubled, unreachable, embedded again."""
        wrong = sum(self.stored.get(paper_id) != text for paper_id, text in expected.items())
        checkup = check(self._store)
        unreachable = sum(not finding.ok for finding in checkup.findings)
        doubled = checkup.papers - len(set(self.stored.values()))
        return self._lost + wrong, doubled, unreachable, self._again

    def _look(self) -> None:
        embedder = GivenVectors()
        # What was stored before this run: none of it is lost by it, or embedded in it.
        now = self.papers()
        self._lost += sum(now.get(paper_id) != text for paper_id, text in self.stored.items())
        before = set(self.stored)
        self._again += len(set(self._log.read_text().split()) & self._marks(before, embedder))
        self.stored = now

    def _marks(self, ids: set[str], embedder: GivenVectors) -> set[str]:
        if not ids:
            return set()
        with Store.open(self._store, None) as store:
            papers = [paper for paper in store.papers() if paper.id in ids]
        return {mark(text) for paper in papers for text in cut(paper, embedder).texts}


class _Logging(GivenVectors):
    """Writes down what it embeds."""

    def __init__(self, log: Path) -> None:
        super().__init__()
        self._log = log

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        with self._log.open("a") as log:
            log.writelines(f"{mark(text)}\n" for text in texts)
        return super().documents(texts)


def mark(text: str) -> str:
    """A short name for a text."""
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def main() -> None:
    """FILE STORE LOG [papers a commit, chunks that are worth a process, papers of words]."""
    import rag.ingest.run
    import rag.store.filling
    import rag.store.store

    file, store, log, *sizes = sys.argv[1:]
    if sizes:
        rag.ingest.run.BATCH, enough, rag.store.store.WORDS_BACKLOG = map(int, sizes)
        rag.store.store.ENOUGH = enough  # type: ignore[attr-defined]
    ingest([Path(file)], Path(store), _Logging(Path(log)))


if __name__ == "__main__":
    main()
