"""Tables as pandas frames, for notebooks: typed and flat."""

from __future__ import annotations

import typing
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib import import_module
from types import UnionType
from typing import Any, Literal, NamedTuple, Protocol

from msgspec import Struct, UnsetType

from debrief.errors import InputError
from debrief.keys import is_week

if typing.TYPE_CHECKING:
    import pandas as pd

_DECLARATIONS = "debrief.tables"
"""Declares all tables. Imported when a frame is asked for, since it lies above the lake."""


class Declaration(Protocol):
    """What is declared of a table."""

    @property
    def rows(self) -> type[Struct]:
        """The type of its rows."""

    @property
    def weekly(self) -> bool:
        """Whether its partitions are weeks."""


class _Column(NamedTuple):
    name: str
    """The way to the field, as ``verdict.verdict``."""
    kind: Any
    """The type of its values; ``object`` where pandas has none."""
    optional: bool


def declared() -> Mapping[str, Declaration]:
    """Return what is declared of each table, by its name."""
    tables: Mapping[str, Declaration] = import_module(_DECLARATIONS).TABLES
    return tables


def declaration_of(table: str) -> Declaration:
    """Return what is declared of a table.

    Raises:
        InputError: there is no such table; names those that there are.
    """
    tables = declared()
    if table not in tables:
        raise InputError(
            f"table {table}", "does not exist", f"There are: {', '.join(sorted(tables))}."
        )
    return tables[table]


def chosen_weeks(partitions: Sequence[str], table: str, weeks: str) -> list[str]:
    """Return the partitions of a table that are in a range of weeks; all without one.

    Raises:
        InputError: it is no range, or the table is not made week by week.
    """
    if not weeks:
        return list(partitions)
    if not declaration_of(table).weekly:
        raise InputError(f"table {table}", "is not made week by week", "Leave out weeks.")
    first, dots, last = weeks.partition("..")
    last = last if dots else first
    for end in filter(None, (first, last)):
        if not is_week(end):
            move = "A week is written 2026-11-16, a range 2026-10-05..2026-11-16."
            raise InputError(f"weeks={weeks!r}", f"{end} is not the date of a Monday", move)
    if last and last < first:
        raise InputError(f"weeks={weeks!r}", "runs backwards", f"Write {last}..{first}.")
    return [key for key in partitions if first <= key and (not last or key <= last)]


def frame_of(rows: Iterable[tuple[str, Struct]], table: Declaration) -> pd.DataFrame:
    """Return rows, each with its partition, as a frame with the types of the table's fields."""
    import pandas as pd

    columns = list(_columns(table.rows))
    key = "week" if table.weekly else "partition"
    keys: list[str] = []
    values: dict[str, list[Any]] = defaultdict(list)
    for partition, row in rows:
        keys.append(partition)
        for column in columns:
            values[column.name].append(_plain(_value(row, column.name)))
    series = {key: pd.Series(keys, dtype=_dtype(_Column(key, str, False)))}
    for column in columns:
        series[column.name] = pd.Series(values[column.name], dtype=_dtype(column))
    return pd.DataFrame(series)


def _columns(struct: type[Struct], way: str = "", optional: bool = False) -> Iterator[_Column]:
    """Yield the columns of a struct's fields; those of structs in it stand in its place."""
    hints = typing.get_type_hints(struct)
    for name in struct.__struct_fields__:
        kinds = set(_kinds(hints[name]))
        may_be_absent = optional or bool(kinds & {type(None), UnsetType})
        kinds -= {type(None), UnsetType}
        kind = kinds.pop() if len(kinds) == 1 else object
        if isinstance(kind, type) and issubclass(kind, Struct):
            yield from _columns(kind, f"{way}{name}.", may_be_absent)
        else:
            yield _Column(way + name, kind, may_be_absent)


def _kinds(hint: Any) -> Iterator[Any]:
    """Yield the types that a field's values may have."""
    origin = typing.get_origin(hint)
    if origin in (typing.Union, UnionType):
        for part in typing.get_args(hint):
            yield from _kinds(part)
    elif origin is Literal:
        yield from map(type, typing.get_args(hint))
    elif origin is typing.Annotated:
        yield from _kinds(typing.get_args(hint)[0])
    else:
        yield hint if origin is None else object


def _dtype(column: _Column) -> Any:
    """Return pandas' type for a column."""
    import pandas as pd

    if column.kind is str:
        return pd.StringDtype(na_value=float("nan"))
    if column.kind is datetime:
        return pd.DatetimeTZDtype("us", "UTC")
    if column.kind is float:
        return "float64"
    if column.kind in (int, bool):
        whole = {int: ("int64", "Int64"), bool: ("bool", "boolean")}
        return whole[column.kind][column.optional]
    return "object"


def _value(row: Struct, way: str) -> Any:
    """Return a field's value; None where it, or the struct that it is in, is absent."""
    value: Any = row
    for name in way.split("."):
        if value is None or isinstance(value, UnsetType):
            return None
        value = getattr(value, name)
    return None if isinstance(value, UnsetType) else value


def _plain(value: Any) -> Any:
    """Return a value with lists for tuples, dictionaries for structs, and times in UTC."""
    match value:
        case Struct():
            fields = ((name, getattr(value, name)) for name in value.__struct_fields__)
            return {name: _plain(each) for name, each in fields if not isinstance(each, UnsetType)}
        case list() | tuple():
            return [_plain(each) for each in value]
        case dict():
            return {key: _plain(each) for key, each in value.items()}
        case datetime():
            return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
        case _:
            return value
