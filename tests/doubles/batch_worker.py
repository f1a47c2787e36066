"""A run of the batch engine as a program of its own, to be killed: `python FILE JOURNAL ASKED N`.

Each item takes a few milliseconds; each that is begun is noted as a line of ASKED. Every third
fails.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

from rag.batch.engine import run_all
from rag.batch.journal import Journal


def main(journal_path: Path, asked_path: Path, count: int) -> None:
    asked = os.open(asked_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def work(number: int, attempt: int) -> dict[str, Any]:
        os.write(asked, f"{number}\n".encode())
        time.sleep(0.003)
        if number % 3 == 2:
            return {"at": "then", "answer": None, "error": f"{number} is one too many."}
        text = f"answer {number} " * 200
        return {"at": "then", "answer": {"text": text}, "error": None, "made": attempt}

    items = [(f"q{number}", number) for number in range(count)]
    with Journal.open(journal_path) as journal:
        run_all(items, work, journal)
        journal.settle([item_id for item_id, _ in items])


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
