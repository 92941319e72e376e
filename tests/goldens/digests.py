"""Digests of everything that a run leaves in a lake, for comparison with committed ones.

They say nothing of how tables are cut into partitions or how files are laid out inside: a table's
digest is over its rows, wherever they stand.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from debrief.lake import Lake
from debrief.lake.rows import SUFFIX
from debrief.tables import TABLES

UNSTABLE = {("scan", "mtime_ns")}
"""Columns that describe this machine's files and not the sessions."""


def digests_of(lake: Path) -> dict[str, Any]:
    """Return each table's columns, row count and digest, and each file's digest."""
    tables = {}
    for folder in sorted(path for path in lake.iterdir() if path.is_dir()):
        if any(folder.rglob(f"*{SUFFIX}")):
            rows = list(rows_of(folder))
            columns = list(TABLES[folder.name].rows.__struct_fields__)
            tables[folder.name] = {"columns": columns, "rows": len(rows), "digest": _sha256(rows)}
    files = {
        str(path.relative_to(lake)): _sha256([path.read_bytes()])
        for path in sorted(lake.rglob("*"))
        if path.is_file() and not path.name.endswith(SUFFIX) and ".dagster" not in path.parts
    }
    return {"tables": tables, "files": files}


def rows_of(table: Path) -> Iterator[bytes]:
    """Yield the rows of a table as JSON lines, sorted by their bytes."""
    lines = []
    for row in Lake(str(table.parent)).rows(table.name, TABLES[table.name].rows):
        kept = {k: v for k, v in _plain(row).items() if (table.name, k) not in UNSTABLE}
        lines.append(json.dumps(kept, sort_keys=True).encode())
    yield from sorted(lines)


def _plain(value: Any) -> Any:
    """Return a value as JSON; numbers to ten digits, for the last ones differ between CPUs."""
    match value:
        case float():
            return f"{value:.10g}"
        case dt.datetime():
            return value.isoformat()
        case bytes():
            return value.hex()
        case list() | tuple():
            return [_plain(each) for each in value]
        case dict():
            return [[key, _plain(each)] for key, each in value.items()]
        case Struct():
            return {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
        case msgspec.UnsetType():
            return None
        case _:
            return value


def _sha256(parts: Iterable[bytes]) -> str:
    content = hashlib.sha256()
    for part in parts:
        content.update(part + b"\n")
    return content.hexdigest()
