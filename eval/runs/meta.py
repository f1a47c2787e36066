"""run.json: what a run was made with, and how it went."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from eval.runs.directory import FORMAT
from eval.runs.environment import git_state, machine, shown_path, versions
from rag.batch.budget import Price
from rag.batch.engine import Outcome, now
from rag.config import Settings


@dataclass(frozen=True, slots=True)
class Made:
    """What is the same in every session of a run.

    `identity` is what two sessions must agree in; `questions` are {"name", "fingerprint", "n"},
    `corpus` {"fingerprint", "papers", "store"}.
    """

    identity: Mapping[str, Any]
    made_with: str
    questions: Mapping[str, Any]
    corpus: Mapping[str, Any]
    model: str
    embedding: str


def begun(made: Made, settings: Settings, jobs: int) -> dict[str, Any]:
    """The run.json of a run that begins."""
    return {
        "format": FORMAT,
        **asdict(made),
        "settings": shown_settings(settings),
        "seed": settings.answer.seed,
        "versions": versions(),
        "git": git_state(),
        "machine": machine(),
        "started": now(),
        "finished": None,
        "seconds": 0.0,
        "sessions": 1,
        "jobs": jobs,
        "usage": None,
        "cost": None,
        "prices": None,
        "outcome": None,
    }


def continued(meta: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """The run.json of a session that begins, where `before` is that of the session before."""
    return {
        **meta,
        "started": before.get("started", meta["started"]),
        "seconds": before.get("seconds", 0.0),
        "sessions": before.get("sessions", 0) + 1,
    }


def ended(
    meta: Mapping[str, Any], outcome: Outcome, seconds: float, price: Price | None
) -> dict[str, Any]:
    """The run.json of a session of `seconds` that ends; those of a killed one are not known.

    `usage` and `cost` are those of every attempt, of any session and of replaced ones too.
    """
    shown = ("done", "failed", "skipped", "cached", "stopped")
    return {
        **meta,
        "finished": now(),
        "seconds": round(meta["seconds"] + seconds, 3),
        "usage": asdict(outcome.usage),
        "cost": outcome.cost,
        "prices": None if price is None else asdict(price),
        "outcome": {name: getattr(outcome, name) for name in shown},
    }


def shown_identity(identity: Mapping[str, str]) -> dict[str, Any]:
    """What answers depend on, in parts, so that a difference can be named."""
    return {name: _in_parts(name, value) for name, value in identity.items()}


def _in_parts(name: str, value: str) -> Any:
    if name == "libraries":
        return dict(part.split(" ", 1) for part in value.split(", ") if " " in part)
    if name == "endpoint" and "://" in value:
        return shown_address(value)
    return json.loads(value) if value.startswith("{") else value


def shown_settings(settings: Settings) -> dict[str, Any]:
    """The settings as a run may keep them: no secret of an address, no user's name in a path."""
    values = settings.model_dump(mode="json")
    for section in ("llm", "embedding"):
        address = values[section]["base_url"]
        values[section]["base_url"] = address and shown_address(address)
    values["store"] = shown_path(settings.store)
    for holder, name in ((values, "cache_dir"), (values["llm"], "model_path")):
        holder[name] = holder[name] and shown_path(Path(holder[name]))
    return values


def shown_address(url: str) -> str:
    """An endpoint's address without user, password and query, any of which may be a key."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
