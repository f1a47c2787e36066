from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from doubles.commands import FACT, QUESTION, Rag, reply
from doubles.service import Service

from eval.metrics.measures import METRICS
from rag.config import load_settings

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
MANUAL = README + (ROOT / "eval" / "README.md").read_text(encoding="utf-8")
KEYS = {"RAG_LLM_API_KEY", "RAG_EMBEDDING_API_KEY", "RAG_STORE_API_KEY"}
VALUES = {
    "RAG_LLM_CONTEXT_TOKENS": "4096",
    "RAG_ANSWER_EVIDENCE_TOKENS": "700",
    "RAG_STORE": "vectorstore",
    "RAG_STORE_TENANT": "team",
    "RAG_STORE_DATABASE": "papers",
}


@pytest.mark.parametrize("name", sorted(set(re.findall(r"\bRAG_[A-Z_]+\b", README)) - KEYS))
def test_every_setting_named_exists(name: str) -> None:
    value = VALUES.get(name, "true" if name.endswith("DOWNLOAD") else "http://127.0.0.1:9/v1")
    load_settings(environ={name: value})


def test_every_command_named_exists(rag: Rag) -> None:
    commands = {line.split("`")[1] for line in README.splitlines() if line.startswith("| `rag ")}
    for command in sorted(commands):
        words = [word for word in command.split()[1:] if word.islower() and word.isalpha()]
        assert rag(*words, "--help").code == 0, command
    assert len(commands) == 13


@pytest.mark.parametrize(
    "path", sorted(set(re.findall(r"`((?:rag|eval|prompts)/[\w./]*)`", MANUAL)))
)
def test_every_path_named_exists(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize("name", sorted(set(re.findall(r"python -m ([\w.]+)", MANUAL))))
def test_every_module_named_can_be_run(name: str) -> None:
    assert find_spec(name) is not None


def test_every_metric_named_exists() -> None:
    table = MANUAL.split("| metric | |")[1].split("Intervals:")[0]
    named = {name for row in table.splitlines() for name in re.findall(r"`([\w@]+)`", row[:120])}
    assert len(named) > 20
    assert named <= set(METRICS)


def test_the_lines_by_hand_are_those_of_make() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert '".[local,dev]"' in README
    assert '".[local,dev]"' in makefile
    assert "rag ingest eval/data/demo.jsonl" in README
    assert "rag ingest eval/data/demo.jsonl" in makefile


def contract(command: str) -> set[str]:
    """The keys that the block under a command's contract names."""
    block = README.split(f"`rag {command} --json`", 1)[1].split("```")[1]
    return set(re.findall(r'"(\w+)"', block))


def keys(value: object) -> set[str]:
    if isinstance(value, list):
        return set().union(*map(keys, value))
    if not isinstance(value, dict):
        return set()
    return set(value).union(*map(keys, value.values()))


def test_the_contracts_are_what_the_commands_print(filled: Rag, service: Service) -> None:
    service.replies.append(reply((FACT, [1])))
    answer = filled("ask", QUESTION, "--json").json
    # What a source is made of is said once, under search.
    assert keys(answer) == contract("ask") | {"file", "position"}
    assert keys(filled("search", QUESTION, "--json").json) == contract("search")
    other = '{"id": "alpha", "abstract": "Quite another text about something else."}\n'
    Path("bad.jsonl").write_text('{"id": "x"}\n' + other, encoding="utf-8")
    assert keys(filled("ingest", "bad.jsonl", "--json").json) == contract("ingest")
    Path("review.md").write_text("QUESTIONS:\n1. Which seeds did you use?\n", encoding="utf-8")
    kinds = {"answerable", "authors"}
    assert keys(filled("review", "review.md", "--json").json) == contract("review") - kinds
