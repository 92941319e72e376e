"""Tables and files of the lake.

A table is a folder, a partition one Parquet file in it. A file is replaced in one step, so a reader
sees the old rows or the new ones and never half of them; of two writers the last one wins. A file
whose content would be the same is not written, so that nothing downstream looks changed.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import io
import os
import types
import typing
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec

from debrief.errors import LakeError
from debrief.lake.files import FileStore, arrow_without_pandas

if typing.TYPE_CHECKING:
    import pyarrow as pa

Row = TypeVar("Row", bound=msgspec.Struct)

_ROWS_A_GROUP = 512
_BYTES_A_GROUP = 16_000_000
_BYTES_AT_ONCE = 4_000_000
"""Decoded at once by a reader; as Python objects they take several times as much."""
_FOOTER = 64 << 10
"""Bytes at a file's end that hold its footer, unless it is unusually large."""
_DIGEST_KEY = b"debrief.digest"
_INPUTS_KEY = b"debrief.inputs"


class Stamp(msgspec.Struct, frozen=True):
    """What a partition's file says about it without its rows being read."""

    digest: str
    """SHA-256 of its rows, in hex."""
    inputs: str
    """Digest of what the rows were made from, as the writer gave it; empty: make them again."""
    rows: int


class Written(msgspec.Struct, frozen=True):
    """The result of a write."""

    path: str
    changed: bool


class Creation(msgspec.Struct):
    """A file of the lake that is being written."""

    name: str
    path: str
    file: typing.IO[bytes]
    keep: bool = True
    """Set it to False to drop the file instead of storing it."""
    changed: bool = False
    """Set when the file is finished: whether its content is new."""


