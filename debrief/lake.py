"""The lake: partitioned tables of typed rows, and text files, below one fsspec URL.

A table is a folder, a partition one Parquet file in it. A file is written under a temporary name
and renamed, so a reader sees the old rows or the new ones and never half of them; and a file
whose rows would be the same is left alone, so that nothing downstream looks changed.
"""

from __future__ import annotations

import datetime as dt
import glob
import hashlib
import os
import tempfile
import time
import types
import typing
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin
from uuid import uuid4

import msgspec

if typing.TYPE_CHECKING:
    import pyarrow as pa

Row = TypeVar("Row", bound=msgspec.Struct)

_ROWS_A_GROUP = 512
_BYTES_A_GROUP = 16_000_000
_ABANDONED = 3_600.0
"""Seconds after which nobody can still be writing to an unfinished file."""
_BYTES_AT_ONCE = 4_000_000
"""Decoded at once by a reader: as Python objects they take several times as much."""
_DIGEST_KEY = b"debrief.digest"
_INPUTS_KEY = b"debrief.inputs"


class Stamp(msgspec.Struct, frozen=True):
    """What a partition says of itself without its rows being read."""

    digest: str
    """SHA-256 of its rows, in hex."""
    inputs: str
    """What the writer said that the rows were made from; empty when they are to be made again."""
    rows: int


class Written(msgspec.Struct, frozen=True):
    """What a write came to."""

    path: str
    rows: int
    size: int
    """Bytes."""
    changed: bool
    digest: str
    """SHA-256 of the content, in hex."""


class Creation(msgspec.Struct):
    """A file that is being written."""

    name: str
    path: str
    file: typing.IO[bytes]
    wanted: bool = True
    """Set to False, it is not put in its place."""
    changed: bool = False
    """Known once it is finished."""


