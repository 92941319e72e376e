"""JSONL as Parquet of the same columns, a batch of lines at a time."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

import msgspec

from debrief.training.publishing.columns import Column, Columns, ListOf, as_schema
from debrief.training.publishing.conversations import Line

if TYPE_CHECKING:
    import pyarrow as pa

_LINES_A_BATCH = 64


class ParquetFile:
    """A Parquet file (zstd) that lines of JSON are added to.

    Columns of JSON are of Arrow's JSON type, which loaders decode again.
    """

    def __init__(self, sink: IO[bytes], columns: Columns) -> None:
        import pyarrow.parquet as pq

        self._columns = columns
        self._schema = as_schema(columns)
        self._writer = pq.ParquetWriter(sink, self._schema, compression="zstd")
        self._lines: list[Line] = []

    def add(self, line: Line) -> None:
        """Add a line."""
        self._lines.append(line)
        if len(self._lines) == _LINES_A_BATCH:
            self._flush()

    def close(self) -> None:
        """Write what is left, and the footer."""
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        import pyarrow as pa

        rows = [msgspec.json.decode(line) for line in self._lines]
        self._lines = []
        if rows:
            arrays = [
                _array([row[name] for row in rows], column, self._schema.field(name).type)
                for name, column in self._columns.items()
            ]
            self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema))


def _array(values: list[Any], column: Column, kind: pa.DataType) -> pa.Array:
    import pyarrow as pa

    if column != ListOf("json"):
        return pa.array(values, kind)
    texts = pa.array(
        [[msgspec.json.encode(item).decode() for item in value] for value in values],
        pa.list_(pa.string()),
    )
    return pa.ListArray.from_arrays(
        texts.offsets, pa.ExtensionArray.from_storage(pa.json_(), texts.values)
    )
