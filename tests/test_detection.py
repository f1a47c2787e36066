"""Which reader a file gets, and how its bytes come to it: endings, gzip, pipes, encodings."""

from __future__ import annotations

import gzip
import io
import json
import os
import threading
import tracemalloc
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag.errors import ReadError
from rag.readers import STDIN, find_files, read
from rag.readers.encoding import decode, decode_blocks
from rag.readers.stream import lines_of
from rag.types import Record, Rejected

BIBTEX = "% a library\n@article{a1,\n  title = {On A},\n  abstract = {We do A, and B.},\n}\n"
RIS = "TY  - JOUR\nTI  - On A\nAB  - We do A, and B.\nER  - \n"
CSV = 'title,abstract\nOn A,"We do A, and B."\n'
SEMICOLONS = "Title;Abstract;Year\nOn A;We do A, and B.;2020\n"
TSV = "id\ttitle\tabstract\na1\tOn A\tWe do A, and B.\n"
JSONL = '{"title": "On A", "abstract": "We do A, and B."}\n'
MARKDOWN = (
    "# Papers, 2026\n\nWe do A, and B; we compare, too.\n\n"
    "| a | b |\n|---|---|\n| 1 | 2 |\n\nWe do C, D, and E; the table says, how well.\n"
)
PLAIN = "We do one, two, and three.\n\nWe do four, five, and six.\n\nWe do it, all of it, well.\n"


def records_of(path: Path, columns: dict[str, str] | None = None) -> list[Record | Rejected]:
    return list(read(path, "f", columns))


def abstracts(path: Path) -> list[str]:
    return [outcome.abstract for outcome in records_of(path) if isinstance(outcome, Record)]


@pytest.mark.parametrize("name", ["a", "a.txt", "a.json", "a.dat", "a.csv.gz", "A.BIB"])
@pytest.mark.parametrize("text", [BIBTEX, RIS, CSV, SEMICOLONS, TSV, JSONL, f"[{JSONL}]"])
@pytest.mark.parametrize("packed", [False, True])
def test_content_comes_before_the_ending(
    tmp_path: Path, name: str, text: str, packed: bool
) -> None:
    data = text.replace("\n", "\r\n").encode("utf-8-sig")
    (tmp_path / name).write_bytes(gzip.compress(data) if packed else data)
    [outcome] = records_of(tmp_path / name)
    assert isinstance(outcome, Record)
    assert (outcome.title, outcome.abstract) == ("On A", "We do A, and B.")


@pytest.mark.parametrize("name", ["a", "a.txt", "a.md"])
@pytest.mark.parametrize(("text", "count"), [(MARKDOWN, 3), (PLAIN, 3)])
def test_lists_are_no_tables(tmp_path: Path, name: str, text: str, count: int) -> None:
    (tmp_path / name).write_text(text)
    assert len(abstracts(tmp_path / name)) == count


