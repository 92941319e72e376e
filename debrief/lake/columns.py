"""From structs to Arrow's columns."""

from __future__ import annotations

import datetime as dt
import types
import typing
from collections.abc import Iterator
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin

import msgspec

if typing.TYPE_CHECKING:
    import pyarrow as pa


@cache
def schema_of(row_type: type[msgspec.Struct]) -> pa.Schema:
    """Return the Arrow schema of a struct: one column a field, nested structs as structs."""
    import pyarrow as pa

    return pa.schema(list(_fields(row_type)))


@cache
def unset_fields(row_type: type[msgspec.Struct]) -> tuple[str, ...]:
    """Return the fields that are unset, rather than null, where a row has no value."""
    hints = typing.get_type_hints(row_type)
    return tuple(
        name for name in row_type.__struct_fields__ if msgspec.UnsetType in get_args(hints[name])
    )


def _fields(row_type: type[msgspec.Struct]) -> Iterator[pa.Field]:
    import pyarrow as pa

    hints = typing.get_type_hints(row_type)
    for name in row_type.__struct_fields__:
        kind, optional = _arrow_type(hints[name])
        yield pa.field(name, kind, nullable=optional)


def _arrow_type(hint: Any) -> tuple[pa.DataType, bool]:
    import pyarrow as pa

    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        kinds = [arg for arg in args if arg not in (type(None), msgspec.UnsetType)]
        if len(kinds) != 1 or len(kinds) == len(args):
            raise TypeError(f"a column cannot hold {hint}")
        return _arrow_type(kinds[0])[0], True
    if origin is Literal:
        return _arrow_type(type(args[0]))
    if origin in (list, tuple):
        inner, nullable = _arrow_type(args[0])
        return pa.list_(pa.field("item", inner, nullable=nullable)), False
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return pa.struct(list(_fields(hint))), False
    plain = {
        str: pa.string(),
        int: pa.int64(),
        float: pa.float64(),
        bool: pa.bool_(),
        bytes: pa.binary(),
        dt.datetime: pa.timestamp("us", tz="UTC"),
    }
    if hint not in plain:
        raise TypeError(f"a column cannot hold {hint}")
    return plain[hint], False
