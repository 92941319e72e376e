"""The types of a published file's columns, told to a loader so that it need not guess.

A loader that infers types from the first lines sees an object's keys as fixed; a call's arguments
have others on every line. Such columns are declared as JSON.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from msgspec import Struct

if TYPE_CHECKING:
    import pyarrow as pa

Plain = Literal["string", "float64", "int64", "bool", "json"]


class ListOf(Struct, frozen=True):
    """A column of lists."""

    item: Column


class Record(Struct, frozen=True):
    """A column of records with fixed keys."""

    fields: dict[str, Column]


Column = Plain | ListOf | Record
Columns = Mapping[str, Column]

_PLAIN: dict[Any, Plain] = {str: "string", float: "float64", int: "int64", bool: "bool"}


def column_of(hint: Any) -> Column:
    """Return the column that holds values of a type of ours.

    Raises:
        TypeError: no column does.
    """
    origin, args = get_origin(hint), get_args(hint)
    if origin in (list, tuple):
        return ListOf(column_of(args[0]))
    if origin is Literal:
        return column_of(type(args[0]))
    if isinstance(hint, type) and issubclass(hint, Struct):
        hints = typing.get_type_hints(hint)
        return Record({name: column_of(hints[name]) for name in hint.__struct_fields__})
    if isinstance(hint, types.UnionType) or hint not in _PLAIN:
        raise TypeError(f"no column holds {hint}")
    return _PLAIN[hint]


def as_features(columns: Columns) -> list[dict[str, Any]]:
    """Return columns as the ``features`` of a dataset card's header."""
    return [{"name": name, **_feature(column)} for name, column in columns.items()]


def _feature(column: Column) -> dict[str, Any]:
    match column:
        case ListOf(item=Record(fields=fields)):
            return {"list": as_features(fields)}
        case ListOf(item=item):
            return {"list": item}
        case Record(fields=fields):
            return {"struct": as_features(fields)}
        case _:
            return {"dtype": column}


def as_schema(columns: Columns) -> pa.Schema:
    """Return columns as an Arrow schema."""
    import pyarrow as pa

    return pa.schema([pa.field(name, _arrow(column)) for name, column in columns.items()])


def _arrow(column: Column) -> pa.DataType:
    import pyarrow as pa

    match column:
        case ListOf(item=item):
            return pa.list_(_arrow(item))
        case Record(fields=fields):
            return pa.struct([pa.field(name, _arrow(kind)) for name, kind in fields.items()])
        case "string":
            return pa.string()
        case "json":
            return pa.json_()
        case "float64":
            return pa.float64()
        case "int64":
            return pa.int64()
        case _:
            return pa.bool_()
