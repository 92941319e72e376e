"""Read JSON that may be doubled, cut short, badly encoded or still growing.

A file of JSON lines is read once, in blocks, and decoded line by line, so that memory is bounded
by the longest line and what the caller keeps. Whatever cannot be decoded becomes a problem with
its line number; everything around it is still read, as is what comes before a document breaks off.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import orjson

from debrief.sessions.model import Problem, TranscriptRef
from debrief.sessions.readers.files import BYTE_ORDER_MARK, Decompressed, Disk, opened

JsonRecord = dict[str, Any]
T = TypeVar("T")
_BLOCK = 1 << 22
_LONGEST_LINE = 1 << 26
"""Longer lines are reported, not read: decoded, one costs several times its size in memory."""
_MOST_PROBLEMS = 100
_MOST_RESTARTS = 64
LENIENT = json.JSONDecoder(strict=False)
_LINE_ENDS = re.compile(r"\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f]")
_UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_OBJECTS = msgspec.json.Decoder(JsonRecord)
NOT_UTF8 = "bytes that are not UTF-8 were replaced"
TOO_DEEP = "nested too deeply to be read"


class JsonLines:
    """The records of one file of JSON lines, to be iterated over once.

    Afterwards ``problems`` holds the places that could not be read, and ``ref()`` says what the
    file was. Opening raises ``OSError`` as usual.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.line = 0
        """The line that the latest record came from, from 1."""
        self.records = 0
        self.problems: list[Problem] = []
        self._unreported = 0
        self._file: Disk | Decompressed | None = None

    def __iter__(self) -> Iterator[JsonRecord]:
        """Yield every JSON object; other JSON values are reported and skipped."""
        return self.typed(_OBJECTS)

    def typed(self, decoder: msgspec.json.Decoder[T]) -> Iterator[T]:
        """Yield every JSON object as a struct, what the struct does not name left undecoded.

        Args:
            decoder: of a struct whose fields take any JSON value.
        """
        decode = decoder.decode
        for block in self._blocks():
            view, find, at = memoryview(block), block.find, 0
            while at < len(block):
                end = find(b"\n", at)
                if end < 0:
                    end = len(block)
                self.line += 1
                try:
                    record = decode(view[at:end])
                except _UNDECODABLE:
                    yield from self._decode_leniently(block[at:end], decoder)
                else:
                    self.records += 1
                    yield record
                at = end + 1
        if self._file and self._file.fault:
            self.report(self._file.fault)
        if self._unreported:
            reason = f"{self._unreported} more lines could not be read"
            self.problems.append(Problem(path=self.path, line=self.line, reason=reason))

    def report(self, reason: str) -> None:
        """File a problem with the current line."""
        if len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(Problem(path=self.path, line=self.line, reason=reason))
        else:
            self._unreported += 1

    def ref(self) -> TranscriptRef:
        """Return what was read: the digest is of exactly the bytes that were decoded."""
        digest = self._file.digest if self._file else ""
        return TranscriptRef(path=self.path, digest=digest, size=self.size, records=self.records)

    @property
    def size(self) -> int:
        """Bytes of the file that were read so far, as they lie on the disk."""
        return self._file.taken if self._file else 0

    def _blocks(self) -> Iterator[bytes]:
        """Yield the file in blocks of whole lines, without lines that are too long."""
        tail: list[bytes] = []
        skipped = 0
        with opened(self.path) as file:
            self._file = file
            while block := file.read(_BLOCK):
                if skipped:
                    start = block.find(b"\n") + 1
                    skipped += start or len(block)
                    if start:
                        self._report_long(skipped)
                        skipped = 0
                    block = block[start:] if start else b""
                end = block.rfind(b"\n") + 1
                tail.append(block[:end] if end else block)
                if end:
                    yield b"".join(tail)
                    tail = [block[end:]] if end < len(block) else []
                elif sum(map(len, tail)) > _LONGEST_LINE:
                    skipped, tail = sum(map(len, tail)), []
        if skipped:
            self._report_long(skipped)
        if any(tail):
            yield b"".join(tail)

    def _report_long(self, size: int) -> None:
        self.line += 1
        limit = _LONGEST_LINE / 1e6
        self.report(f"a line of {size / 1e6:.0f} MB is left out; the longest read has {limit:.0f}")

    def _decode_leniently(self, line: bytes, decoder: msgspec.json.Decoder[T]) -> Iterator[T]:
        """Decode a line that is not one JSON object in UTF-8, as far as it goes."""
        if not line or line.isspace():
            return
        try:
            text = line.decode()
        except UnicodeDecodeError:
            text = line.decode(errors="replace")
            self.report(NOT_UTF8)
        at, end, restarts = _skip_space(text, 0), len(text), 0
        while at < end:
            try:
                value, at = LENIENT.raw_decode(text, at)
                value = mend(value) if type(value) is dict else value
            except RecursionError:
                self.report(TOO_DEEP)
                return
            except ValueError as error:
                if restarts == 0:
                    self.report(_reason(text, error))
                restarts += 1
                at = text.find('{"', at + 1)
                if at < 0 or restarts > _MOST_RESTARTS:
                    return
                continue
            at = _skip_space(text, at)
            if restarts and (at < end or type(value) is not dict or "type" not in value):
                at = text.find('{"', at)
                if at < 0:
                    return
            elif type(value) is dict:
                self.records += 1
                try:
                    yield decoder.decode(compact_json(value))
                except (msgspec.DecodeError, RecursionError):
                    self.report(TOO_DEEP)
            else:
                self.report(f"holds a JSON {_kind(value)} where an object belongs")


