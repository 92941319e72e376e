"""Tables and files of the lake.

A table is a folder, a partition one file in it (``debrief.lake.rows``). A file is replaced in one
step, so a reader sees the old rows or the new ones and never half of them; of two writers the last
one wins. A file whose content would be the same is not written, so that nothing downstream looks
changed.
"""

from __future__ import annotations

import hashlib
import logging
import typing
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import islice

import msgspec

from debrief.errors import LakeError
from debrief.lake import former
from debrief.lake.files import FileStore
from debrief.lake.frames import chosen_weeks, declaration_of, declared, frame_of
from debrief.lake.rows import (
    STAMP_SIZE,
    SUFFIX,
    DamagedError,
    Row,
    Stamp,
    damage_of,
    read_rows,
    read_stamp,
    readable_rows,
    write_rows,
)
from debrief.settings import load_settings

if typing.TYPE_CHECKING:
    import pandas as pd

_log = logging.getLogger("debrief.lake")
SUFFIXES = (SUFFIX, former.SUFFIX)
"""Of the files of tables."""
DAMAGED_SUFFIX = ".damaged"
"""Ends the name of a damaged file that was kept when its partition was written again."""
ORIGINALS = frozenset({"raw_sessions", "labels", "held_decisions", "prompt_names"})
"""Tables that no run can make again: the rows of a damaged file that can be read are used, and the
file itself is kept."""
TOMBSTONES = "forgotten"
"""The table whose damage stops everything: without its rows, forgotten sessions would come back."""
_RESTORE = "Restore it from a backup"


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
    """Tables and files below one URL.

    Args:
        url: a local folder or any fsspec URL (``s3://…``). Default: the lake of the settings.

    Raises:
        ConfigurationError: no installed file system has such URLs.
    """

    def __init__(self, url: str | None = None) -> None:
        self._files = FileStore(load_settings().lake if url is None else url)
        self.url = self._files.url
        """The same for the same location, however it was written."""
        self._former_tables: dict[str, frozenset[str]] = {}
        self.damage: dict[str, str] = {}
        """A warning for each damaged file of originals that was read, by its path."""

    def path(self, *parts: str) -> str:
        """Return the full path of something in the lake, in the file system's own form."""
        for part in parts:
            if not part or part.startswith("/") or ".." in part.split("/"):
                raise ValueError(f"not a name inside the lake: {part!r}")
        return "/".join([self._files.root, *parts])

    def partitions(self, table: str) -> list[str]:
        """Return the partitions of ``table``, in order."""
        start = len(table) + 1
        return sorted({_bare(name)[start:] for name in self.names(table, SUFFIXES)})

    def versions(self, table: str) -> dict[str, str]:
        """Return what the file system says of each partition's file: it differs after a write.

        One listing, where stamps are a read of each file.
        """
        start = len(self.path(table)) + 1
        return {
            _bare(path)[start:]: "-".join(
                str(info.get(name, "")) for name in ("ETag", "mtime", "LastModified", "ino", "size")
            )
            for path, info in sorted(self._files.find(self.path(table)).items(), reverse=True)
            if path.endswith(SUFFIXES)
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
            row_type: the struct to read rows as. One with fewer fields than were written leaves
                the others where they are: a head costs a third of a session.
            only: a field of texts, and its values in the rows to read.

        Raises:
            LakeError: the file is damaged, and a run can make it again. Of a damaged file of
                ``ORIGINALS``, the rows that can be read are yielded; ``damage`` says so.
        """
        path = self._path_of(table, partition)
        try:
            if (data := self._files.read(path)) is not None:
                if table in ORIGINALS:
                    yield from self._original_rows(path, data, row_type, only)
                else:
                    yield from read_rows(data, row_type, only)
            elif data := self._former(table, partition):
                path = self.path(table, partition + former.SUFFIX)
                rows = former.read_rows(data, row_type)
                yield from _chosen(rows, only)
        except DamagedError as error:
            move = "Remove the file; the next run makes it again."
            if table == TOMBSTONES:
                move = f"{_RESTORE}: without it, forgotten sessions are read again."
            raise LakeError(path, f"is damaged: {error}", move) from error

    def _original_rows(
        self,
        path: str,
        data: bytes,
        row_type: type[Row],
        only: tuple[str, Collection[str]] | None,
    ) -> Iterator[Row]:
        """Yield the rows of a file of ``ORIGINALS``, as far as they can be read."""
        yielded = 0
        try:
            for row in read_rows(data, row_type, only):
                yield row
                yielded += 1
            self.damage.pop(path, None)
        except (DamagedError, msgspec.DecodeError):
            damage = damage_of(data)
            if not damage:  # rows of another version
                raise
            rows = list(readable_rows(data, row_type))
            stamp = read_stamp(data[-STAMP_SIZE:])
            left = f"{len(rows)} of {stamp.rows} rows" if stamp else f"{len(rows)} rows"
            warning = f"{path} is damaged ({damage}): {left} can be read and are used. {_RESTORE}."
            if self.damage.get(path) != warning:
                self.damage[path] = warning
                _log.warning("%s", warning)
            yield from islice(_chosen(rows, only), yielded, None)

    def rows(
        self, table: str, row_type: type[Row], partitions: Iterable[str] | None = None
    ) -> Iterator[Row]:
        """Yield the rows of some partitions, or of all, one partition after the other."""
        for partition in self.partitions(table) if partitions is None else partitions:
            yield from self.read(table, partition, row_type)

    def tables(self) -> list[str]:
        """Return the names of the tables that this lake has, in order."""
        found = {name.partition("/")[0] for name in self.names(suffix=SUFFIXES)}
        return sorted(found & declared().keys())

    def frame(self, table: str, weeks: str = "") -> pd.DataFrame:
        """Return a table as a pandas frame: a row a row, a column a field.

        The first column is the row's ``week``, or its ``partition`` where a table is not made week
        by week. Fields of a struct are columns of their own (``verdict.verdict``), tuples are
        lists, times are UTC. A table without rows gives a frame with the same columns.

        Args:
            table: the table's name.
            weeks: a week or a range of them, as ``2026-10-05..2026-11-02``; either end may be left
                out. Empty: all.

        Raises:
            InputError: there is no such table, or it has no such weeks; says which there are.
            LakeError: a file is damaged.
        """
        known = declaration_of(table)
        keys = chosen_weeks(self.partitions(table), table, weeks)
        rows = ((key, row) for key in keys for row in self.read(table, key, known.rows))
        return frame_of(rows, known)

    def stamp(self, table: str, partition: str) -> Stamp | None:
        """Return the stamp of a partition; None if it does not exist or is damaged."""
        end = self._files.tail(self._path_of(table, partition), STAMP_SIZE)
        if end is not None:
            return read_stamp(end)
        end = self._former(table, partition, former.FOOTER)
        return former.read_stamp(end) if end else None

    def write(
        self,
        table: str,
        partition: str,
        rows: Iterable[Row],
        row_type: type[Row],
        inputs: Callable[[], str] = str,
    ) -> Written:
        """Write a partition whole, in one atomic step; memory is bounded by the largest row.

        Args:
            table: the table's name.
            partition: the partition's key.
            rows: the rows, in order.
            row_type: their struct.
            inputs: called after the last row; returns the stamp's ``inputs``.

        Raises:
            LakeError: there is no room for it.
        """
        path = self._path_of(table, partition)
        with suppress(_NotNewError), self._files.writing(path) as file:
            stamp = write_rows(file, rows, inputs)
            before = self.stamp(table, partition)
            if before == stamp:
                raise _NotNewError
            if table in ORIGINALS:
                self._keep_damaged(path)
        if before == stamp:
            return Written(path, False)
        if partition in self._former_partitions(table):
            self._files.remove(self.path(table, partition + former.SUFFIX))
        return Written(path, before is None or before.digest != stamp.digest)

    def _keep_damaged(self, path: str) -> None:
        """Copy a file that is about to be replaced beside it, if it is damaged."""
        data = self._files.read(path)
        if data is None or not damage_of(data):
            return
        kept = f"{path}.{hashlib.sha256(data).hexdigest()[:8]}{DAMAGED_SUFFIX}"
        with self._files.writing(kept) as file:
            file.write(data)
        self.damage.pop(path, None)
        _log.warning("%s: the damaged file was kept as %s", path, kept)

    def drop(self, table: str, partition: str) -> None:
        """Remove a partition; do nothing if it does not exist."""
        for suffix in SUFFIXES:
            self._files.remove(self.path(table, partition + suffix))

    def _path_of(self, table: str, partition: str) -> str:
        return self.path(table, partition + SUFFIX)

    def _former(self, table: str, partition: str, size: int | None = None) -> bytes | None:
        """Return the file, or its last bytes, of a partition that an earlier version wrote."""
        if partition not in self._former_partitions(table):
            return None
        path = self.path(table, partition + former.SUFFIX)
        return self._files.read(path) if size is None else self._files.tail(path, size)

    def _former_partitions(self, table: str) -> frozenset[str]:
        """Return which partitions of a table an earlier version wrote: there are never more."""
        if table not in self._former_tables:
            start, names = len(table) + 1, self.names(table, former.SUFFIX)
            self._former_tables[table] = frozenset(_bare(name)[start:] for name in names)
        return self._former_tables[table]

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
        with suppress(_NotNewError), self._files.writing(path, durable=durable) as file:
            creation = Creation(name=name, path=path, file=file)
            yield creation
            file.flush()
            file.seek(0)
            if not creation.keep or _digest(file) == self.digest_of_file(name):
                raise _NotNewError
            creation.changed = True

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

    def names(self, folder: str = "", suffix: str | tuple[str, ...] = "") -> list[str]:
        """Return the names of the files at any depth below ``folder``, relative to the lake."""
        start = len(self._files.root) + 1
        names = (path[start:] for path in self._files.find(self.path(*filter(None, [folder]))))
        return sorted(name for name in names if name.endswith(suffix))

    def remove(self, name: str) -> None:
        """Remove a file of the lake; do nothing if it does not exist."""
        self._files.remove(self.path(name))


def _chosen(rows: Iterable[Row], only: tuple[str, Collection[str]] | None) -> Iterator[Row]:
    return (row for row in rows if only is None or getattr(row, only[0]) in only[1])


class _NotNewError(Exception):
    """A file that is being written has the content that is there."""


def _bare(name: str) -> str:
    """Return the name of a table's file without its suffix."""
    return name.removesuffix(SUFFIX).removesuffix(former.SUFFIX)


def _digest(file: typing.IO[bytes]) -> str:
    return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
