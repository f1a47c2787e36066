from __future__ import annotations

import json
import re
import shutil
from math import log2
from pathlib import Path
from typing import Any

import pytest
from doubles.collection import QRELS, QUERIES, measured, nets, values, write_qrels_file
from doubles.commands import RECORDS, Rag, failed, write

from eval.retrieval.index import with_other_ids
from eval.retrieval.trec import read_qrels, write_run
from rag.lexical import LexicalIndex, searchable
from rag.papers import to_paper
from rag.readers import read
from rag.store import Store
from rag.types import Paper, Record

SHARED = Path(__file__).parents[2] / "shared" / "retrieval"


@pytest.fixture
def folder() -> Path:
    return nets()


def test_a_folder_is_indexed_searched_and_measured(rag: Rag, folder: Path) -> None:
    ran = rag("eval", "retrieval", "--corpus", folder, "--json")
    found = ran.json
    assert (ran.code, found["queries"], found["without_judgements"]) == (0, 3, 1)
    assert found["missing_relevant"] == ["gone"]
    assert [system["name"] for system in found["systems"]] == ["hybrid"]
    assert found["differences"] == []
    # alpha and beta come first for q1 and q2; beta comes last of three for q3
    ndcg = (2 / (2 + 1 / log2(3)) + 1 + 1 / log2(4)) / 3
    assert values(found["systems"][0]) == pytest.approx(
        {
            "nDCG@10": ndcg,
            "MRR@10": (1 + 1 + 1 / 3) / 3,
            "Recall@5": (1 / 2 + 1 + 1) / 3,
            "Recall@10": (1 / 2 + 1 + 1) / 3,
            "Recall@100": (1 / 2 + 1 + 1) / 3,
            "MAP@100": (1 / 2 + 1 + 1 / 3) / 3,
        },
        abs=1e-12,
    )
    assert found["systems"][0]["measures"]["MRR@10"]["n"] == 3
    index = found["index"]
    assert (index["papers"], index["reused"]) == (3, False)
    assert [r["position"] for r in index["rejected"]] == [4]
    assert ran.err == (
        "Left out, without judgements: 1 query (unjudged).\n"
        "Relevant but not in the index, and so never found: 1 paper (gone).\n"
        "Rejected corpus.jsonl, record 4: The abstract has 2 words; 5 words are the least.\n"
        f"The index holds 3 papers and takes {index['bytes'] / 1e6:.1f} MB at {index['path']}, a "
        "cache that can be deleted (--store DIR keeps it elsewhere).\n"
    )


