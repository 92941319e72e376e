"""Tables of the versions until November 2026: Parquet, with a column a field and a stamp inside.

They are read as they are. What is written anew takes their place (``Lake.write``), so in time none
is left, and no other module knows of them.
"""

from __future__ import annotations

import io
import typing
from collections.abc import Iterator
from functools import cache
from typing import Any, get_args

import msgspec

from debrief.lake.rows import DamagedError, Row, Stamp

SUFFIX = ".parquet"
FOOTER = 1 << 20
"""Bytes at a file's end that hold its footer."""
_AT_ONCE = 64


def read_stamp(end: bytes) -> Stamp | None:
    """Return the stamp in a file's last bytes; None if it is damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        footer = pq.read_metadata(io.BytesIO(end))
    except (pa.ArrowInvalid, OSError):
        return None
    pairs = footer.metadata or {}
    digest, inputs = (
        pairs.get(name, b"").decode() for name in (b"debrief.digest", b"debrief.inputs")
    )
    return Stamp(digest, inputs, footer.num_rows)


def read_rows(data: bytes, row_type: type[Row]) -> Iterator[Row]:
    """Yield the rows in a file's bytes, in order.

    Raises:
        DamagedError: the file is damaged.
        msgspec.ValidationError: a row is none of ``row_type``.
    """
    unset = _unset_fields(row_type)
    for row in read_values(data):
        for name in unset:
            if row.get(name) is None:
                row.pop(name, None)
        yield msgspec.convert(row, row_type)


def read_values(data: bytes) -> Iterator[dict[str, Any]]:
    """Yield the rows in a file's bytes as plain values."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        batches = pq.ParquetFile(io.BytesIO(data)).iter_batches(_AT_ONCE, use_threads=False)
        for batch in batches:
            yield from batch.to_pylist(maps_as_pydicts="strict")
    except (pa.ArrowInvalid, OSError) as error:
        raise DamagedError(str(error)) from error


@cache
def _unset_fields(row_type: type[msgspec.Struct]) -> tuple[str, ...]:
    """Return the fields that are unset, rather than null, where a row has no value."""
    hints = typing.get_type_hints(row_type)
    return tuple(
        name for name in row_type.__struct_fields__ if msgspec.UnsetType in get_args(hints[name])
    )
