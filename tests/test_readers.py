from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.errors import ReadError
from rag.readers import find_files, json_records, read, text_list
from rag.readers.encoding import decode
from rag.readers.stream import lines_of
from rag.types import Record, Rejected, Source

SHARED = Path(__file__).parents[2] / "shared"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason=f"no development data at {SHARED}")
needs_no_root = pytest.mark.skipif(
    hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may read every file"
)


def abstracts(text: str) -> list[str]:
    return [r.abstract for r in from_list(text) if isinstance(r, Record)]


def from_list(text: str) -> list[Record | Rejected]:
    return list(text_list.records(lines_of([text]), "f", {}))


def from_json(text: str, *, lines: bool = False) -> list[Record | Rejected]:
    """Read in pieces of any length to the same result; the lines are looked at elsewhere."""
    whole, pieces = (
        list(json_records.records(blocks, "f", {}, lines=lines))
        for blocks in ([text], [text[n : n + 7] for n in range(0, len(text), 7)])
    )
    assert whole == pieces
    return [replace(outcome, line=0) for outcome in whole]


# Text lists


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Papers 2026\n\n",
        "# 论文列表\n\n",
        "Artículos aceptados\n(2026)\n\n\n",
        "\n\n \nAll:\n \n",
    ],
)
def test_the_header_is_no_record(header: str) -> None:
    first = header.count("\n") + 1
    assert from_list(f"{header}We do one thing.\n\nWe do two\nthings.\n") == [
        Record(Source("f", 1), "We do one thing.", line=first),
        Record(Source("f", 2), "We do two\nthings.", line=first + 2),
    ]


def test_a_header_right_above_its_list() -> None:
    long = "We propose a thing that is longer than its header by far, and works."
    assert abstracts(f"Papers 2026\n{long}\n\nWe do two.") == [long, "We do two."]


def test_a_long_or_only_first_block_is_an_abstract() -> None:
    first = "We describe something without a stop and with many words that go on and on"
    assert abstracts(f"{first}\n\nWe do two.") == [first, "We do two."]
    assert abstracts("Only a heading") == ["Only a heading"]


@pytest.mark.parametrize("marker", ["{}. ", "[{}] ", "({}) ", "{}) ", "- ", "* ", "• "])
def test_list_markers_are_no_text(marker: str) -> None:
    text = "\n\n".join(marker.format(n) + f"Item {n} is here." for n in (1, 2, 3))
    assert abstracts(f"Papers\n\n{text}") == [f"Item {n} is here." for n in (1, 2, 3)]


def test_numbers_that_begin_an_abstract_stay() -> None:
    blocks = ["3D nets work.", "2. They do.", "Others do too.", "*Emphasis* is no marker."]
    assert abstracts("\n\n".join(blocks)) == blocks


def test_items_and_long_lines_without_blank_lines_between() -> None:
    items = [
        f"We show that item {n} holds in all of the cases that we know of so far" for n in (1, 2)
    ]
    assert abstracts("\n".join(f"- {item}, and\n  more." for item in items)) == [
        f"{item}, and\nmore." for item in items
    ]
    lines = [" ".join([f"Word{n}"] * 40) + "." for n in (1, 2, 3)]
    assert abstracts("Papers\n" + "\n".join(lines)) == lines


def test_an_enumeration_inside_an_abstract_stays() -> None:
    text = "We give three things that matter:\n1. speed\n2. size\n3. cost\nAll are good."
    assert abstracts(f"{text}\n\nAnother one is here.") == [text, "Another one is here."]


def test_rules_part_and_hyphens_join() -> None:
    assert abstracts("A post-\nhoc way.\n---\nAnother way.\n\n=====\n\nA third.") == [
        "A post-hoc way.",
        "Another way.",
        "A third.",
    ]


@given(st.lists(st.text(st.characters(categories=["L"]), min_size=1), min_size=1, max_size=8))
def test_every_block_of_a_list_comes_out(words: list[str]) -> None:
    blocks = [f"{word} is it." for word in words]
    assert abstracts("\n\n".join(blocks)) == blocks


# JSON