def test_the_ending_decides_where_the_content_does_not(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(f"We cite it so.\n\n{BIBTEX}")
    assert len(abstracts(tmp_path / "a.md")) == 2
    for name in ("a.json", "a.csv", "a.ris", "a.bib"):
        (tmp_path / name).write_text("nothing of the kind")
        assert all(isinstance(outcome, Rejected) for outcome in records_of(tmp_path / name))
    (tmp_path / "a.jsonl").write_text('[{"abstract": "A"},\n{"abstract": "B"}]')
    assert abstracts(tmp_path / "a.jsonl") == ["A", "B"]


def test_columns_reach_the_reader(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Kopf,Rumpf\nOn A,We do A.\n")
    (tmp_path / "b.txt").write_text('[{"Kopf": "On A", "Rumpf": "We do A."}]')
    for name in ("a.txt", "b.txt"):
        [outcome] = records_of(tmp_path / name, {"title": "Kopf", "abstract": "Rumpf"})
        assert isinstance(outcome, Record)
        assert (outcome.title, outcome.abstract) == ("On A", "We do A.")


def test_what_is_cut_off_is_the_last_entry_not_one_that_waited(tmp_path: Path) -> None:
    waits = "@inproceedings{a, crossref = {z}, title = {On A}, abstract = {We do A, and B.}}\n"
    packed = gzip.compress((waits + BIBTEX).encode())[:-9]
    (tmp_path / "a.gz").write_bytes(packed)
    first, second, rest = records_of(tmp_path / "a.gz")
    assert isinstance(first, Record)
    assert (first.id, first.source.position) == ("a", 1)
    assert isinstance(second, Rejected)
    assert isinstance(rest, Rejected)
    assert (second.position, rest.position) == (2, 3)


ROWS = '"TITLE","On A"\n"ABSTRACT","We do A."\n"YEAR","2020"\n\n"TITLE","On B"\n"ABSTRACT","B"\n'


@pytest.mark.parametrize("text", [BIBTEX, RIS, JSONL, f"[{JSONL}]", ROWS])
def test_a_name_that_no_record_has_is_reported_at_the_end(tmp_path: Path, text: str) -> None:
    (tmp_path / "a").write_text(text)
    plain = records_of(tmp_path / "a")
    why = "no record of the file has it."
    assert records_of(tmp_path / "a", {"doi": "Dio"}) == [
        *plain,
        Rejected("f", 0, f'--map names the field "Dio" for the DOI, but {why}'),
    ]
    named = records_of(tmp_path / "a", {"title": "Ttel", "url": "Adress"})
    assert len(named) == len(plain) + 1
    assert {
        one.reason.partition(" which")[0] for one in named[:-1] if isinstance(one, Rejected)
    } == {'--map names the field "Ttel" for the title,'}
    # What each record is rejected for is not said once more.
    last = named[-1]
    assert isinstance(last, Rejected)
    assert last.reason == f'--map names the field "Adress" for the URL, but {why}'


def test_one_record_that_has_the_name_is_enough(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(f'{JSONL}{{"abstract": "B", "Jahr": null}}\n')
    assert len(records_of(tmp_path / "a", {"year": "jahr"})) == 2
    (tmp_path / "a").write_text(RIS.replace("AB", "PY  - 2020\nAB"))
    assert len(records_of(tmp_path / "a", {"year": "py"})) == 1


def test_a_list_has_no_fields_to_name(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(PLAIN)
    *records, said = records_of(tmp_path / "a", {"abstract": "Summary", "doi": "Dio"})
    assert records == records_of(tmp_path / "a")
    assert said == Rejected(
        "f",
        0,
        '--map names the field "Summary" for the abstract and "Dio" for the DOI, but a list of '
        "abstracts has no fields.",
    )


@pytest.mark.parametrize("text", [CSV, TSV, SEMICOLONS, "abstract\nWe do A, and B.\n"])
def test_a_header_without_the_name_rejects_its_rows(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    [row] = records_of(tmp_path / "a.csv", {"doi": "Dio", "abstract": "Abstract", "id": "Nr"})
    assert isinstance(row, Rejected)
    assert (row.position, row.line) == (1, 2)
    assert row.reason.startswith(
        '--map names the column "Dio" for the DOI and "Nr" for the ID, which is missing; the '
        "columns are "
    )
    assert '"abstract"' in row.reason.casefold()


@pytest.mark.parametrize(
    ("ids", "kept"),
    [
        (["1", "2", "3"], False),
        (["0", "1", "2"], False),
        (["1"], False),
        (["2", "3", "4"], True),
        (["1", "2", "4"], True),
        (["a1", "a2"], True),
    ],
)
def test_numbers_of_rows_are_no_ids(tmp_path: Path, ids: list[str], kept: bool) -> None:
    lines = [f'{one},"We do A, and B."\n' for one in ids]
    (tmp_path / "a.csv").write_text("id,abstract\n" + "".join(lines))
    found = [one for one in records_of(tmp_path / "a.csv") if isinstance(one, Record)]
    assert [one.id for one in found] == [one if kept else None for one in ids]
    assert [one.metadata.get("record number") for one in found] == [
        None if kept else one for one in ids
    ]
    named = records_of(tmp_path / "a.csv", {"id": "id"})
    assert [one.id for one in named if isinstance(one, Record)] == ids


def test_a_data_frame_by_index_has_no_ids(tmp_path: Path) -> None:
    rows = {str(n): {"title": f"On {n}", "abstract": f"We do {n}."} for n in range(3)}
    (tmp_path / "a.json").write_text(json.dumps(rows))
    assert [one.id for one in records_of(tmp_path / "a.json") if isinstance(one, Record)] == [
        None
    ] * 3
    (tmp_path / "a.json").write_text(json.dumps({f"x{n}": row for n, row in rows.items()}))
    assert [one.id for one in records_of(tmp_path / "a.json") if isinstance(one, Record)] == [
        "x0",
        "x1",
        "x2",
    ]


def test_folders_hold_every_format_but_not_what_is_packed_with_it(tmp_path: Path) -> None:
    names = ("a.bib", "b.CSV", "c.enw", "d.json.gz", "e.nbib", "f.ris", "g.tsv", "h.gz", "i.pdf.gz")
    for name in (*names, "j.tar.gz", "k.tgz"):
        (tmp_path / name).write_text("text")
    os.mkfifo(tmp_path / "l")
    (tmp_path / "m").symlink_to(tmp_path / "l")
    assert [path.name for path, _ in find_files([tmp_path])] == list(names[:-1])


# gzip


LIST = "".join(f"We do thing number {n} of them.\n\n" for n in range(5_000))


@pytest.mark.parametrize("members", [1, 3])
def test_gzip_of_several_members_and_with_padding(tmp_path: Path, members: int) -> None:
    cuts = [LIST[n::members] for n in range(members)] if members == 1 else LIST.split("\n\n", 2)
    joined = ["\n\n".join([cut, ""]) for cut in cuts]
    packed = b"".join(gzip.compress(cut.encode()) for cut in joined)
    (tmp_path / "a").write_bytes(packed + b"\x00" * 512)
    assert len(abstracts(tmp_path / "a")) == 5_000


def test_a_gzip_that_is_cut_off(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(LIST.encode())[:-2_000])
    outcomes = records_of(tmp_path / "a.gz")
    whole = [outcome.abstract for outcome in outcomes if isinstance(outcome, Record)]
    assert len(whole) > 1_000
    assert whole == LIST.split("\n\n")[: len(whole)]
    cut, rest = (outcome for outcome in outcomes if isinstance(outcome, Rejected))
    assert (cut.position, cut.line) == (len(whole) + 1, 2 * len(whole) + 1)
    assert cut.reason == "The record is cut off where the file is damaged."
    assert rest == Rejected(
        "f",
        len(whole) + 2,
        "The gzip file has no end: it is cut off; what follows was not read. Pack it again, or "
        "give it unpacked.",
    )


def test_a_gzip_with_a_wrong_byte_keeps_what_stands_before(tmp_path: Path) -> None:
    lines = [json.dumps({"id": n, "abstract": f"We do {n}."}) + "\n" for n in range(2_000)]
    data = bytearray(gzip.compress("".join(lines).encode()))
    data[len(data) // 2] ^= 0xFF
    (tmp_path / "a.gz").write_bytes(data)
    outcomes = records_of(tmp_path / "a.gz")
    assert sum(isinstance(outcome, Record) for outcome in outcomes) > 900
    [*_, last] = outcomes
    assert isinstance(last, Rejected)
    assert "is damaged near byte" in last.reason
    data = bytearray(gzip.compress("".join(lines).encode()))
    data[-5] ^= 0xFF
    (tmp_path / "a.gz").write_bytes(data)
    *whole, last = records_of(tmp_path / "a.gz")
    assert len(whole) == 2_000
    assert isinstance(last, Rejected)
    assert "check" in last.reason


def test_what_is_packed_and_no_text(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(b""))
    with pytest.raises(ReadError, match="is empty"):
        records_of(tmp_path / "a.gz")
    (tmp_path / "a.gz").write_bytes(gzip.compress(bytes(range(256)) * 4))
    with pytest.raises(ReadError, match=r"a\.gz.* binary"):
        records_of(tmp_path / "a.gz")


# Pipes


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_files([STDIN]) == [(STDIN, "stdin")]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(CSV.encode()))))
    [outcome] = records_of(STDIN)
    assert isinstance(outcome, Record)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b" \n")))
    with pytest.raises(ReadError, match="Standard input is empty"):
        records_of(STDIN)
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(ReadError, match="no standard input"):
        records_of(STDIN)


