"""JSON lines as they really are: doubled, cut short, badly encoded, grown while being read.

A file is read once, in blocks, and decoded line by line, so that memory is bounded by the longest
line and what the caller keeps. Whatever cannot be decoded becomes a problem with its line number;
everything around it is still read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec
import orjson

from debrief.sessions.model import Problem, TranscriptRef

Record = dict[str, Any]
T = TypeVar("T")

_BLOCK = 1 << 22
_MOST_PROBLEMS = 100
_MOST_RESTARTS = 64
_LENIENT = json.JSONDecoder(strict=False)


class JsonLines:
    """The records of one file of JSON lines, to be iterated over once.

    Afterwards ``problems`` holds the places that could not be read, and ``ref()`` tells what the
    file was. Opening raises ``OSError`` as usual.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.line = 0
        """The line that the latest record came from, from 1."""
        self.records = 0
        self.size = 0
        self.problems: list[Problem] = []
        self._untold = 0
        self._sha = hashlib.sha256()

    def __iter__(self) -> Iterator[Record]:
        """Yield every JSON object; other JSON values are reported and passed over."""
        loads = orjson.loads
        for block in self._blocks():
            for line in block.removesuffix(b"\n").split(b"\n"):
                self.line += 1
                try:
                    record = loads(line)
                except orjson.JSONDecodeError:
                    yield from self._decode_leniently(line)
                    continue
                if type(record) is dict:
                    self.records += 1
                    yield record
                else:
                    self.report(f"holds a JSON {_kind(record)} where an object belongs")
        self._tell_rest()

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
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                    yield from self._decode_typed_leniently(block[at:end], decoder)
                else:
                    self.records += 1
                    yield record
                at = end + 1
        self._tell_rest()

    def _decode_typed_leniently(self, line: bytes, decoder: msgspec.json.Decoder[T]) -> Iterator[T]:
        for loose in self._decode_leniently(line):
            try:
                yield decoder.decode(compact_json(loose))
            except (msgspec.DecodeError, RecursionError):
                self.report("nested too deeply to be read")

    def _tell_rest(self) -> None:
        if self._untold:
            reason = f"{self._untold} more lines could not be read"
            self.problems.append(Problem(path=self.path, line=self.line, reason=reason))

    def report(self, reason: str) -> None:
        """File a problem with the current line."""
        if len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(Problem(path=self.path, line=self.line, reason=reason))
        else:
            self._untold += 1

    def ref(self) -> TranscriptRef:
        """Return what was read: the digest is of exactly the bytes that were decoded."""
        return TranscriptRef(
            path=self.path, digest=self._sha.hexdigest(), size=self.size, records=self.records
        )

    def _blocks(self) -> Iterator[bytes]:
        """Yield the file in blocks of whole lines."""
        tail: list[bytes] = []
        with open(self.path, "rb", buffering=0) as file:  # noqa: PTH123 - a fifth of the cost
            while block := file.read(_BLOCK):
                self._sha.update(block)
                self.size += len(block)
                end = block.rfind(b"\n") + 1
                if not end:
                    tail.append(block)
                    continue
                if end == len(block) and not tail:
                    yield block
                    continue
                tail.append(block[:end])
                yield b"".join(tail)
                tail = [block[end:]] if end < len(block) else []
        if tail:
            yield b"".join(tail)

    def _decode_leniently(self, line: bytes) -> Iterator[Record]:
        """Decode a line that is not one JSON object in UTF-8, as far as it goes."""
        if not line or line.isspace():
            return
        try:
            text = line.decode()
        except UnicodeDecodeError:
            text = line.decode(errors="replace")
            self.report("bytes that are not UTF-8 were replaced")
        at, end, restarts = _skip_space(text, 0), len(text), 0
        while at < end:
            try:
                value, at = _LENIENT.raw_decode(text, at)
                if type(value) is dict:
                    value = mend(value)
            except RecursionError:
                self.report("nested too deeply to be read")
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
                continue
            if type(value) is dict:
                self.records += 1
                yield value
            else:
                self.report(f"holds a JSON {_kind(value)} where an object belongs")


def decodes(head: bytes, whole: bool) -> str | None:
    """Tell why the first line of a file's beginning is not JSON; None when it is, or is cut off."""
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
    if isinstance(value, list):
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


def load_json(path: str) -> tuple[Any, TranscriptRef, list[Problem]]:
    """Read a file that is one JSON document, with what had to be mended in it.

    Raises:
        ValueError: it is not JSON, or nested too deeply.
        OSError: it cannot be read.
    """
    with open(path, "rb") as file:  # noqa: PTH123
        data = file.read()
    ref = TranscriptRef(
        path=path, digest=hashlib.sha256(data).hexdigest(), size=len(data), records=1
    )
    try:
        return orjson.loads(data), ref, []
    except orjson.JSONDecodeError:
        problems: list[Problem] = []
        try:
            text = data.decode()
        except UnicodeDecodeError:
            text = data.decode(errors="replace")
            reason = "bytes that are not UTF-8 were replaced"
            problems.append(Problem(path=path, line=0, reason=reason))
        try:
            return mend(json.loads(text, strict=False)), ref, problems
        except RecursionError as error:
            raise ValueError("nested too deeply to be read") from error


def compact_json(value: Any) -> str:
    """Return ``value`` as compact JSON text; what cannot be encoded becomes an empty object."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        try:
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        except (RecursionError, TypeError, ValueError):
            return "{}"


def whole_number(value: Any) -> int:
    """Return a count out of a transcript: 0 for whatever is not a number from 0 to 2**53."""
    if type(value) is int:
        return value if 0 <= value < 1 << 53 else 0
    if type(value) is float and 0 <= value < 1 << 53:
        return int(value)
    return 0


def string(value: Any) -> str:
    """Return ``value`` when it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def _skip_space(text: str, at: int) -> int:
    end = len(text)
    while at < end and (text[at].isspace() or text[at] == "\ufeff"):
        at += 1
    return at


def _reason(text: str, error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
            return "the line is cut short"
        return f"not JSON at column {error.pos + 1}: {error.msg}"
    return f"not JSON: {error}"


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    names = {bool: "boolean", int: "number", float: "number", str: "string", list: "array"}
    return names.get(type(value), "value")
