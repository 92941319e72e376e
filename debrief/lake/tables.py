"""Tables and files of the lake.

A table is a folder, a partition one Parquet file in it. A file is written to the side and brought
to its place in one step, so a reader sees the old rows or the new ones and never half of them; of
two writers the last one wins, whole. A file whose rows would be the same is left alone, so that
nothing downstream looks changed.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import io
import os
import typing
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from debrief.lake.columns import left_out, schema_of
from debrief.lake.object_store import ObjectStore
from debrief.lake.patience import PATIENCE
from debrief.lake.places import LocalPlace, Place

Row = TypeVar("Row", bound=msgspec.Struct)

_ROWS_A_GROUP = 512
_BYTES_A_GROUP = 16_000_000
_BYTES_AT_ONCE = 4_000_000
"""Decoded at once by a reader: as Python objects they take several times as much."""
_FOOTER = 64 << 10
"""Bytes of a partition's end that hold its footer, unless it is an uncommonly large one."""
_A_BLOCK = 8 << 20
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
    """Tables and texts below ``url``: a local folder or any fsspec URL (``s3://…``).

    Args:
        url: where it is.
        patience: seconds that an object store may be away before a request fails.

    Raises:
        ConfigurationError: nothing here speaks to such a URL.
    """

    def __init__(self, url: str, patience: float = PATIENCE) -> None:
        local = "://" not in url or url.startswith(("file://", "local://"))
        self.url = (
            os.path.abspath(url.partition("://")[2] or url)  # noqa: PTH100
            if local
            else url.rstrip("/")
        )
        """The same for the same place, however it was named: two runs meet by it."""
        self._place: Place = LocalPlace(self.url) if local else ObjectStore(url, patience)

    def path(self, *parts: str) -> str:
        """Return the full path of something in the lake, in the file system's own form."""
        for part in parts:
            if not part or part.startswith("/") or ".." in part.split("/"):
                raise ValueError(f"not a name inside the lake: {part!r}")
        return "/".join([self._place.root.rstrip("/"), *parts])

    def partitions(self, table: str) -> list[str]:
        """Return the partitions that ``table`` has, in order."""
        names = self._place.names(self.path(table))
        suffix = ".parquet"
        return sorted(
            name.removesuffix(suffix)
            for name in names
            if name.endswith(suffix) and not name.startswith(".")
        )

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
        with self._place.opened(path) as file:
            if file is None:
                return
            parquet = pq.ParquetFile(file, pre_buffer=True)
            columns = [c for c in row_type.__struct_fields__ if c in parquet.schema_arrow.names]
            absent = left_out(row_type)
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
                        for name in absent:
                            if item.get(name) is None:
                                item.pop(name, None)
                        yield msgspec.convert(item, row_type)

    def stamp(self, table: str, partition: str) -> Stamp | None:
        """Return the stamp of a partition; None when it is not there or cannot be read."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = self.path(table, f"{partition}.parquet")
        end = self._place.tail(path, _FOOTER)
        if end is not None and (size := _footer_size(end)) > len(end):
            end = self._place.tail(path, size)
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
        scratch = self._place.scratch(path)
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
            size = scratch.stat().st_size
            before = self.stamp(table, partition)
            if before == Stamp(digest, made_from, count):
                return Written(path, count, size, False, digest)
            _to_disk(scratch)
            self._place.put(scratch, path)
            return Written(path, count, size, before is None or before.digest != digest, digest)
        finally:
            scratch.unlink(missing_ok=True)

    def write_bytes(self, name: str, data: bytes) -> Written:
        """Write a file of the lake in one atomic step; leave it alone when it would not change."""
        with self.create(name) as creation:
            creation.file.write(data)
        return Written(
            creation.path,
            data.count(b"\n"),
            len(data),
            creation.changed,
            hashlib.sha256(data).hexdigest(),
        )

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
        scratch = self._place.scratch(path)
        try:
            handle = os.open(scratch, os.O_RDWR | os.O_CREAT, 0o666)
            with os.fdopen(handle, "w+b") as file:
                creation = Creation(name=name, path=path, file=file)
                yield creation
                file.flush()
                creation.changed = creation.wanted and not self._holds(path, file)
                if creation.changed and durable:
                    os.fsync(file.fileno())
            if creation.changed:
                self._place.put(scratch, path)
        finally:
            scratch.unlink(missing_ok=True)

    def _holds(self, path: str, file: typing.IO[bytes]) -> bool:
        """Return whether a file of the lake has the content of an open one."""
        size = file.tell()
        with self._place.opened(path) as standing:
            if standing is None or standing.seek(0, os.SEEK_END) != size:
                return False
            standing.seek(0)
            file.seek(0)
            while block := file.read(_A_BLOCK):
                if standing.read(len(block)) != block:
                    return False
        return True

    def digest_of_file(self, name: str) -> str | None:
        """Return the SHA-256, in hex, of a file of the lake; None when it is not there."""
        content = hashlib.sha256()
        with self.open_bytes(name) as file:
            if file is None:
                return None
            while block := file.read(_A_BLOCK):
                content.update(block)
        return content.hexdigest()

    @contextmanager
    def open_bytes(self, name: str) -> Iterator[typing.IO[bytes] | None]:
        """Open a file of the lake to read parts of it; None when it is not there."""
        with self._place.opened(self.path(name)) as file:
            yield file

    def read_bytes(self, name: str) -> bytes | None:
        """Return a file of the lake, or None when it is not there."""
        return self._place.read(self.path(name))

    def names(self, folder: str, suffix: str = "") -> list[str]:
        """Return the names of the files at any depth below ``folder``, relative to the lake."""
        start = len(self._place.root.rstrip("/")) + 1
        found = (path[start:] for path in self._place.find(self.path(folder)))
        return sorted(path for path in found if path.endswith(suffix))

    def remove(self, name: str) -> None:
        """Remove a file of the lake; do nothing when it is not there."""
        self._place.remove(self.path(name))


def _to_disk(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _footer_size(end: bytes) -> int:
    """Return how many bytes at a Parquet file's end its footer takes, by the last eight."""
    return int.from_bytes(end[-8:-4], "little") + 8
