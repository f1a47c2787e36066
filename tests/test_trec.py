from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.retrieval.trec import falling, read_qrels, read_run, write_qrels, write_run
from rag.errors import RagError, ReadError

# Ours goes by ID from a to z where scores are equal, trec_eval from z to a.
TIED = {"q1": [("a", 0.5), ("b", 0.5), ("c", 0.5 - 1e-12), ("d", 0.25), ("e", 0.0), ("f", 0.0)]}
GRADES = {"q1": {"a": 3, "b": 2, "d": 1, "f": 1}}


def file(text: str, name: str = "file.txt") -> Path:
    path = Path(name)
    path.write_text(text, encoding="utf-8")
    return path


def says(path: Path, reading: object, message: str) -> None:
    with pytest.raises(ReadError) as raised:
        reading(path)  # type: ignore[operator]
    assert str(raised.value) == message


def test_three_columns_with_a_header_and_trecs_four_say_the_same() -> None:
    tsv = file("\ufeffquery-id\tcorpus-id\tscore\r\nq1\ta\t2\r\nq1\tb\t0\r\n\r\nq 2\tc\t1.0\r\n")
    assert read_qrels(tsv) == {"q1": {"a": 2, "b": 0}, "q 2": {"c": 1}}
    assert read_qrels(file("q1\ta\t2\n")) == {"q1": {"a": 2}}
    trec = file("q1 0 a 2\n  q1\t0\tb -1 \nq2 Q0 c 1")
    assert read_qrels(trec) == {"q1": {"a": 2, "b": -1}, "q2": {"c": 1}}


def test_bad_judgements_are_named_by_file_and_line() -> None:
    path = file("query-id\tcorpus-id\tscore\nq1\ta\t2\nq1\tb\tmuch\nq1\tc\nq1\td\t0.5\nq1\t\t1\n")
    says(
        path,
        read_qrels,
        "file.txt, line 3: the grade 'much' is not a whole number up to 1000; line 4: it has 2 "
        "columns, not query ID, paper ID and grade; line 5: the grade '0.5' is not a whole number "
        "up to 1000; line 6: it has 3 columns, not query ID, paper ID and grade. Correct or "
        "remove what is wrong.",
    )
    says(
        file("q1 0 a 1\nq1 a 1\nq1 0 a 2\n"),
        read_qrels,
        "file.txt, line 2: it has 3 columns, not `QUERY 0 PAPER GRADE`, nor three parted by tabs. "
        "Correct or remove what is wrong.",
    )
    says(
        file("q1 0 a 1\nq1 0 a 1\nq1 0 a 2\n"),
        read_qrels,
        "file.txt, line 3: paper 'a' has grade 1 for 'q1' before. Correct or remove what is wrong.",
    )
    many = file("".join(f"q{n} 0 a inf\n" for n in range(8)))
    with pytest.raises(ReadError, match=r"line 5: .*; and 3 more\. Correct"):
        read_qrels(many)
    with pytest.raises(ReadError, match=r"nothing\.txt cannot be read: No such file"):
        read_qrels(Path("nothing.txt"))
    with pytest.raises(ReadError, match="there is no judgement in it"):
        read_qrels(file("query-id\tcorpus-id\tscore\n"))


def test_a_run_is_read_by_scores_in_single_precision_then_by_id_from_z_to_a() -> None:
    path = file(
        "q1 Q0 a 1 0.5 t\nq1 Q0 c 2 0.50000000001 t\nq1 Q0 b 3 0.5 t\nq1 Q0 d 4 7e-1 t\n"
        "q2\tQ0\te\t1\t-3\tt\n"
    )
    assert [paper for paper, _ in read_run(path)["q1"]] == ["d", "c", "b", "a"]
    assert read_run(path)["q2"] == [("e", -3.0)]


def test_bad_results_are_named_by_file_and_line() -> None:
    says(
        file("q1 Q0 a 1 nan t\nq1 Q0 b 2 t\nq1 Q0 c 3 1e39 t\nq1 Q0 d 4 x t\n"),
        read_run,
        "file.txt, line 1: the score 'nan' is not a number in single precision; line 2: it has 5 "
        "columns, not `QUERY Q0 PAPER RANK SCORE TAG`; line 3: the score '1e39' is not a number in "
        "single precision; line 4: the score 'x' is not a number in single precision. Correct or "
        "remove what is wrong.",
    )
    says(
        file("q1 Q0 a 1 2 t\nq1 Q0 a 2 1 t\n"),
        read_run,
        "file.txt, line 2: paper 'a' has another score for 'q1' before. Correct or remove what is "
        "wrong.",
    )
    with pytest.raises(ReadError, match="there is no result in it"):
        read_run(file("\n"))


