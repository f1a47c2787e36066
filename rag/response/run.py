"""Files of reviews to responses: everything opened, resumed where it stopped, and counted."""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from rag.batch.answering import Answering
from rag.batch.cache import open_cache
from rag.batch.engine import Progress, run_all
from rag.batch.journal import Journal
from rag.batch.setup import patient, usual_jobs
from rag.config import Settings
from rag.errors import BatchError, ReadError, UsageError
from rag.llm import open_chat
from rag.response.answering import Responder
from rag.response.concerns import Concern, ReviewFile, read_file
from rag.response.outcome import FileResponse, Line, Response, Status
from rag.session import FileProgress, Search, open_search
from rag.state import PRIVATE_DIRECTORY, state_directory
from rag.types import Paper

# Journals of reviews that are kept; a review of some items takes 50 KB.
MOST_KEPT = 200

ProgressCallback = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Request:
    """Which reviews, of which paper (its ID), and which items alone; none of `only` means all."""

    files: Sequence[Path]
    about: str | None = None
    only: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Summary:
    """The responses, the papers that they name, by ID, the one under review, and what went wrong.

    `unread` says of each file that could not be read why; `stopped` why the run ended before its
    last item, if it did.
    """

    files: tuple[FileResponse, ...]
    papers: Mapping[str, Paper]
    about: Paper | None
    unread: tuple[str, ...]
    notes: tuple[str, ...]
    stopped: str | None
    seconds: float

    @property
    def counts(self) -> Counter[Status]:
        """How many concerns came to what."""
        return Counter(r.status for file in self.files for r in file.responses)


def run_review(
    request: Request,
    settings: Settings,
    on_progress: ProgressCallback | None = None,
    file_progress: FileProgress | None = None,
) -> Summary:
    """Respond to every concern that no earlier run responded to, failed ones again.

    Raises:
        UsageError: the store has no paper `about`, or a review has no item of `only`.
        BatchError: another process is at work on a review, or its lines cannot be kept.
        RagError: see `open_search` and `open_chat`.
    """
    started = time.perf_counter()
    files, unread = _read(request.files)
    _check_only(request, files)
    run = _Run(request, patient(settings), on_progress)
    if any(file.concerns for file in files) or request.about is not None:
        run.work(files, file_progress)
    run.done += [_open(file) for file in files[len(run.done) :]]
    return Summary(
        tuple(run.done),
        run.papers,
        run.about,
        unread,
        tuple(dict.fromkeys(run.notes)),
        run.stopped,
        time.perf_counter() - started,
    )


class _Run:
    """The files of one request, one after the other."""

    def __init__(
        self, request: Request, settings: Settings, on_progress: ProgressCallback | None
    ) -> None:
        self._request = request
        self._settings = settings
        self._on_progress = on_progress
        self.done: list[FileResponse] = []
        self.about: Paper | None = None
        self.papers: dict[str, Paper] = {}
        self.notes: list[str] = []
        self.stopped: str | None = None

    def work(self, files: Sequence[ReviewFile], file_progress: FileProgress | None) -> None:
        """Respond to all of them, or until what would stop every further item."""
        settings, request = self._settings, self._request
        fresh = not request.only  # items that are to be done again are asked again
        with open_search(settings) as search, open_cache(settings, wanted=fresh) as cache:
            if request.about is not None:
                self.about = search.store.paper(request.about)
            if not any(file.concerns for file in files):
                return
            with open_chat(settings, file_progress, usual_jobs(settings)) as model:
                answering = Answering(search, model, settings, cache)
                responder = Responder(answering, search.retriever, self.about, settings)
                progress = _Overall(self._on_progress, sum(len(self._wanted(f)) for f in files))
                for file in files:
                    path = _journal(file, self.about, answering.made_with)
                    self._respond(file, path, responder, progress)
                    self._look_up(search, self.done[-1])
                self.notes += [*model.degraded, *([cache.note] if cache and cache.note else [])]

    def _respond(
        self, file: ReviewFile, path: Path, responder: Responder, progress: _Overall
    ) -> None:
        lines: dict[str, Line] = {}
        try:
            with Journal.open(path) as journal:
                if self.stopped is None:
                    self.stopped = self._run(file, journal, responder, progress)
                lines = {line["id"]: line for line in journal.lines()}
                self.notes += [journal.repaired] if journal.repaired else []
        except BatchError as error:  # of what is done before, nothing is lost
            self.stopped = str(error)
        responses = (Response(concern, lines.get(concern.key)) for concern in file.concerns)
        self.done.append(FileResponse(file, tuple(responses)))

    def _run(
        self, file: ReviewFile, journal: Journal, responder: Responder, progress: _Overall
    ) -> str | None:
        wanted = self._wanted(file)
        outcome = run_all(
            list(wanted.items()),
            responder.line,
            journal,
            jobs=usual_jobs(self._settings),
            retry_failed=True,
            redo=wanted if self._request.only else (),
            on_progress=progress,
        )
        progress.next_file()
        return outcome.stopped

    def _wanted(self, file: ReviewFile) -> dict[str, Concern]:
        """By key: what is said twice is answered once."""
        only = self._request.only
        chosen = (c for c in file.concerns if not only or c.item in only)
        return {concern.key: concern for concern in chosen}

    def _look_up(self, search: Search, file: FileResponse) -> None:
        for response in file.responses:
            for paper_id in (*response.cited_ids(), *response.close_ids()):
                if paper_id not in self.papers:
                    self.papers[paper_id] = search.store.paper(paper_id)
            place = f"{response.concern.review}, item {response.concern.item}"
            notes = (response.line or {}).get("notes", ())
            self.notes += [f"{place}: {note}" for note in notes]


