"""JSONL as Parquet of the same columns, a batch of lines at a time."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from debrief.training.publishing.columns import Column, Columns, ListOf, as_schema

if TYPE_CHECKING:
    import pyarrow as pa

_LINES_A_BATCH = 64


def write_parquet(source: Path, target: Path, columns: Columns) -> None:
    """Write the lines of a JSONL file as Parquet (zstd).

    Columns of JSON are of Arrow's JSON type, which loaders decode again.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = as_schema(columns)
    with source.open("rb") as lines, pq.ParquetWriter(target, schema, compression="zstd") as sink:
        while batch := list(islice(lines, _LINES_A_BATCH)):
            rows = [msgspec.json.decode(line) for line in batch]
            arrays = [
                _array([row[name] for row in rows], column, schema.field(name).type)
                for name, column in columns.items()
            ]
            sink.write_table(pa.Table.from_arrays(arrays, schema=schema))


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
