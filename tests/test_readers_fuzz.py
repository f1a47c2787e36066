"""Damaged files of every format: nothing crashes or hangs, and no record vanishes unsaid."""

from __future__ import annotations

import gzip
import json
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rag.errors import ReadError
from rag.papers import to_paper
from rag.readers import read
from rag.types import Record, Rejected

ODD_INPUTS = Path(__file__).parents[2] / "shared" / "odd-inputs"
# Seconds of this process alone, so that a busy machine changes nothing.
LIMIT = 2.0
MOST_BYTES = 12_000

PAPERS = [
    {
        "id": f"a{n}",
        "title": f"On “{n}”",
        "abstract": f"We do {n}, and é; 5% of $x_{n}$ is \\alpha.",
    }
    for n in range(4)
]
BIBTEX = "".join(
    f'@article{{a{n},\n  title = {{On {{A}} {n}}},\n  author = "Lee, Ann and D{{\\\'e}}, Bo",\n'
    f"  abstract = {{We do {n} of {{them}}, and more.}},\n"
    f"  year = 20{n}0, crossref = {{a{n - 1}}}\n}}\n"
    for n in range(1, 5)
)
RIS = "".join(
    f"TY  - JOUR\nTI  - On {n}\nAU  - Lee, Ann\nAB  - We do {n} of them,\nand more.\nER  - \n\n"
    for n in range(4)
)
MEDLINE = "".join(
    f"PMID- 100{n}\nTI  - On {n}\n      and more.\nAB  - We do {n} of\n      them.\n\n"
    for n in range(4)
)
CSV = 'id,title,abstract\n1,"On ""A"", or","We do A,\nand more of it."\n2,B,We do B and C and D.\n'
TSV = "PT\tAU\tTI\tSO\tAB\tUT\n" + 'J\tLee, A\tOn "A"\tJ of A\tWe do A, and B too.\tW1\n' * 3
ROWS = '"TITLE","On A"\n"AUTHOR NAMES","Lee A."\n"ABSTRACT","We do A, and B too."\n\n' * 3
ZOTERO = [
    {**paper, "creators": [{"creatorType": "author", "firstName": "Ann", "lastName": "Lee"}]}
    for paper in PAPERS
]
OPENREVIEW = {
    "notes": [
        {"id": paper["id"], "content": {key: {"value": value} for key, value in paper.items()}}
        for paper in PAPERS
    ]
}
EXPORT = "".join(
    json.dumps(
        {
            "citewise": 1, **paper, "title_derived": False, "metadata": {"year": 2020},
            "sources": [{"file": "a.bib", "position": n}],
        }
    ) + "\n"
    for n, paper in enumerate(PAPERS)
)  # fmt: skip
LIST = "Papers of 2026\n\n" + "We do this of them, and then that; it holds.\n\n" * 4
SAMPLES = {
    "a.bib": BIBTEX,
    "a.ris": RIS,
    "a.nbib": MEDLINE,
    "a.csv": CSV,
    "a.tsv": TSV,
    "rows.csv": ROWS,
    "a.jsonl": "".join(json.dumps(paper, ensure_ascii=False) + "\n" for paper in PAPERS),
    "a.json": json.dumps(PAPERS, indent=1),
    "keyed.json": json.dumps({paper["id"]: paper for paper in PAPERS}),
    "zotero.json": json.dumps(ZOTERO, indent=2),
    "openreview.json": json.dumps(OPENREVIEW),
    "export.jsonl": EXPORT,
    "a.txt": LIST,
    "a.md": "# Papers\n\n" + "1. We do *this* of them, and `that`; it holds.\n" * 4,
}

# What the formats give a meaning to.
TOKENS = [
    b"{", b"}", b"{{", b'"', b'""', b"'", b"[", b"]", b"[[[", b",", b";", b"\t", b"|", b":", b"\\",
    b"\n", b"\n\n", b"\r", b"\r\n", b"@article{", b"@string{a = ", b"@comment{", b"=", b"#", b"%",
    b"TY  - JOUR\n", b"ER  - \n", b"AB  - ", b"PMID- 1\n", b"\x00", b"\xff\xfe", b"\xef\xbb\xbf",
    b"\x1f\x8b\x08", b"\xc3", b"\xed\xa0\x80", b"\\ud800", b"\\u0000", b"null", b"1e999", b"-",
    b"9" * 5_000, b"[" * 2_000, b'{"a":' * 500, b"{" * 500, b"\\frac{" * 200, b"$" * 300,
    b"``" * 200, b"<a href=" * 100, b"*" * 500, b"(" * 500, b" and " * 300, b"a\\'" * 200,
    "\u202e".encode(), "\u2028".encode(), "中文。".encode() * 50,
]  # fmt: skip