def test_the_index_is_kept_in_the_cache_by_what_it_is_made_of(
    rag: Rag, folder: Path, service: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAG_CACHE_DIR", "kept")
    monkeypatch.setenv("RAG_STORE", "mine")
    first = measured(rag, "--corpus", folder)
    assert Path(first["index"]["path"]).parent.name.startswith("nets-")
    assert Path(first["index"]["path"]).parent.parent == Path("kept/eval")
    asked = len(service.requests)
    again = measured(rag, "--corpus", folder)
    assert again == first | {"index": first["index"] | {"reused": True}}
    assert len(service.requests) - asked == len(QUERIES) - 1
    Path("other").mkdir()
    moved = folder.rename("other/nets")
    assert measured(rag, "--corpus", moved)["index"]["path"] == first["index"]["path"]
    with (moved / "corpus.jsonl").open("a") as corpus:
        corpus.write(json.dumps({"id": "delta", "abstract": "One more paper about noise."}) + "\n")
    assert measured(rag, "--corpus", moved)["index"]["path"] != first["index"]["path"]
    monkeypatch.setenv("RAG_EMBEDDING_MODEL", "another")
    assert len(list(Path("kept/eval").iterdir())) == 2
    measured(rag, "--corpus", moved)
    assert len(list(Path("kept/eval").iterdir())) == 3
    assert not Path("mine").exists()


def test_a_build_that_was_interrupted_goes_on_where_it_stopped(
    rag: Rag, service: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    papers = [{"id": f"p{n}", "abstract": f"Paper {n} is about the noise."} for n in range(50)]
    corpus, queries = write("c.jsonl", *papers), write("q.jsonl", {"id": "q", "text": "Paper 7"})
    qrels = write_qrels_file("q 0 p7 1\n")
    arguments = ("--corpus", corpus, "--queries", queries, "--qrels", qrels, "--store", "here")
    commit, commits = Store.upsert, iter((True, False))

    def once(*given: Any) -> None:
        if not next(commits):
            raise KeyboardInterrupt
        commit(*given)

    with monkeypatch.context() as patch:
        patch.setattr(Store, "upsert", once)
        patch.setattr("rag.ingest.run.BATCH", 32)
        assert rag("eval", "retrieval", *arguments).code == 130
    service.requests.clear()
    found = measured(rag, *arguments)
    texts = [text for request in service.requests for text in request.body["input"]]
    # what the first commit of papers left, and the query
    assert len(texts) == 50 - 32 + 1
    assert (found["index"]["papers"], found["index"]["path"]) == (50, "here")


def test_a_damaged_cache_can_be_thrown_away(rag: Rag, folder: Path) -> None:
    place = Path(measured(rag, "--corpus", folder)["index"]["path"])
    (place / "papers.sqlite").unlink()
    ran = rag("eval", "retrieval", "--corpus", folder)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(
        f"The cached index of the collection cannot be used. Delete {place.parent}, and the next "
        "run makes it again. ("
    )
    shutil.rmtree(place.parent)
    assert not measured(rag, "--corpus", folder)["index"]["reused"]


def test_baselines_are_measured_in_the_same_run_and_written_beside_it(
    rag: Rag, folder: Path
) -> None:
    found = measured(
        rag, "--corpus", folder, "--baselines", "--run-out", "r.trec", "--qrels-out", "j.trec"
    )
    assert [system["name"] for system in found["systems"]] == ["hybrid", "bm25", "dense"]
    # no word of q3 stands in beta's abstract
    assert values(found["systems"][1])["MRR@10"] == pytest.approx(2 / 3)
    difference = found["differences"][0]
    assert (difference["system"], difference["baseline"]) == ("hybrid", "bm25")
    assert difference["measures"]["MRR@10"]["difference"] == pytest.approx(1 / 9)
    assert sorted(path.name for path in Path().glob("*.trec")) == [
        "j.trec",
        "r.bm25.trec",
        "r.dense.trec",
        "r.trec",
    ]
    again = measured(
        rag, "--run", "r.trec", "--run", "r.bm25.trec", "--run", "r.dense.trec", "--qrels", "j.trec"
    )
    assert [s["measures"] for s in again["systems"]] == [s["measures"] for s in found["systems"]]
    assert again["differences"][1]["measures"] == found["differences"][1]["measures"]
    assert (again["index"], again["missing_relevant"]) == (None, None)


def test_the_table_is_plain_text(rag: Rag, folder: Path) -> None:
    ran = rag("eval", "retrieval", "--corpus", folder, "--baselines")
    lines = ran.out.splitlines()
    assert lines[0] == "3 queries; in brackets, 95 % intervals"
    assert lines[2] == "                 hybrid               bm25                 dense"
    shown = re.match(r"nDCG@10          0\.753 \[(\d\.\d{3}), (\d\.\d{3})\] 0\.", lines[3])
    assert shown
    assert float(shown[1]) < 0.753 < float(shown[2])
    assert lines[9] == "without result   0                    0                    0"
    assert lines[11] == "hybrid vs bm25   difference           p (paired randomisation)"
    assert max(map(len, lines)) <= 80


def test_a_query_without_result_counts_0(rag: Rag, folder: Path) -> None:
    write("nets/queries.jsonl", *QUERIES[:2], {"id": "q3", "text": " ? "})
    ran = rag("eval", "retrieval", "--corpus", folder, "--json")
    assert ran.json["queries"] == 3
    assert ran.json["systems"][0]["without_result"] == 1
    assert values(ran.json["systems"][0])["MRR@10"] == pytest.approx(2 / 3)
    assert ran.json["refused"] == [
        {
            "query": "q3",
            "reason": 'The question is empty. Ask something, as in: rag ask "What is ...?"',
        }
    ]
    assert "Query q3 was not asked, and counts 0: The question is empty." in ran.err


def test_one_abstract_under_two_ids_takes_two_ranks(rag: Rag) -> None:
    twice = {**RECORDS[0], "id": "copy"}
    corpus = write("c.jsonl", *RECORDS, twice)
    queries = write("q.jsonl", QUERIES[0])
    found = measured(
        rag,
        *("--corpus", corpus, "--queries", queries, "--run-out", "r.trec"),
        *("--qrels", write_qrels_file("q1 0 copy 1\n")),
    )
    assert found["missing_relevant"] == []
    assert values(found["systems"][0])["MRR@10"] == 1 / 2
    ranked = [line.split()[2] for line in Path("r.trec").read_text().splitlines()]
    assert ranked[:2] == ["alpha", "copy"]
    run = {"q": [("a", 2.0), ("b", 1.0)]}
    assert with_other_ids(run, {"a": "a", "c": "a", "d": None}) == {
        "q": [("a", 2.0), ("c", 2.0), ("b", 1.0)]
    }


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "it is not JSON"),
        ("7", 'it is not an object {"id": ..., "text": ...}'),
        ('{"text": "x"}', 'it has no "id"'),
        ('{"id": "q9"}', 'it has no "text"'),
        ('{"id": "q1", "text": "again"}', "query 'q1' is there before"),
        ('{"id": "q9", "text": "\\ud83d"}', "it holds half of a surrogate pair, which is no text"),
    ],
)
def test_a_malformed_query_is_named(rag: Rag, folder: Path, line: str, why: str) -> None:
    with (folder / "queries.jsonl").open("a") as queries:
        queries.write(line + "\n")
    failed(
        rag("eval", "retrieval", "--corpus", folder),
        1,
        f"nets/queries.jsonl, line 5: {why}. Correct or remove what is wrong.",
    )