class Lake:
    """Tables and texts below ``url``: a local folder or any fsspec URL (``s3://…``)."""

    def __init__(self, url: str) -> None:
        from fsspec.core import url_to_fs

        self.url = url
        self._fs, self._root = url_to_fs(url)
        self._local = "file" in (
            self._fs.protocol if isinstance(self._fs.protocol, tuple) else (self._fs.protocol,)
        )

    def path(self, *parts: str) -> str:
        """Return the full path of something in the lake, in the file system's own form."""
        for part in parts:
            if not part or part.startswith("/") or ".." in part.split("/"):
                raise ValueError(f"not a name inside the lake: {part!r}")
        return "/".join([self._root.rstrip("/"), *parts])

    def partitions(self, table: str) -> list[str]:
        """Return the partitions that ``table`` has, in order."""
        folder = self.path(table)
        if not self._fs.exists(folder):
            return []
        names = (str(path).rsplit("/", 1)[-1] for path in self._fs.ls(folder, detail=False))
        return sorted(name[:-8] for name in names if name.endswith(".parquet"))

    def read(
        self,
        table: str,
        partition: str,
        row_type: type[Row],
        only: tuple[str, Collection[str]] | None = None,
    ) -> Iterator[Row]:
        """Yield the rows of a partition in the order written; nothing if it is not there.

        Args:
            table: the table's name.
            partition: the partition's key.
            row_type: the struct to read rows as. One with fewer fields than were written reads
                only those columns, which is how a stage avoids decoding the turns.
            only: a column and the values of it that are wanted.
        """
        import pyarrow as pa
        import pyarrow.compute as pc
        import pyarrow.parquet as pq

        path = self.path(table, f"{partition}.parquet")
        if not self._fs.exists(path):
            return
        with self._fs.open(path, "rb") as file:
            parquet = pq.ParquetFile(file)
            columns = [c for c in row_type.__struct_fields__ if c in parquet.schema_arrow.names]
            left_out = _left_out(row_type)
            wanted = None if only is None else pa.array(sorted(only[1]), pa.string())
            for number in range(parquet.num_row_groups):
                group = parquet.metadata.row_group(number)
                rows = max(1, _BYTES_AT_ONCE * group.num_rows // max(1, group.total_byte_size))
                for batch in parquet.iter_batches(
                    batch_size=min(rows, _ROWS_A_GROUP), row_groups=[number], columns=columns
                ):
                    if only is not None:
                        batch = batch.filter(pc.is_in(batch.column(only[0]), value_set=wanted))
                    for item in batch.to_pylist():
                        for name in left_out:
                            if item.get(name) is None:
                                item.pop(name, None)
                        yield msgspec.convert(item, row_type)

    def stamp(self, table: str, partition: str) -> Stamp | None:
        """Return the stamp of a partition; None when it is not there or cannot be read."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = self.path(table, f"{partition}.parquet")
        if not self._fs.exists(path):
            return None
        try:
            with self._fs.open(path, "rb") as file:
                footer = pq.read_metadata(file)
        except (pa.ArrowInvalid, OSError):
            return None
        pairs = footer.metadata or {}
        return Stamp(
            pairs.get(_DIGEST_KEY, b"").decode(),
            pairs.get(_INPUTS_KEY, b"").decode(),
            footer.num_rows,
        )

    def write(
        self,
        table: str,
        partition: str,
        rows: Iterable[Row],
        row_type: type[Row],
        inputs: Callable[[], str] = str,
    ) -> Written:
        """Write a partition whole, in one atomic step; memory is bounded by a group of rows.

        Args:
            table: the table's name.
            partition: the partition's key.
            rows: the rows, in the order that they shall keep.
            row_type: their struct.
            inputs: asked after the last row, for the stamp.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        schema = schema_of(row_type)
        encoder = msgspec.json.Encoder()
        content = hashlib.sha256(schema.to_string().encode())
        count = 0
        path = self.path(table, f"{partition}.parquet")
        handle, scratch = tempfile.mkstemp(suffix=".parquet")
        os.close(handle)
        try:
            with pq.ParquetWriter(scratch, schema, compression="zstd") as writer:
                group: list[Any] = []
                held = 0
                for row in rows:
                    encoded = encoder.encode(row)
                    content.update(encoded)
                    count += 1
                    held += len(encoded)
                    group.append(msgspec.to_builtins(row, builtin_types=(dt.datetime, bytes)))
                    if len(group) >= _ROWS_A_GROUP or held >= _BYTES_A_GROUP:
                        writer.write_table(pa.Table.from_pylist(group, schema=schema))
                        group, held = [], 0
                if group:
                    writer.write_table(pa.Table.from_pylist(group, schema=schema))
                digest = content.hexdigest()
                made_from = inputs()
                writer.add_key_value_metadata(
                    {_DIGEST_KEY.decode(): digest, _INPUTS_KEY.decode(): made_from}
                )
            size = Path(scratch).stat().st_size
            before = self.stamp(table, partition)
            if before == Stamp(digest, made_from, count):
                return Written(path, count, size, False, digest)
            self._put(scratch, path)
            return Written(path, count, size, before is None or before.digest != digest, digest)
        finally:
            Path(scratch).unlink(missing_ok=True)

    def write_bytes(self, name: str, data: bytes) -> Written:
        """Write a file of the lake in one atomic step; leave it alone when it would not change."""
        path = self.path(name)
        digest = hashlib.sha256(data).hexdigest()
        lines = data.count(b"\n")
        if self._fs.exists(path) and self._fs.cat_file(path) == data:
            return Written(path, lines, len(data), False, digest)
        handle, scratch = tempfile.mkstemp()
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            self._put(scratch, path)
        finally:
            Path(scratch).unlink(missing_ok=True)
        return Written(path, lines, len(data), True, digest)

    @contextmanager
    def create(self, name: str, *, durable: bool = True) -> Iterator[Creation]:
        """Write a file of the lake piece by piece, whatever its size, in one atomic step.

        It is put in its place when the block ends well and forgotten when it does not; one that
        would not change is left alone, which ``changed`` then tells.

        Args:
            name: its name in the lake.
            durable: wait until it is on the disk, for what could not be made again at once.
        """
        path = self.path(name)
        target = Path(path)
        if self._local:
            target.parent.mkdir(parents=True, exist_ok=True)
            _sweep(target)
            scratch = target.with_name(f".{target.name}.{uuid4().hex[:8]}")
            handle = os.open(scratch, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        else:
            handle, unplaced = tempfile.mkstemp()
            scratch = Path(unplaced)
        try:
            with os.fdopen(handle, "w+b") as file:
                creation = Creation(name=name, path=path, file=file)
                yield creation
                file.flush()
                creation.changed = creation.wanted and not self._holds(path, file)
                if creation.changed and durable:
                    os.fsync(file.fileno())
            if creation.changed and self._local:
                scratch.replace(target)
            elif creation.changed:
                self._fs.put_file(str(scratch), path)
        finally:
            scratch.unlink(missing_ok=True)

    def _holds(self, path: str, file: typing.IO[bytes]) -> bool:
        """Tell whether a file of the lake has the content of an open one."""
        if not self._fs.exists(path) or self._fs.size(path) != file.tell():
            return False
        file.seek(0)
        with self._fs.open(path, "rb") as standing:
            while block := file.read(1 << 20):
                if standing.read(len(block)) != block:
                    return False
        return True

    def digest_of_file(self, name: str) -> str | None:
        """Return the SHA-256, in hex, of a file of the lake; None when it is not there."""
        path = self.path(name)
        if not self._fs.exists(path):
            return None
        content = hashlib.sha256()
        with self._fs.open(path, "rb") as file:
            while block := file.read(1 << 20):
                content.update(block)
        return content.hexdigest()

    @contextmanager
    def open_bytes(self, name: str) -> Iterator[typing.IO[bytes] | None]:
        """Open a file of the lake to read parts of it; None when it is not there."""
        path = self.path(name)
        if not self._fs.exists(path):
            yield None
            return
        with self._fs.open(path, "rb") as file:
            yield file

    def read_bytes(self, name: str) -> bytes | None:
        """Return a file of the lake, or None when it is not there."""
        path = self.path(name)
        return typing.cast(bytes, self._fs.cat_file(path)) if self._fs.exists(path) else None

    def names(self, folder: str, suffix: str = "") -> list[str]:
        """Return the names of the files at any depth below ``folder``, relative to the lake."""
        top = self.path(folder)
        if not self._fs.exists(top):
            return []
        found = (str(path) for path in self._fs.find(top))
        start = len(self._root.rstrip("/")) + 1
        return sorted(path[start:] for path in found if path.endswith(suffix))

    def remove(self, name: str) -> None:
        """Remove a file of the lake; do nothing when it is not there."""
        path = self.path(name)
        if self._fs.exists(path):
            self._fs.rm_file(path)

    def _put(self, scratch: str, path: str) -> None:
        """Bring a finished local file to its place so that nobody ever sees half of it."""
        if not self._local:
            self._fs.put_file(scratch, path)
            return
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        near = target.with_name(f".{target.name}.{uuid4().hex[:8]}")
        try:
            with Path(scratch).open("rb") as source, near.open("wb") as sink:
                while block := source.read(1 << 20):
                    sink.write(block)
                sink.flush()
                os.fsync(sink.fileno())
            near.replace(target)
        finally:
            near.unlink(missing_ok=True)


def _sweep(target: Path) -> None:
    """Remove what writers of a file left behind that were killed long ago."""
    for leftover in target.parent.glob(f".{glob.escape(target.name)}.????????"):
        with suppress(OSError):
            if time.time() - leftover.stat().st_mtime > _ABANDONED:
                leftover.unlink()


@cache
def schema_of(row_type: type[msgspec.Struct]) -> pa.Schema:
    """Return the Arrow schema of a struct: one column a field, nested structs as structs."""
    import pyarrow as pa

    return pa.schema(list(_fields(row_type)))


@cache
def _left_out(row_type: type[msgspec.Struct]) -> tuple[str, ...]:
    """Return the fields that are not there, rather than null, where a row has no value."""
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