class _Overall:
    """Reports of one file after the other as those of one run of `total` items."""

    def __init__(self, on_progress: ProgressCallback | None, total: int) -> None:
        self._on_progress = on_progress
        self._total = total
        self._done = self._failed = 0
        self._last: Progress | None = None

    def __call__(self, progress: Progress) -> None:
        self._last = progress
        if self._on_progress is not None:
            done, failed = self._done + progress.done, self._failed + progress.failed
            self._on_progress(replace(progress, done=done, failed=failed, total=self._total))

    def next_file(self) -> None:
        """What was reported so far is behind."""
        if self._last is not None:
            self._done += self._last.done
            self._failed += self._last.failed
            self._last = None


def _read(paths: Sequence[Path]) -> tuple[tuple[ReviewFile, ...], tuple[str, ...]]:
    files, unread = [], []
    for path in dict.fromkeys(paths):
        try:
            files.append(read_file(path))
        except ReadError as error:
            unread.append(str(error))
    return tuple(files), tuple(unread)


def _check_only(request: Request, files: Sequence[ReviewFile]) -> None:
    if not request.only:
        return
    if len(request.files) != 1:
        raise UsageError("--only numbers the items of one review: name one file with it.")
    for file in files:
        missing = sorted(request.only - {concern.item for concern in file.concerns})
        if missing:
            count = len(file.concerns)
            has = f"its items are 1 to {count}" if count else "it has none"
            raise UsageError(f"{file.name} has no item {missing[0]}: {has}. Mend --only.")


def _open(file: ReviewFile) -> FileResponse:
    return FileResponse(file, tuple(Response(concern, None) for concern in file.concerns))


def _journal(file: ReviewFile, about: Paper | None, made_with: str) -> Path:
    """Where the lines of these reviews are kept, for the user alone.

    Named by all that they depend on: what is answered otherwise now begins anew.

    Raises:
        BatchError: the directory cannot be made.
    """
    texts = [review.text for review in file.reviews]
    named = json.dumps([texts, about.id if about else None, made_with])
    directory = state_directory() / "reviews"
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=PRIVATE_DIRECTORY)
    except OSError as error:
        raise BatchError(
            f"{directory}, where responses are kept as they are made, cannot be made: "
            f"{error.strerror}. Check its permissions, or set XDG_STATE_HOME to another directory."
        ) from error
    _prune(directory)
    return directory / f"{hashlib.sha256(named.encode('utf-8', 'replace')).hexdigest()[:32]}.jsonl"


def _prune(directory: Path) -> None:
    """Forget the journals of reviews that were not looked at for longest."""
    kept = sorted(directory.glob("*.jsonl"), key=_used, reverse=True)
    for old in kept[MOST_KEPT:]:
        with suppress(OSError):
            old.unlink()


def _used(path: Path) -> float:
    with suppress(OSError):
        return path.stat().st_mtime
    return 0.0