def test_what_is_missing_or_cannot_be_is_said(rag: Rag, folder: Path) -> None:
    failed(
        rag("eval", "retrieval"), 2, "There is nothing to search. Name the papers: --corpus PATH."
    )
    failed(
        rag("eval", "retrieval", "--corpus", "nets/corpus.jsonl"),
        2,
        "--queries is missing: name the file, or with --corpus a folder that has queries.jsonl.",
    )
    Path("r.trec").write_text("q1 Q0 a 1 2 t\n")
    failed(
        rag("eval", "retrieval", "--run", "r.trec"),
        2,
        "--qrels is missing: name the file, or with --corpus a folder that has qrels.tsv.",
    )
    failed(
        rag("eval", "retrieval", "--run", "r.trec", "--baselines"),
        2,
        "--run measures what is there: leave out --baselines and --store.",
    )
    (folder / "qrels.tsv").write_text("other 0 alpha 1\n")
    failed(
        rag("eval", "retrieval", "--corpus", folder),
        1,
        "No query has a judgement: the IDs of the queries are not those of the judgements. Check "
        "that the files belong together.",
    )
    (folder / "qrels.tsv").write_text(QRELS)
    write("nets/corpus.jsonl", {"id": "short", "abstract": "Too short."})
    failed(
        rag("eval", "retrieval", "--corpus", folder),
        1,
        "No paper was found in nets/corpus.jsonl. The abstract has 2 words; 5 words are the least.",
    )
    write("nets/queries.jsonl", {"id": "q 1", "text": "x"})
    (folder / "qrels.tsv").write_text("q 1\talpha\t1\n")
    failed(
        rag("eval", "retrieval", "--corpus", folder, "--run-out", "r.trec"),
        1,
        "r.trec was not written: 'q 1' is empty or holds a blank, and columns of TREC files are "
        "parted by blanks. Give it an ID without.",
    )


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"the shared data are not at {SHARED}")
@pytest.mark.parametrize("name", ["cranfield", "scifact"])
def test_figures_agree_with_trec_eval_and_with_the_formulas(rag: Rag, name: str) -> None:
    import pytrec_eval

    write_run(Path("bm25.trec"), bm25(SHARED / name), "bm25")
    found = measured(rag, "--run", "bm25.trec", "--corpus", SHARED / name)
    system = found["systems"][0]
    with Path("bm25.trec").open() as lines:
        run = pytrec_eval.parse_run(lines)
    qrels = read_qrels(SHARED / name / "qrels.tsv")
    asked = {"ndcg_cut.10", "recall.5,10,100", "map_cut.100"}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, asked).evaluate(run)
    formula = [
        by_hand(sorted(run.get(query, {}).items(), key=lambda item: -item[1]), judged)
        for query, judged in qrels.items()
    ]

    def mean(measure: str) -> float:
        return sum(theirs[query][measure] for query in theirs) / len(qrels)

    assert found["queries"] == len(qrels) == system["measures"]["nDCG@10"]["n"]
    assert values(system) == pytest.approx(
        {
            "nDCG@10": mean("ndcg_cut_10"),
            "MRR@10": sum(rr for _, rr in formula) / len(qrels),
            "Recall@5": mean("recall_5"),
            "Recall@10": mean("recall_10"),
            "Recall@100": mean("recall_100"),
            "MAP@100": mean("map_cut_100"),
        },
        abs=1e-9,
    )
    by_formula = sum(ndcg for ndcg, _ in formula) / len(qrels)
    assert values(system)["nDCG@10"] == pytest.approx(by_formula, abs=1e-9)


def bm25(folder: Path) -> dict[str, list[tuple[str, float]]]:
    """The run of BM25 alone, as `Retriever.rankings` makes it."""
    records = [r for r in read(folder / "corpus.jsonl", "c") if isinstance(r, Record)]
    papers = sorted((p for r in records if isinstance(p := to_paper(r), Paper)), key=lambda p: p.id)
    index = LexicalIndex.build(
        [p.id for p in papers], [searchable(p.title, p.text) for p in papers]
    )
    lines = (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    return {str(q["id"]): index.rank(q["text"], 100) for q in map(json.loads, lines)}


def by_hand(ranked: list[tuple[str, float]], judged: dict[str, int]) -> tuple[float, float]:
    """nDCG@10 and 1 / rank of the first relevant of ten."""
    grades = [judged.get(paper, 0) for paper, _ in ranked[:10]]
    ideal = sorted(judged.values(), reverse=True)[:10]
    dcg, best = (sum(g / log2(r + 2) for r, g in enumerate(row)) for row in (grades, ideal))
    first = next((1 / rank for rank, grade in enumerate(grades, start=1) if grade > 0), 0.0)
    return dcg / best if best else 0.0, first