def first_line_error(head: bytes, whole: bool) -> str | None:
    """Return why the first line of a file's beginning is not JSON; None when it is, or is cut."""
    line, newline, _ = head.lstrip().partition(b"\n")
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError as error:
        return None if not newline and not whole else f"not JSON: {error.msg}"
    return None


def mend(value: Any) -> Any:
    """Return a decoded JSON value with lone surrogates replaced by U+FFFD in every string.

    Such strings are legal JSON, but nothing can encode them as UTF-8 again.
    """
    if isinstance(value, str):
        return mend_text(value)
    if isinstance(value, list | tuple):
        return [mend(item) for item in value]
    if isinstance(value, dict):
        return {mend_text(key): mend(item) for key, item in value.items()}
    return value


def mend_text(text: str) -> str:
    """Return ``text`` with surrogate pairs joined and lone surrogates replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def plain_text(text: str) -> str:
    """Return words that are kept and shown, mended, lines ended by ``\\n``, no control characters.

    For what people and models say in a few lines: labels, comments and answers. Transcripts are
    only mended, as what a program printed is data.

    >>> plain_text("a \\ud83d\\x1b[2J\\r\\nb")
    'a \ufffd[2J\\nb'
    """
    if text.isprintable():
        return text
    return _CONTROL.sub("", _LINE_ENDS.sub("\n", mend_text(text)))


def compact_json(value: Any) -> str:
    """Return ``value`` as compact JSON text; what cannot be encoded becomes an empty object."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        try:
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        except (RecursionError, TypeError, ValueError):
            return "{}"


def _skip_space(text: str, at: int) -> int:
    while at < len(text) and (text[at].isspace() or text[at] == "\ufeff"):
        at += 1
    return at


def _reason(text: str, error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
            return "the line is cut short"
        return f"not JSON at column {error.pos + 1}: {error.msg}"
    return f"not JSON: {error}"


def _kind(value: Any) -> str:
    names = {bool: "boolean", int: "number", float: "number", str: "string", list: "array"}
    return names.get(type(value), "null")


_LISTS = ("messages", "requests", "steps", "trajectory")
_MESSAGES = re.compile(rf'"({"|".join(_LISTS)})"\s*:\s*\[')
_LIST = re.compile(r"\s*\[")
_BETWEEN = re.compile(r"[\s,]*")


def decoded(data: bytes) -> tuple[Any, str]:
    """Return a JSON value, and what had to be mended in it; no words for nothing.

    Raises:
        ValueError: it is no JSON.
    """
    try:
        return orjson.loads(data), ""
    except orjson.JSONDecodeError:
        text = data.decode(errors="replace")
    try:
        value = mend(json.loads(text, strict=False))
    except RecursionError as error:
        raise ValueError(TOO_DEEP) from error
    return value, "" if text.encode() == data else NOT_UTF8


def load_object(path: str) -> tuple[JsonRecord, TranscriptRef, list[Problem]]:
    """Read a file that is one JSON object, with what had to be mended in it.

    A list is taken for the ``messages`` of an object. Of a broken one, what comes before its list
    of ``messages``, ``requests``, ``steps`` or ``trajectory``, and of that what comes before the
    break.

    Raises:
        ValueError: nothing of it can be read, or it is no object.
        OSError: it cannot be read.
    """
    data = Path(path).read_bytes()
    sha = hashlib.sha256(data).hexdigest()
    ref = TranscriptRef(path=path, digest=sha, size=len(data), records=1)
    problems: list[Problem] = []
    try:
        document, mended = decoded(data.removeprefix(BYTE_ORDER_MARK))
        if mended:
            problems.append(Problem(path=path, line=0, reason=mended))
    except ValueError as error:
        document, line = _salvaged(data.decode(errors="replace"), str(error))
        reason = "the document is broken or cut short here; "
        name = next(each for each in _LISTS if each in document)
        reason += f"{len(document[name])} {name} stand before it"
        problems.append(Problem(path=path, line=line, reason=reason))
    if type(document) is list:
        document = {"messages": document}
    if type(document) is not dict:
        raise ValueError("holds no JSON object")
    return document, ref, problems


def _salvaged(text: str, error: str) -> tuple[JsonRecord, int]:
    """Return the readable part of a broken document, and the line it breaks at."""
    bare = _LIST.match(text)
    start = bare or _MESSAGES.search(text)
    try:
        before = "{}" if bare else text[: start.end()] + "]}" if start else ""
        document = orjson.loads(before)
    except orjson.JSONDecodeError:
        document = None
    if start is None or document is None:
        raise ValueError(f"not JSON: {error}")
    messages, at = [], start.end()
    while True:
        between = _BETWEEN.match(text, at)
        at = between.end() if between else at
        try:
            value, at = LENIENT.raw_decode(text, at)
        except (ValueError, RecursionError):
            break
        messages.append(mend(value))
    document["messages" if bare else start[1]] = messages
    return document, text.count("\n", 0, at) + 1