def mutated(data: bytes, rng: random.Random) -> bytes:
    """`data` with one to six changes: bytes put in, taken out, doubled, swapped or cut off."""
    for _ in range(rng.randint(1, 6)):
        at, end = sorted(rng.randrange(len(data) + 1) for _ in range(2))
        end = min(end, at + rng.choice((1, 10, 200)))
        kind = rng.randrange(7)
        if kind == 0:
            data = data[:at] + data[end:]
        elif kind == 1:
            data = data[:at] + data[at:end] * rng.randint(2, 8) + data[end:]
        elif kind in (2, 3, 4):
            data = data[:at] + rng.choice(TOKENS) + data[at if kind == 2 else end :]
        elif kind == 5:
            data = (
                data[:at] + bytes(rng.randrange(256) for _ in range(rng.randint(1, 4))) + data[end:]
            )
        elif rng.random() < 0.3:
            data = data[:at]
    return encoded(data[: 4 * MOST_BYTES], rng)


def encoded(data: bytes, rng: random.Random) -> bytes:
    """Now and then in another encoding, or packed, and that damaged."""
    chance = rng.random()
    if chance < 0.04:
        return data.decode("utf-8", "replace").encode(
            rng.choice(("utf-16", "utf-16-le", "latin-1", "gb18030", "utf-8-sig")), "replace"
        )
    if chance < 0.10:
        packed = bytearray(gzip.compress(data, mtime=0))
        if rng.random() < 0.5:
            packed[rng.randrange(10, len(packed))] ^= 1 << rng.randrange(8)
        return bytes(packed[: rng.randint(12, len(packed))] if rng.random() < 0.3 else packed)
    return data


def cases(samples: dict[str, bytes], count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """Names with damaged contents, of every sample in turn."""
    rng = random.Random(seed)
    names = sorted(samples)
    for number in range(count):
        name = names[number % len(names)]
        whole = samples[name]
        start = rng.randrange(len(whole)) if len(whole) > MOST_BYTES else 0
        part = whole[start : start + MOST_BYTES]
        yield rng.choice((name, name, "a.txt", "a")), mutated(part, rng)


def check(path: Path) -> str:
    """What is wrong with how a file is read; empty if nothing is."""
    started = time.process_time()
    found: list[Record | Rejected] = []
    try:
        found.extend(read(path, "f"))
    except ReadError as error:
        if not str(error).strip():
            return "an error without a message"
    made = [to_paper(one) if isinstance(one, Record) else one for one in found]
    seconds = time.process_time() - started
    if seconds > LIMIT:
        return f"{seconds:.1f} s"
    # Each record counts once, and is a paper or has a reason; 0 are remarks on the file.
    places = [one.source.position if isinstance(one, Record) else one.position for one in found]
    counted = sorted(place for place in places if place)
    if counted != list(range(1, len(counted) + 1)):
        return f"the records are numbered {counted}"
    silent = [one for one in made if isinstance(one, Rejected) and not one.reason.strip()]
    return f"no reason: {silent}" if silent else ""


@pytest.mark.parametrize("seed", range(2))
def test_two_hundred_damaged_files(tmp_path: Path, seed: int) -> None:
    samples = {name: text.encode() for name, text in SAMPLES.items()}
    for number, (name, data) in enumerate(cases(samples, 100, seed)):
        path = tmp_path / name
        path.write_bytes(data)
        assert check(path) == "", f"case {number}"


@pytest.mark.parametrize("name", SAMPLES)
def test_the_samples_are_read_whole_before_they_are_damaged(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(SAMPLES[name], encoding="utf-8")
    found = list(read(tmp_path / name, "f"))
    assert all(isinstance(one, Record) for one in found)
    expected = {"a.csv": 2, "a.tsv": 3, "rows.csv": 3}.get(name, 4)
    assert len(found) == expected


def test_each_damaged_line_is_one_outcome(tmp_path: Path) -> None:
    rng = random.Random(1)
    first = json.dumps(PAPERS[0]).encode()
    for _ in range(50):
        lines = [mutated_line(json.dumps(rng.choice(PAPERS)).encode(), rng) for _ in range(20)]
        (tmp_path / "a.jsonl").write_bytes(b"\n".join([first, first, *lines]))
        assert len(list(read(tmp_path / "a.jsonl", "f"))) == 22


def mutated_line(line: bytes, rng: random.Random) -> bytes:
    """A line with bytes of ASCII changed, still one line and not blank."""
    at, end = sorted(rng.randrange(1, len(line)) for _ in range(2))
    other = bytes(rng.randrange(32, 127) for _ in range(rng.randint(0, 5)))
    return line[:at] + other + line[min(end, at + rng.randint(0, 20)) :]