class Lake:
    """Tables and files below ``url``: a local folder or any fsspec URL (``s3://…``).

    Raises:
        ConfigurationError: no installed file system has such URLs.
    """

    def __init__(self, url: str) -> None:
        self._files = FileStore(url)
        self.url = self._files.url
        """The same for the same location, however it was written."""

    def path(self, *parts: str) -> str:
        """Return the full path of something in the lake, in the file system's own form."""
        for part in parts:
            if not part or part.startswith("/") or ".." in part.split("/"):
                raise ValueError(f"not a name inside the lake: {part!r}")
        return "/".join([self._files.root, *parts])

    def partitions(self, table: str) -> list[str]:
        """Return the partitions of ``table``, in order."""
        return [
            name.removeprefix(f"{table}/").removesuffix(".parquet")
            for name in self.names(table, ".parquet")
        ]

    def versions(self, table: str) -> dict[str, str]:
        """Return what the file system says of each partition's file: it differs after a write.

        One listing, where stamps are a read of each file.
        """
        start = len(self.path(table)) + 1
        return {
            path[start:].removesuffix(".parquet"): "-".join(
                str(info.get(name, "")) for name in ("ETag", "mtime", "LastModified", "ino", "size")
            )
            for path, info in sorted(self._files.find(self.path(table)).items())
            if path.endswith(".parquet")
        }

    def read(
        self,
        table: str,
        partition: str,
        row_type: type[Row],
        only: tuple[str, Collection[str]] | None = None,
    ) -> Iterator[Row]:
        """Yield the rows of a partition in the order written; nothing if it does not exist.

        Args:
            table: the table's name.
            partition: the partition's key.
            row_type: the struct to read rows as. One with fewer fields than were written reads
                only those columns, and only those fields of nested structs, which is how a stage
                avoids decoding the turns.
            only: a column, and the values of the rows to read.

        Raises:
            LakeError: the file is damaged.
        """
        import pyarrow.parquet as pq

        path = self.path(table, f"{partition}.parquet")
        with self._files.opened(path) as file:
            if file is None:
                return
            with _damage_explained(path):
                parquet = pq.ParquetFile(file, pre_buffer=not self._files.is_local)
            columns, unset = columns_of(row_type), unset_fields(row_type)
            for number in range(parquet.num_row_groups):
                group = parquet.metadata.row_group(number)
                rows = max(1, _BYTES_AT_ONCE * group.num_rows // max(1, group.total_byte_size))
                batches = parquet.iter_batches(
                    batch_size=min(rows, _ROWS_A_GROUP),
                    row_groups=[number],
                    columns=columns,
                    use_threads=False,
                )
                while True:
                    with _damage_explained(path):
                        batch = next(batches, None)
                    if batch is None:
                        break
                    for item in _all_rows(batch) if only is None else _rows_with(batch, *only):
                        for name in unset:
                            if item.get(name) is None:
                                item.pop(name, None)
                        yield msgspec.convert(item, row_type)

    def rows(
        self, table: str, row_type: type[Row], partitions: Iterable[str] | None = None
    ) -> Iterator[Row]:
        """Yield the rows of some partitions, or of all, one partition after the other."""
        for partition in self.partitions(table) if partitions is None else partitions:
            yield from self.read(table, partition, row_type)

    def stamp(self, table: str, partition: str) -> Stamp | None:
        """Return the stamp of a partition; None if it does not exist or is damaged."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = self.path(table, f"{partition}.parquet")
        end = self._files.tail(path, _FOOTER)
        if end is not None and (size := _footer_size(end)) > len(end):
            end = self._files.tail(path, size)
        if end is None:
            return None
        try:
            footer = pq.read_metadata(io.BytesIO(end))
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
            rows: the rows, in order.
            row_type: their struct.
            inputs: called after the last row; returns the stamp's ``inputs``.

        Raises:
            LakeError: there is no room for it.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        schema = schema_of(row_type)
        encoder = msgspec.json.Encoder()
        content = hashlib.sha256(schema.to_string().encode())
        count = 0
        path = self.path(table, f"{partition}.parquet")
        with self._files.writing(path) as scratch:
            with pq.ParquetWriter(scratch, schema, compression="zstd") as writer:
                group: list[Any] = []
                size = 0
                for row in rows:
                    encoded = encoder.encode(row)
                    content.update(encoded)
                    count += 1
                    size += len(encoded)
                    group.append(msgspec.to_builtins(row, builtin_types=(dt.datetime, bytes)))
                    if len(group) >= _ROWS_A_GROUP or size >= _BYTES_A_GROUP:
                        writer.write_table(pa.Table.from_pylist(group, schema=schema))
                        group, size = [], 0
                if group:
                    writer.write_table(pa.Table.from_pylist(group, schema=schema))
                digest = content.hexdigest()
                made_from = inputs()
                writer.add_key_value_metadata(
                    {_DIGEST_KEY.decode(): digest, _INPUTS_KEY.decode(): made_from}
                )
            before = self.stamp(table, partition)
            if before == Stamp(digest, made_from, count):
                return Written(path, False)
            with scratch.open("rb") as file:
                os.fsync(file.fileno())
            self._files.put(scratch, path)
            return Written(path, before is None or before.digest != digest)

    def write_bytes(self, name: str, data: bytes) -> Written:
        """Write a file of the lake in one atomic step, unless it has this content already."""
        with self.create(name) as creation:
            creation.file.write(data)
        return Written(creation.path, creation.changed)

    @contextmanager
    def create(self, name: str, *, durable: bool = True) -> Iterator[Creation]:
        """Write a file of the lake piece by piece, whatever its size, in one atomic step.

        It is stored when the block ends without an error, unless it has this content already.

        Args:
            name: its name in the lake.
            durable: force it to the disk; False for what can be made again at once.
        """
        path = self.path(name)
        with self._files.writing(path) as scratch:
            handle = os.open(scratch, os.O_RDWR | os.O_CREAT, 0o666)
            with os.fdopen(handle, "w+b") as file:
                creation = Creation(name=name, path=path, file=file)
                yield creation
                file.flush()
                file.seek(0)
                creation.changed = creation.keep and _digest(file) != self.digest_of_file(name)
                if creation.changed and durable:
                    os.fsync(file.fileno())
            if creation.changed:
                self._files.put(scratch, path)

    def digest_of_file(self, name: str) -> str | None:
        """Return the SHA-256, in hex, of a file of the lake; None if it does not exist."""
        with self.open_bytes(name) as file:
            return None if file is None else _digest(file)

    def open_bytes(self, name: str) -> AbstractContextManager[typing.IO[bytes] | None]:
        """Open a file of the lake to read parts of it; None if it does not exist."""
        return self._files.opened(self.path(name))

    def read_bytes(self, name: str) -> bytes | None:
        """Return a file of the lake; None if it does not exist."""
        with self.open_bytes(name) as file:
            return None if file is None else file.read()

    def names(self, folder: str = "", suffix: str = "") -> list[str]:
        """Return the names of the files at any depth below ``folder``, relative to the lake."""
        start = len(self._files.root) + 1
        names = (path[start:] for path in self._files.find(self.path(*filter(None, [folder]))))
        return sorted(name for name in names if name.endswith(suffix))

    def remove(self, name: str) -> None:
        """Remove a file of the lake; do nothing if it does not exist."""
        self._files.remove(self.path(name))


def _rows_with(batch: pa.RecordBatch, column: str, values: Collection[str]) -> Iterator[Any]:
    """Yield the rows with one of some values, decoded one at a time."""
    for number, value in enumerate(batch.column(column).to_pylist()):
        if value in values:
            yield from _all_rows(batch.slice(number, 1))


def _all_rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = batch.to_pylist(maps_as_pydicts="strict")
    return rows


@contextmanager
def _damage_explained(path: str) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowInvalid, OSError) as error:
        if getattr(error, "errno", None) or error.__cause__:
            raise  # the file system's error, not the format's
        raise LakeError(
            path, f"is damaged: {error}", "Remove the file; the next run makes it again."
        ) from error


def _digest(file: typing.IO[bytes]) -> str:
    return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


def _footer_size(end: bytes) -> int:
    """Return how many bytes at a Parquet file's end its footer takes, by the last eight."""
    return int.from_bytes(end[-8:-4], "little") + 8


@cache
def schema_of(row_type: type[msgspec.Struct]) -> pa.Schema:
    """Return the Arrow schema of a struct: one column a field, nested structs as structs."""
    return arrow_without_pandas().schema(list(_fields(row_type)))


@cache
def columns_of(row_type: type[msgspec.Struct]) -> list[str]:
    """Return the paths of a struct's columns in a Parquet file, those of nested structs too."""
    return [path for field in schema_of(row_type) for path in _paths(field.name, field.type)]


def _paths(name: str, kind: pa.DataType) -> Iterator[str]:
    import pyarrow as pa

    if pa.types.is_list(kind):
        yield from _paths(f"{name}.list.element", kind.value_type)
    elif pa.types.is_struct(kind):
        for field in kind:
            yield from _paths(f"{name}.{field.name}", field.type)
    elif pa.types.is_map(kind):
        yield from (f"{name}.key_value.key", f"{name}.key_value.value")
    else:
        yield name


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
        if all(get_origin(kind) is Literal for kind in args):
            return _arrow_type(args[0])
        if len(kinds) != 1 or len(kinds) == len(args):
            raise TypeError(f"a column cannot hold {hint}")
        return _arrow_type(kinds[0])[0], True
    if origin is Literal:
        return _arrow_type(type(args[0]))
    if origin in (list, tuple):
        inner, nullable = _arrow_type(args[0])
        return pa.list_(pa.field("item", inner, nullable=nullable)), False
    if origin is dict:
        value, nullable = _arrow_type(args[1])
        named = pa.field("value", value, nullable=nullable)
        return pa.map_(_arrow_type(args[0])[0], named), False
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
