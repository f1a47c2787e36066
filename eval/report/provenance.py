"""What run.json says of a run, for a reader: the main things in words, and everything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from eval.report import shown

# Characters that tell two fingerprints or commits apart.
_SHORT = 12
# Long, and shown in parts elsewhere.
_LEFT_OUT = ("format", "identity")


def title(meta: Mapping[str, Any]) -> str:
    """One line: what was asked of which model on how many papers, and when."""
    questions, corpus = meta.get("questions") or {}, meta.get("corpus") or {}
    parts = [
        str(questions.get("name") or "questions"),
        f"model {meta['model']}" if meta.get("model") else "",
        f"{corpus['papers']:,} papers" if corpus.get("papers") is not None else "",
        shown.moment(str(meta["started"])) if meta.get("started") else "",
    ]
    return ", ".join(part for part in parts if part)


def main_facts(meta: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What a reader asks first; what is not known is left out."""
    found = [
        ("Language model", meta.get("model")),
        ("Embedding", meta.get("embedding")),
        ("Corpus", _with_print(meta.get("corpus"), "store", "papers", "papers")),
        ("Questions", _with_print(meta.get("questions"), "name", "n", "questions")),
        ("Commit", _commit(meta.get("git"))),
        ("Version", (meta.get("versions") or {}).get("citewise")),
        ("Started", shown.moment(str(meta["started"])) if meta.get("started") else None),
        ("Finished", None if meta.get("finished") else "no: stopped, or still at work"),
        ("Took", _took(meta)),
        ("Tokens", _tokens(meta.get("usage"))),
        ("Cost", None if meta.get("cost") is None else f"{meta['cost']:.4f}"),
        ("Seed", meta.get("seed")),
        ("Ended early", _stopped(meta.get("outcome"))),
    ]
    return [(name, str(value)) for name, value in found if value not in (None, "")]


def everything(meta: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Every leaf of run.json, but for what only programs read."""
    return shown.flat({name: value for name, value in meta.items() if name not in _LEFT_OUT})


def _with_print(found: Mapping[str, Any] | None, name: str, count: str, unit: str) -> str | None:
    if not found:
        return None
    parts = [
        str(found.get(name) or ""),
        f"{found[count]:,} {unit}" if found.get(count) is not None else "",
        f"fingerprint {str(found['fingerprint'])[:_SHORT]}" if found.get("fingerprint") else "",
    ]
    return ", ".join(part for part in parts if part)


def _commit(git: Mapping[str, Any] | None) -> str | None:
    if not git:
        return None
    return str(git["commit"])[:_SHORT] + (", with changes not committed" if git["dirty"] else "")


def _took(meta: Mapping[str, Any]) -> str | None:
    if meta.get("seconds") is None:
        return None
    jobs = meta.get("jobs") or 1
    return shown.duration(meta["seconds"]) + (f", {jobs} at a time" if jobs > 1 else "")


def _tokens(usage: Mapping[str, int] | None) -> str | None:
    if not usage:
        return None
    return f"{usage['prompt_tokens']:,} read, {usage['completion_tokens']:,} written"


def _stopped(outcome: Any) -> str | None:
    return outcome.get("stopped") if isinstance(outcome, Mapping) else None