def test_fields_by_their_usual_names() -> None:
    assert from_json(
        '[{"Paper_ID": 7, "TITLE": "T", "Summary": "S", "year": 2026, "x": {"y": 1}}]'
    ) == [Record(Source("f", 1), "S", "7", "T", {"year": 2026})]
    assert from_json('{"id": true, "_id": "a", "doi": "10.1/x", "abstractText": ["S", "R"]}') == [
        Record(Source("f", 1), "S\nR", "a", None, {"id": True, "doi": "10.1/x"})
    ]


def test_the_first_name_that_holds_something_counts() -> None:
    [record] = from_json('{"abstract": null, "summary": "S", "id": "", "key": 1.5}')
    assert record == Record(Source("f", 1), "S", "1.5")


def test_openreview_notes() -> None:
    note = {"forum": "q", "content": {"title": {"value": "T"}, "abstract": {"value": "A"}}}
    assert from_json(json.dumps({"notes": [note], "count": 1})) == [
        Record(Source("f", 1), "A", "q", "T")
    ]


@pytest.mark.parametrize(
    "text",
    [
        '[{"abstract": "A"}, {"abstract": "B"}]',
        '{"abstract": "A"}\n\n{"abstract": "B"}\n',
        '{"n": 2, "papers": [{"abstract": "A"}, {"abstract": "B"}]}',
        '{"train": [{"abstract": "A"}], "test": [{"abstract": "B"}]}',
        '{"papers": [\n{"abstract": "A"},\n{"abstract": "B"}\n]}',
    ],
)
def test_arrays_lines_and_envelopes(text: str) -> None:
    assert from_json(text) == [Record(Source("f", 1), "A"), Record(Source("f", 2), "B")]


def test_an_object_keyed_by_id_keeps_an_id_that_occurs_twice() -> None:
    text = (
        '{"a": {"abstract": "A"}, "b": {"abstract": "B", "id": 3}, "a": {"abstract": "C"}, "n": 1}'
    )
    assert from_json(text) == [
        Record(Source("f", 1), "A", "a"),
        Record(Source("f", 2), "B", "3"),
        Record(Source("f", 3), "C", "a"),
        Rejected("f", 4, "It is a number, not an object with an abstract."),
    ]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"title": "T", "x\x1b[1m": 1}, 'No abstract: the field "abstract" is missing; '
         'its fields are "title", "x".'),
        ({}, 'No abstract: the field "abstract" is missing; its fields are none.'),
        ({"Abstract": " "}, 'No abstract: the field "Abstract" is empty.'),
        ({"abstract": None}, 'No abstract: the field "abstract" is empty.'),
        ({"abstract": 5}, 'No abstract: the field "abstract" is a number.'),
        ({"abstract": ["a", 1]}, 'No abstract: the field "abstract" is a list.'),
        ("text", "It is a text, not an object with an abstract."),
        (None, "It is null, not an object with an abstract."),
        ([1], "It is a list, not an object with an abstract."),
    ],
)  # fmt: skip
def test_what_is_no_record(value: object, reason: str) -> None:
    whole = reason.startswith("No abstract")
    assert from_json(json.dumps([value])) == [Rejected("f", 1, reason, whole=whole)]


def test_a_broken_line_does_not_stop_the_rest() -> None:
    text = '{"abstract": "A"}\n{"abstract": "B\n\n{"abstract": "C", "n": NaN}\n7\n'
    assert from_json(text, lines=True) == [
        Record(Source("f", 1), "A"),
        Rejected("f", 2, "The line is not JSON: Unterminated string starting at column 14."),
        Record(Source("f", 3), "C"),
        Rejected("f", 4, "It is a number, not an object with an abstract."),
    ]


def test_a_cut_off_array_keeps_what_stands_before() -> None:
    first, second = from_json('[{"abstract": "A"},\n {"abstract": "B')
    assert first == Record(Source("f", 1), "A")
    assert second == Rejected(
        "f",
        2,
        "Record 2, from line 2, is broken or cut off: Unterminated string starting at at line 2, "
        "column 15; what follows it was not read. Check the export.",
    )
    assert from_json('{"papers": [{"abstract": "A"}')[0] == Record(Source("f", 1), "A")
    assert from_json('[{"abstract": "A"}')[1] == Rejected(
        "f", 2, "The JSON array has no end: it may be cut off. Check the export."
    )


