"""The types of an exported file's columns, declared so that a loader need not guess them.

A loader that infers types from the first lines sees an object's keys as fixed; a call's arguments
have others on every line. Such columns are declared as JSON.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from typing import IO, TYPE_CHECKING, Any, Literal, TypeAlias, get_args, get_origin

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    import pyarrow as pa

Column: TypeAlias = "str | list[Column] | dict[str, Column]"
"""A plain type's name, a list of a column, or a record of columns: ``["json"]`` is a list of
objects of any shape."""
Columns: TypeAlias = Mapping[str, Column]

_PLAIN: dict[Any, str] = {str: "string", float: "float64", int: "int64", bool: "bool"}


def column_of(hint: Any) -> Column:
    """Return the column that holds values of a type of ours.

    Raises:
        TypeError: no column does.
    """
    origin, args = get_origin(hint), get_args(hint)
    if origin in (list, tuple):
        return [column_of(args[0])]
    if origin is Literal:
        return column_of(type(args[0]))
    if isinstance(hint, type) and issubclass(hint, Struct):
        hints = typing.get_type_hints(hint)
        return {name: column_of(hints[name]) for name in hint.__struct_fields__}
    if isinstance(hint, types.UnionType) or hint not in _PLAIN:
        raise TypeError(f"no column holds {hint}")
    return _PLAIN[hint]


def as_features(columns: Columns) -> list[dict[str, Any]]:
    """Return columns as the ``features`` of a dataset card's header."""
    return [{"name": name, **_feature(column)} for name, column in columns.items()]


def _feature(column: Column) -> dict[str, Any]:
    match column:
        case [dict() as fields]:
            return {"list": as_features(fields)}
        case [item]:
            return {"list": item}
        case dict():
            return {"struct": as_features(column)}
        case _:
            return {"dtype": column}


def as_schema(columns: Columns) -> pa.Schema:
    """Return columns as an Arrow schema."""
    import pyarrow as pa

    return pa.schema([pa.field(name, _arrow(column)) for name, column in columns.items()])


def _arrow(column: Column) -> pa.DataType:
    import pyarrow as pa

    match column:
        case [item]:
            return pa.list_(_arrow(item))
        case dict():
            return pa.struct([pa.field(name, _arrow(kind)) for name, kind in column.items()])
        case "json":
            return pa.json_()
        case _:
            return pa.type_for_alias(column)


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
        self._lines: list[bytes] = []

    def add(self, line: bytes) -> None:
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

    if column != ["json"]:
        return pa.array(values, kind)
    texts = pa.array(
        [[msgspec.json.encode(item).decode() for item in value] for value in values],
        pa.list_(pa.string()),
    )
    return pa.ListArray.from_arrays(
        texts.offsets, pa.ExtensionArray.from_storage(pa.json_(), texts.values)
    )