@pytest.mark.parametrize(
    "number", ["1_0", "\u0661", "\uff11", "\u00bd", "0x1", "nan", "+-1", "1,0"]
)
def test_only_plain_decimal_numbers_are_numbers(number: str) -> None:
    end = "Correct or remove what is wrong."
    grade = f"the grade {number!r} is not a whole number up to 1000. {end}"
    run = file(f"q1 Q0 a 1 2.5e-1 t\nq1 Q0 b 2 {number} t\n")
    says(
        run,
        read_run,
        f"file.txt, line 2: the score {number!r} is not a number in single precision. {end}",
    )
    says(file(f"q1 0 a 1\nq1 0 b {number}\n"), read_qrels, f"file.txt, line 2: {grade}")
    # nor does such a first line pass for a header
    says(file(f"q1\ta\t{number}\nq1\tb\t1\n"), read_qrels, f"file.txt, line 1: {grade}")


def test_a_first_line_with_a_number_between_blanks_is_no_header() -> None:
    assert read_qrels(file("q1\ta\t1 \nq1\tb\t2\n")) == {"q1": {"a": 1, "b": 2}}


def test_every_tool_reads_our_order() -> None:
    import ir_measures
    import pytrec_eval

    run, qrels = Path("run.trec"), Path("qrels.trec")
    write_run(run, TIED, "ours")
    write_qrels(qrels, GRADES)
    assert run.read_text(encoding="utf-8").splitlines()[:3] == [
        "q1 Q0 a 1 0.5 ours",
        "q1 Q0 b 2 0.49999997 ours",
        "q1 Q0 c 3 0.49999994 ours",
    ]
    # grades 3 2 0 1 0 1 at ranks 1 to 6, ideal 3 2 1 1; computed by hand
    gains = 3 + 2 / np.log2(3) + 1 / np.log2(5) + 1 / np.log2(7)
    expected = gains / (3 + 2 / np.log2(3) + 1 / 2 + 1 / np.log2(5))
    with run.open() as lines:
        read = pytrec_eval.parse_run(lines)
    with qrels.open() as lines:
        judged = pytrec_eval.parse_qrel(lines)
    directly = pytrec_eval.RelevanceEvaluator(judged, {"ndcg_cut.10"}).evaluate(read)
    assert directly["q1"]["ndcg_cut_10"] == pytest.approx(expected, abs=1e-12)
    through = ir_measures.calc_aggregate(
        [ir_measures.nDCG @ 10, ir_measures.R @ 1],
        ir_measures.read_trec_qrels(str(qrels)),
        ir_measures.read_trec_run(str(run)),
    )
    assert through[ir_measures.nDCG @ 10] == pytest.approx(expected, abs=1e-12)
    assert through[ir_measures.R @ 1] == 0.25
    assert [paper for paper, _ in read_run(run)["q1"]] == list("abcdef")
    assert read_qrels(qrels) == GRADES


@pytest.mark.parametrize("name", ["a b", "", "a\u00a0b", "a\tb"])
def test_an_id_that_cannot_be_a_column_is_named(name: str) -> None:
    with pytest.raises(RagError) as raised:
        write_run(Path("run.trec"), {"q1": [(name, 1.0)]}, "t")
    assert str(raised.value) == (
        f"run.trec was not written: {name!r} is empty or holds a blank, and columns of TREC files "
        "are parted by blanks. Give it an ID without."
    )
    with pytest.raises(RagError, match=r"qrels\.trec was not written"):
        write_qrels(Path("qrels.trec"), {name: {"a": 1}})
    assert list(Path().iterdir()) == []


def test_a_file_that_cannot_be_written_is_named() -> None:
    with pytest.raises(RagError, match=r"no/run\.trec cannot be written: No such file"):
        write_run(Path("no/run.trec"), TIED, "t")


@given(st.lists(st.floats(-1e30, 1e30), max_size=40))
def test_written_scores_fall_and_stay_what_they_are_where_they_fell(values: list[float]) -> None:
    scores = sorted(values, reverse=True)
    written = [float(str(score)) for score in falling(scores)]
    single = [np.float32(value) for value in written]
    assert all(a > b for a, b in pairwise(single))
    assert all(a > b for a, b in pairwise(written))
    rounded = [np.float32(score) for score in scores]
    if all(a > b for a, b in pairwise(rounded)):
        assert single == rounded