def test_a_broken_record_in_an_array_does_not_stop_the_rest() -> None:
    records = from_json(
        '[{"id": 1, "abstract": "A"}, {"id": 2, "abstract": oops}, {"id": 3, "abstract": "C"}]'
    )
    assert [type(r) for r in records] == [Record, Rejected, Record]
    assert records[2] == Record(Source("f", 3), "C", "3")


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 100_000, '[{"abstract": ' + "[" * 100_000, "[" + "1" * 5_000]
)
def test_hostile_nesting_and_numbers_are_rejected(text: str) -> None:
    started = time.perf_counter()
    assert [type(r) for r in from_json(text)] == [Rejected]
    assert [type(r) for r in from_json(text, lines=True)] == [Rejected]
    assert time.perf_counter() - started < 2


LINE = '{"id": "a", "title": "T", "abstract": "We do \\u00e9 a thing."}'
mutations = st.lists(
    st.tuples(
        st.integers(0, len(LINE)),
        st.integers(0, 6),
        st.text(st.characters(exclude_characters="\n"), max_size=4),
    ),
    max_size=3,
)


@st.composite
def mutated_lines(draw: st.DrawFn) -> str:
    line = LINE
    for at, cut, new in draw(mutations):
        line = line[:at] + new + line[at + cut :]
    return line


@settings(max_examples=300)
@given(st.lists(mutated_lines(), max_size=6))
def test_every_line_becomes_a_record_or_is_rejected(lines: list[str]) -> None:
    records = from_json("\n".join(lines), lines=True)
    assert len(records) == sum(bool(line.strip()) for line in lines)
    assert [r.source.position if isinstance(r, Record) else r.position for r in records] == list(
        range(1, len(records) + 1)
    )


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "abstract", "content", "value", "x"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@given(st.lists(json_values, max_size=6))
def test_every_element_becomes_a_record_or_is_rejected(values: list[object]) -> None:
    text = json.dumps(values)
    assert len(from_json(text)) == len(values)
    # Elements lost to a cut are said to be.
    whole = len(from_json(text[:-1]))
    assert whole == max(len(values), 0) + 1


# Encodings


@pytest.mark.parametrize(
    "encoding",
    ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252", "latin-1"],
)
def test_western_encodings(encoding: str) -> None:
    text = "Müller und Söhne: naïve Größen, déjà vu.\nNow it goes on in plain English.\n"
    assert decode(text.replace("\n", "\r\n").encode(encoding)) == text


@pytest.mark.parametrize("encoding", ["gb18030", "gbk", "gb2312"])
def test_chinese_encodings(encoding: str) -> None:
    text = "我们提出一种新的方法，用于改进大语言模型的推理能力。实验表明效果很好。"
    assert decode(text.encode(encoding)) == text


def test_windows_quotes_and_single_wrong_bytes_in_utf8() -> None:
    assert decode("“It’s” – so".encode("cp1252")) == "“It’s” – so"
    assert decode("naïve “ok” ö ".encode() + b"caf\xe9") == "naïve “ok” ö café"
    assert decode(b"old\rmac\rends") == "old\nmac\nends"


@pytest.mark.parametrize(
    "data",
    [
        b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
        bytes(range(256)) * 4,
        b"\xff\xfe\x00\xd8x",
        b"ab\x00c",
    ],
)
def test_binary_is_an_error(data: bytes) -> None:
    with pytest.raises(ReadError, match=r"binary|UTF-16"):
        decode(data)


def test_a_stray_zero_byte_is_left_out() -> None:
    text = "An abstract of some twenty words, é included, in UTF-8. " * 4
    data = text.encode()
    assert decode(data[:90] + b"\x00" + data[90:]) == text


@given(st.binary(max_size=200))
def test_any_bytes_are_text_or_an_error(data: bytes) -> None:
    try:
        text = decode(data)
    except ReadError:
        return
    assert "\r" not in text


# Files


