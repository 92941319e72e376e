"""The form of a table's file: a row a line of JSON, in one zstd frame, and a stamp behind them.

``zstdcat``, DuckDB and pandas read the rows as those of any ``.jsonl.zst``: the stamp is a frame of
the kind that decompressors pass over. It is the file's last few hundred bytes, so it is read
without the rows, and a file that was cut off has none.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from functools import cache
from typing import IO, Any, TypeVar

import msgspec
import zstandard

Row = TypeVar("Row", bound=msgspec.Struct)

SUFFIX = ".jsonl.zst"
STAMP_SIZE = 4_096
"""Bytes at a file's end that hold its stamp."""
_PASSED_OVER = (0x184D2A5D).to_bytes(4, "little")
"""Begins a frame of no data; its length follows in four bytes. JSON has no such bytes."""
_BLOCK = 1 << 18
_PIECE = 1 << 10


class Stamp(msgspec.Struct, frozen=True):
    """What a partition's file says about it without its rows being read."""

    digest: str
    """SHA-256 of its rows, in hex."""
    inputs: str
    """Digest of what the rows were made from, as the writer gave it; empty: make them again."""
    rows: int


class DamagedError(ValueError):
    """A file is not what was written."""


def write_rows(
    file: IO[bytes], rows: Iterable[msgspec.Struct], inputs: Callable[[], str] = str
) -> Stamp:
    """Write rows to a file as they come, and the stamp behind them, which is returned.

    A number that is none (NaN, infinity) is null afterwards, as JSON has it.

    Args:
        file: an empty one.
        rows: in order.
        inputs: called after the last row; returns the stamp's ``inputs``.
    """
    encode, content, count = msgspec.json.Encoder().encode, hashlib.sha256(), 0
    with zstandard.ZstdCompressor(write_checksum=True).stream_writer(file, closefd=False) as frame:
        for row in rows:
            line = encode(row) + b"\n"
            content.update(line)
            frame.write(line)
            count += 1
    stamp = Stamp(content.hexdigest(), inputs(), count)
    data = encode(stamp)
    if len(data) + 8 > STAMP_SIZE:
        raise ValueError(f"{len(data)} bytes of a stamp are too many")
    file.write(_PASSED_OVER + len(data).to_bytes(4, "little") + data)
    return stamp


def read_stamp(end: bytes) -> Stamp | None:
    """Return the stamp at the end of a file, by its last bytes; None if it is damaged."""
    at = end.rfind(_PASSED_OVER)
    if at < 0:
        return None
    try:
        return msgspec.json.decode(end[at + 8 :], type=Stamp)
    except msgspec.DecodeError:
        return None


def read_rows(
    data: bytes, row_type: type[Row], only: tuple[str, Collection[str]] | None = None
) -> Iterator[Row]:
    """Yield the rows of a file, in order.

    Args:
        data: the file's bytes.
        row_type: the struct to read rows as; fields that it lacks are passed over.
        only: a field, and its values in the rows to read.

    Raises:
        DamagedError: the file is damaged.
        msgspec.ValidationError: a row is none of ``row_type``.
    """
    if read_stamp(data[-STAMP_SIZE:]) is None:
        raise DamagedError("its end is missing")
    decode = _decoder(row_type)
    if only is None:
        yield from map(decode, _lines(data))
        return
    name, values = only
    key = _decoder(msgspec.defstruct("_Key", [(name, str)]))
    yield from (decode(line) for line in _lines(data) if getattr(key(line), name) in values)


def damage_of(data: bytes) -> str:
    """Return what is wrong with a file as a whole; empty when it is as it was written."""
    stamp = read_stamp(data[-STAMP_SIZE:])
    if stamp is None:
        return "its end is missing"
    content = hashlib.sha256()
    try:
        for line in _lines(data):
            content.update(line)
    except DamagedError as error:
        return str(error)
    return "" if content.hexdigest() == stamp.digest else "its rows are not those that were written"


def readable_rows(data: bytes, row_type: type[Row]) -> Iterator[Row]:
    """Yield those rows of a damaged file that can be read as ``row_type``."""
    frame, text = zstandard.ZstdDecompressor().decompressobj(), io.BytesIO()
    with suppress(zstandard.ZstdError):
        # Small pieces, since an error takes along all that came of its piece.
        for start in range(0, len(data), _PIECE):
            text.write(frame.decompress(data[start : start + _PIECE]))
            if frame.eof:
                break
    for line in text.getvalue().splitlines():
        with suppress(msgspec.DecodeError):
            yield _decoder(row_type)(line)


def read_values(data: bytes) -> Iterator[Any]:
    """Yield the rows of a file, as ``read_rows`` does, as plain values."""
    return map(msgspec.json.decode, _lines(data))


def _lines(data: bytes) -> Iterator[bytes]:
    stream: Any = zstandard.ZstdDecompressor().stream_reader(data)
    lines = io.BufferedReader(stream, _BLOCK)
    while True:
        try:
            line = next(lines, None)
        except zstandard.ZstdError as error:
            raise DamagedError(str(error)) from error
        if line is None:
            return
        yield line


@cache
def _decoder(row_type: type[Row]) -> Callable[[bytes], Row]:
    return msgspec.json.Decoder(row_type).decode
