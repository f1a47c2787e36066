"""Bytes of unknown encoding -> text with line feeds for line ends."""

from __future__ import annotations

import codecs
import re

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
_BINARY = "It is a binary file, not text. Give a text, JSON or JSONL file."


def decode(data: bytes) -> str:
    """The text in `data`: by its byte order mark, as UTF-8, or in the likeliest legacy encoding.

    Single bytes that are wrong in otherwise good UTF-8 are read as Windows-1252.

    Raises:
        ReadError: it is not text.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _with_unix_line_ends(_strictly(data[len(mark) :], encoding))
    sample = data[:_SAMPLE]
    if sample.count(0) * 100 > len(sample):
        return _with_unix_line_ends(_utf16_without_mark(data))
    if len(_CONTROL.findall(sample)) * 100 > len(sample):
        raise ReadError(_BINARY)
    # A stray zero byte is no text, and would spoil the line of JSON that holds it.
    return _with_unix_line_ends(_best(data.replace(b"\x00", b"")))


def _best(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        pass
    high, lone = len(_HIGH.findall(data)), len(_LONE_HIGH.findall(data))
    in_utf8 = sum(len(found) for found in _MULTIBYTE_UTF8.findall(data))
    if in_utf8 * 10 > high * 9:
        return data.decode("utf-8", _AS_WINDOWS_1252)
    if lone * 2 > high:
        return _windows_1252(data)
    return _guessed(data)


def _guessed(data: bytes) -> str:
    from charset_normalizer import from_bytes  # a tenth of a second, rarely needed

    # GB 18030 first: it reads GBK and GB 2312 too, which detection confuses with one another.
    for encoding in ("gb18030", *(match.encoding for match in from_bytes(data[:_SAMPLE]))):
        try:
            text = data.decode(encoding)
        except (UnicodeDecodeError, LookupError):
            continue
        if encoding != "gb18030" or _is_common_chinese(text):
            return text
    return _windows_1252(data)


def _is_common_chinese(text: str) -> bool:
    """Whether one in twenty of its characters is of the commonest, as in any Chinese text."""
    foreign = [c for c in text if ord(c) > 127]
    return sum(c in _COMMONEST_CHINESE for c in foreign) * 20 >= len(foreign)


def _windows_1252(data: bytes) -> str:
    # Five bytes are undefined in it; Latin-1 makes them control characters, which cleaning removes.
    return data.decode("cp1252", _AS_LATIN_1)


def _decode_wrong_bytes(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return _windows_1252(error.object[error.start : error.end]), error.end


def _decode_as_latin_1(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("latin-1"), error.end


_AS_LATIN_1, _AS_WINDOWS_1252 = "rag-as-latin-1", "rag-as-windows-1252"
codecs.register_error(_AS_LATIN_1, _decode_as_latin_1)
codecs.register_error(_AS_WINDOWS_1252, _decode_wrong_bytes)


def _utf16_without_mark(data: bytes) -> str:
    """Text whose every other byte is mostly zero, as that of Western UTF-16."""
    even, odd = data[:_SAMPLE:2].count(0), data[1:_SAMPLE:2].count(0)
    zeros = max(even, odd) * 10 >= len(data[:_SAMPLE]) * 3 and min(even, odd) * 20 <= max(even, odd)
    try:
        text = data.decode("utf-16-be" if even > odd else "utf-16-le") if zeros else "\0"
    except UnicodeDecodeError as error:
        raise ReadError(_BINARY) from error
    if _CONTROL.search(text[:_SAMPLE].encode("utf-8", "replace")):
        raise ReadError(_BINARY)
    return text


def _strictly(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise ReadError(
            f"It says that it is {encoding.upper()}, but byte {error.start} is not. "
            "Save it as UTF-8 and try again."
        ) from error


def _with_unix_line_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