def names(*paths: Path) -> list[str]:
    return [name for _, name in find_files(paths)]


def test_folders_are_walked_in_order_without_what_is_no_list(tmp_path: Path) -> None:
    folder = tmp_path / "papers"
    for name in (
        "b.txt",
        "a.json",
        "sub/c.jsonl",
        "x.pdf",
        "y.py",
        ".hidden",
        ".git/d.txt",
        "README",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("text")
    (folder / "sub" / "loop").symlink_to(folder)
    assert names(folder) == ["papers/README", "papers/a.json", "papers/b.txt", "papers/sub/c.jsonl"]
    assert names(folder / "x.pdf", folder / ".hidden") == ["x.pdf", ".hidden"]


def test_names_do_not_depend_on_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "a.txt").write_text("text")
    monkeypatch.chdir(tmp_path / "papers")
    assert (
        names(Path()) == names(tmp_path / "papers") == names(Path("../papers")) == ["papers/a.txt"]
    )


def test_each_file_once_and_names_that_would_meet_are_longer(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.txt").write_text("text")
    one, two = tmp_path / "one" / "a.txt", tmp_path / "two" / "a.txt"
    assert names(one, one, one.parent) == ["a.txt"]
    root = tmp_path.resolve().as_posix().lstrip("/")
    assert names(one, two) == [f"{root}/one/a.txt", f"{root}/two/a.txt"]


def test_a_path_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match=r"no file or folder .*gone"):
        find_files([tmp_path / "gone"])
    with pytest.raises(ReadError, match="holds no file that could be a list"):
        find_files([tmp_path])


@needs_no_root
def test_a_folder_and_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir()
    (tmp_path / "a.txt").write_text("text")
    locked.chmod(0)
    try:
        [_, (path, name)] = find_files([tmp_path])
        with pytest.raises(ReadError, match="cannot be opened"):
            list(read(path, name))
    finally:
        locked.chmod(0o700)
    (tmp_path / "a.txt").chmod(0)
    with pytest.raises(ReadError, match="permission denied"):
        list(read(tmp_path / "a.txt", "a.txt"))


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.txt", b"", "is empty"),
        ("a.json", b" \n", "is empty"),
        ("a.txt", b"\x00\x01\x02", "binary"),
        ("a.xml", b"<records><record/></records>", "XML or HTML"),
        ("a.txt", b"\n<!DOCTYPE html>\n<p>We do.</p>", "XML or HTML"),
    ],
)
def test_a_file_that_cannot_be_read(tmp_path: Path, name: str, data: bytes, reason: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ReadError, match=reason):
        list(read(tmp_path / name, name))


@pytest.mark.parametrize(
    ("name", "content", "kinds"),
    [
        ("a.txt", '[{"abstract": "A"}]', [Record]),
        ("a", '\ufeff{"abstract": "A"}\n{"abstract": "B"}', [Record, Record]),
        ("a.txt", "[12] We do one.\n\n[13] We do two.", [Record, Record]),
        ("a.txt", "{Braces} are fine.\n\n[bold] too.", [Record, Record]),
        ("a.json", "not json", [Rejected]),
        ("a.jsonl", "[1]\n\n{}\nx", [Rejected, Rejected, Rejected]),
    ],
)
def test_the_reader_follows_the_content(
    tmp_path: Path, name: str, content: str, kinds: list[type]
) -> None:
    (tmp_path / name).write_text(content, "utf-8")
    assert [type(record) for record in read(tmp_path / name, "shown")] == kinds


@needs_shared
def test_the_shared_files() -> None:
    counts = {
        name: [sum(isinstance(r, kind) for r in read(path, name)) for kind in (Record, Rejected)]
        for path, name in find_files(
            [SHARED / "papers", SHARED / "retrieval" / "cranfield" / "corpus.jsonl"]
        )
    }
    assert counts == {
        "papers/000_b091fd10ee383e67.txt": [19, 0],
        "papers/002_c7095ef948581e3e.txt": [19, 0],
        "papers/003_1f031bcbebd7ffba.txt": [19, 0],
        "papers/colm-2025.json": [418, 0],
        "corpus.jsonl": [1398, 2],
    }