def test_a_file_called_like_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "-").write_text(PLAIN)
    monkeypatch.chdir(tmp_path)
    [(path, name)] = find_files([Path()])
    assert (path, name) == (tmp_path / "-", f"{tmp_path.name}/-")
    assert len(abstracts(path)) == 3


def test_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "p")
    writer = threading.Thread(target=lambda: (tmp_path / "p").write_text(PLAIN))
    writer.start()
    assert len(abstracts(tmp_path / "p")) == 3
    writer.join()


# Streams


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "cp1252", "gb18030"]
)
@pytest.mark.parametrize("size", [1, 7, 4_096])
def test_blocks_of_any_size_read_as_the_whole(encoding: str, size: int) -> None:
    text = "我们提出的方法在大的模型中是有效的。\r\n" * 300 if encoding == "gb18030" else (
        "Müller: naïve Größen, “déjà vu”, so.\r\nPlain.\r" * 300
    )  # fmt: skip
    data = text.encode(encoding)
    blocks = (data[n : n + size] for n in range(0, len(data), size))
    assert "".join(decode_blocks(blocks)) == text.replace("\r\n", "\n").replace("\r", "\n")


@pytest.mark.parametrize(
    ("late", "encoding"),
    [
        ("é", "utf-8"),
        ("我们提出的方法在大的模型中是有效的。", "utf-8"),
        ("我们提出的方法在大的模型中是有效的。", "gb18030"),
    ],
)
def test_an_encoding_that_shows_late(late: str, encoding: str) -> None:
    text = "Plain words, and more of them.\n" * 10_000 + late * 20
    assert decode(text.encode(encoding)) == text


