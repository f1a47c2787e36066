"""Bytes of unknown encoding -> text with line feeds for line ends."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterable, Iterator
from itertools import chain

from rag.errors import ReadError

# UTF-32's mark begins with UTF-16's, so it is looked for first.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Control bytes that no text holds (tab, line ends, form feed, Ctrl-Z and escape may occur).
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0e-\x19\x1c-\x1f]")
# Two bytes or more of a Western encoding's accents rarely stand together; East Asian text is pairs.
_LONE_HIGH = re.compile(rb"(?<![\x80-\xff])[\x80-\xff](?![\x80-\xff])")
_HIGH = re.compile(rb"[\x80-\xff]")
_MULTIBYTE_UTF8 = re.compile(
    rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
)
# By frequency in modern Chinese; misread Korean or Japanese bytes hardly ever give them.
_COMMONEST_CHINESE = frozenset("的一是在不了有和人这中大为上个国我以要他们于对法用方")
# Enough for a guess; detection is slow.
_SAMPLE = 65_536
# Fewer bytes above ASCII say little.
_FEW = 8
_BINARY = "It is a binary file, not text. Give a text, JSON or JSONL file."


def decode(data: bytes) -> str:
    """The text in `data`: by its byte order mark, as UTF-8, or in the likeliest legacy encoding.

    Single bytes that are wrong in otherwise good UTF-8 are read as Windows-1252.

    Raises:
        ReadError: it is not text.
    """
    return "".join(decode_blocks([data]))


def decode_blocks(blocks: Iterable[bytes]) -> Iterator[str]:
    """`decode` of a stream, a block at a time, with line feeds for line ends.

    What is ASCII is handed on as it comes; the first 64 KiB after it decide on the encoding.

    Raises:
        ReadError: it is not text, or not in the encoding that its mark says.
    """
    lines = io.IncrementalNewlineDecoder(None, translate=True)
    for text in _decoded(iter(blocks)):
        shown = lines.decode(text)
        if shown:
            yield shown
    rest = lines.decode("", final=True)
    if rest:
        yield rest


def _decoded(blocks: Iterator[bytes]) -> Iterator[str]:
    start = _filled(b"", blocks)
    for mark, encoding in _MARKS:
        if start.startswith(mark):
            rest = chain([start[len(mark) :]], blocks)
            if encoding == "utf-8":
                return _leniently(rest, encoding)
            return _strictly(rest, encoding, len(mark))
    sample = start[:_SAMPLE]
    if sample.count(0) * 100 > len(sample):
        return _utf16_without_mark(sample, chain([start], blocks))
    if len(_CONTROL.findall(sample)) * 100 > len(sample):
        raise ReadError(_BINARY)
    # A stray zero byte is no text, and would spoil the line of JSON that holds it.
    return _above_ascii(block.replace(b"\x00", b"") for block in chain([start], blocks))


def _filled(start: bytes, blocks: Iterator[bytes]) -> bytes:
    """`start` and as many blocks as make a sample of it."""
    while len(start) < _SAMPLE:
        block = next(blocks, None)
        if block is None:
            break
        start += block
    return start


def _above_ascii(blocks: Iterator[bytes]) -> Iterator[str]:
    for block in blocks:
        first = None if block.isascii() else _HIGH.search(block)
        if first is None:
            yield block.decode("ascii")
            continue
        yield block[: first.start()].decode("ascii")
        # Words of ASCII before it help to guess.
        words = block[: first.start()][-_SAMPLE // 2 :]
        start = _filled(block[first.start() :], blocks)
        encoding = _encoding_of((words + start)[:_SAMPLE])
        yield from _leniently(chain([start], blocks), encoding)


def _encoding_of(sample: bytes) -> str:
    """The likeliest encoding of bytes, some of them above ASCII."""
    if _reads(sample, "utf-8") is not None:
        return "utf-8"
    high, lone = len(_HIGH.findall(sample)), len(_LONE_HIGH.findall(sample))
    in_utf8 = sum(len(found) for found in _MULTIBYTE_UTF8.findall(sample))
    if in_utf8 * 10 > high * 9:
        return "utf-8"
    if lone * 2 > high:
        # A few wrong bytes do not say what the rest of a long file is.
        return "utf-8" if high < _FEW or in_utf8 * 10 > high else "cp1252"
    return _guessed(sample)


def _guessed(sample: bytes) -> str:
    from charset_normalizer import from_bytes  # a tenth of a second, rarely needed

    # GB 18030 first: it reads GBK and GB 2312 too, which detection confuses with one another.
    for encoding in ("gb18030", *(match.encoding for match in from_bytes(sample))):
        text = _reads(sample, encoding)
        if text is not None and (encoding != "gb18030" or _is_common_chinese(text)):
            return encoding
    return "cp1252"


def _reads(sample: bytes, encoding: str) -> str | None:
    """A sample in an encoding, None where it is not; the last character may be cut."""
    try:
        return codecs.getincrementaldecoder(encoding)().decode(sample)
    except (UnicodeError, LookupError):
        return None


def _leniently(blocks: Iterable[bytes], encoding: str) -> Iterator[str]:
    """Text whose wrong bytes are read as Windows-1252, so that none is lost."""
    # Five bytes are undefined in it; Latin-1 makes them control characters, which cleaning removes.
    errors = _AS_LATIN_1 if encoding == "cp1252" else _AS_WINDOWS_1252
    decoder = codecs.getincrementaldecoder(encoding)(errors)
    for block in blocks:
        yield decoder.decode(block)
    yield decoder.decode(b"", final=True)


def _is_common_chinese(text: str) -> bool:
    """Whether one in twenty of its characters is of the commonest, as in any Chinese text."""
    foreign = [c for c in text if ord(c) > 127]
    return sum(c in _COMMONEST_CHINESE for c in foreign) * 20 >= len(foreign)


def _decode_wrong_bytes(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    wrong = error.object[error.start : error.end]
    return wrong.decode("cp1252", _AS_LATIN_1), error.end


def _decode_as_latin_1(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("latin-1"), error.end


_AS_LATIN_1, _AS_WINDOWS_1252 = "rag-as-latin-1", "rag-as-windows-1252"
codecs.register_error(_AS_LATIN_1, _decode_as_latin_1)
codecs.register_error(_AS_WINDOWS_1252, _decode_wrong_bytes)


def _utf16_without_mark(sample: bytes, blocks: Iterable[bytes]) -> Iterator[str]:
    """Text whose every other byte is mostly zero, as that of Western UTF-16."""
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    zeros = max(even, odd) * 10 >= len(sample) * 3 and min(even, odd) * 20 <= max(even, odd)
    encoding = "utf-16-be" if even > odd else "utf-16-le"
    text = _reads(sample, encoding) if zeros else None
    if text is None or _CONTROL.search(text.encode("utf-8", "replace")):
        raise ReadError(_BINARY)
    return _strictly(blocks, encoding)


def _strictly(blocks: Iterable[bytes], encoding: str, done: int = 0) -> Iterator[str]:
    """Text in an encoding that it must keep to; `done` bytes stand before it."""
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        for block in blocks:
            yield decoder.decode(block)
            done += len(block)
        yield decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise ReadError(
            f"It reads as {encoding.upper()}, but does not near byte {done + error.start}, or the "
            "file is cut off. Save it as UTF-8 and try again."
        ) from error
