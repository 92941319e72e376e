"""Frames of a lake's tables, held against the rows that they are made of."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pandas as pd
from msgspec import Struct, UnsetType


def assert_is_frame_of(frame: pd.DataFrame, rows: Sequence[Struct]) -> None:
    """Make sure that a frame holds everything that rows do, in their order."""
    assert len(frame) == len(rows)
    for row, record in zip(rows, frame.to_dict("records"), strict=True):
        told = {name for name, value in record.items() if not _is_absent(value)}
        said = dict(_fields(row))
        for name, value in said.items():
            assert _same(record[name], value), (name, record[name], value)
        assert told - said.keys() <= {"week", "partition"}


def _fields(row: Struct, way: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name in row.__struct_fields__:
        value = getattr(row, name)
        if isinstance(value, Struct):
            found += _fields(value, f"{way}{name}.")
        elif value is not None and not isinstance(value, UnsetType):
            found.append((way + name, value))
    return found


def _is_absent(value: Any) -> bool:
    return not isinstance(value, list | dict) and bool(pd.isna(value))


def _same(shown: Any, value: Any) -> bool:
    if isinstance(value, Struct):
        fields = {
            name: each
            for name in value.__struct_fields__
            if not isinstance(each := getattr(value, name), UnsetType)
        }
        return shown.keys() == fields.keys() and all(_same(shown[k], fields[k]) for k in fields)
    if isinstance(value, tuple | list):
        return (
            isinstance(shown, list) and len(shown) == len(value) and all(map(_same, shown, value))
        )
    if isinstance(value, dict):
        return shown.keys() == value.keys() and all(_same(shown[k], value[k]) for k in value)
    if isinstance(value, datetime):
        return bool(shown == value)
    if isinstance(value, float) and value != value:
        return bool(pd.isna(shown))
    return bool(shown == value) and isinstance(shown, bool) == isinstance(value, bool)