def test_windows_characters_late_in_a_long_file_are_kept() -> None:
    text = "Plain words, and more of them.\n" * 10_000
    data = text.encode() + "Café — “naïve”\n".encode("cp1252") + text.encode() + "Müller".encode()
    assert decode(data) == f"{text}Café — “naïve”\n{text}Müller"


def test_a_mark_that_does_not_hold(tmp_path: Path) -> None:
    text = "We do this and that.\n\n" * 20_000
    (tmp_path / "a.txt").write_bytes(text.encode("utf-16") + b"\x00\xd8x\x00")
    outcomes: list[Record | Rejected] = []
    with pytest.raises(ReadError, match=r"a\.txt.*UTF-16.*not near byte 880002"):
        outcomes.extend(read(tmp_path / "a.txt", "f"))
    assert len(outcomes) > 15_000


@given(st.text(st.sampled_from("ab\n\x0b\x0c\x85\u2028"), max_size=40), st.integers(1, 5))
def test_lines_end_at_line_feeds_only(text: str, size: int) -> None:
    lines = list(lines_of(text[n : n + size] for n in range(0, len(text), size)))
    assert "".join(lines) == text
    assert all(line.index("\n") == len(line) - 1 for line in lines[:-1])


@pytest.mark.parametrize("kind", ["jsonl", "json", "txt", "object"])
def test_memory_does_not_grow_with_the_file(tmp_path: Path, kind: str) -> None:
    abstract = "We do a thing that is described at some length here. " * 200
    line = json.dumps({"abstract": abstract})
    before, between, after = {
        "jsonl": ("", line + "\n", ""),
        "json": ("[", line + ",", line + "]"),
        "txt": ("", f"{abstract}\n\n", ""),
        "object": ('{"n": 1, "data": [', line + ",", line + "]}"),
    }[kind]
    with gzip.open(tmp_path / "a", "wt", compresslevel=1) as file:
        file.write(before)
        for _ in range(40):
            file.write(between * 100)
        file.write(after)
    tracemalloc.start()
    count = sum(isinstance(outcome, Record) for outcome in read(tmp_path / "a", "f"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 4_000 + bool(after)
    # An object is looked at whole up to 16 Mi characters, and its values while that lasts.
    assert peak < (120_000_000 if kind == "object" else 12_000_000)


SAMPLES = [text.encode() for text in (BIBTEX, RIS, CSV, TSV, JSONL, f"[{JSONL}]", MARKDOWN, PLAIN)]


def damaged(sample: bytes, damages: list[tuple[int, int, bytes]]) -> Iterator[bytes]:
    for at, cut, new in damages:
        sample = sample[:at] + new + sample[at + cut :]
    yield sample
    yield zlib.compress(sample, 1, wbits=31)[: len(sample) // 2 + 10]


@settings(
    max_examples=300, deadline=2000, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.sampled_from(SAMPLES),
    st.lists(
        st.tuples(st.integers(0, 160), st.integers(0, 20), st.binary(max_size=6)),
        max_size=4,
    ),
)
def test_damaged_files_are_read_or_refused(
    tmp_path: Path, sample: bytes, damages: list[tuple[int, int, bytes]]
) -> None:
    for data in damaged(sample, damages):
        (tmp_path / "a").write_bytes(data)
        try:
            outcomes = records_of(tmp_path / "a")
        except ReadError as error:
            assert "a'" in str(error)
            continue
        positions = [o.source.position if isinstance(o, Record) else o.position for o in outcomes]
        counted = sorted(filter(None, positions))  # 0 is a file as a whole
        assert counted == list(range(1, len(counted) + 1))
