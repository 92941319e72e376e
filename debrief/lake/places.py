"""Where a lake's files are: a local folder, or an object store."""

from __future__ import annotations

import glob
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, cast
from uuid import uuid4

ABANDONED = 3_600.0
"""Seconds after which nobody can still be writing to an unfinished file."""


class Place(ABC):
    """Whole files by their full paths; none of them is ever seen half written."""

    root: str
    """The lake's own path, in the place's form."""

    @abstractmethod
    def open(self, path: str) -> IO[bytes] | None:
        """Open a file to read in it; None when it is not there."""

    @abstractmethod
    def tail(self, path: str, size: int) -> bytes | None:
        """Return the last ``size`` bytes of a file, or all it has; None when it is not there."""

    @abstractmethod
    def scratch(self, path: str) -> Path:
        """Return where to write what is to be put at ``path``: a file of this machine."""

    @abstractmethod
    def put(self, scratch: Path, path: str) -> None:
        """Bring a finished scratch file to its place, in one atomic step."""

    @abstractmethod
    def names(self, folder: str) -> list[str]:
        """Return the names of the files of a folder; none when it is not there."""

    @abstractmethod
    def find(self, folder: str) -> list[str]:
        """Return the paths of the files at any depth below a folder."""

    @abstractmethod
    def remove(self, path: str) -> None:
        """Remove a file; do nothing when it is not there."""

    def read(self, path: str) -> bytes | None:
        """Return a file; None when it is not there."""
        with self.opened(path) as file:
            return None if file is None else file.read()

    @contextmanager
    def opened(self, path: str) -> Iterator[IO[bytes] | None]:
        """Open a file as ``open`` does, and close it in the end."""
        file = self.open(path)
        try:
            yield file
        finally:
            if file is not None:
                file.close()


class LocalPlace(Place):
    """A folder of this machine: files are written beside their place and renamed."""

    def __init__(self, root: str) -> None:
        self.root = root

    def open(self, path: str) -> IO[bytes] | None:
        """Open a file to read in it; None when it is not there."""
        try:
            return cast(IO[bytes], open(path, "rb"))  # noqa: PTH123
        except (FileNotFoundError, NotADirectoryError):
            return None

    def tail(self, path: str, size: int) -> bytes | None:
        """Return the last bytes of a file; None when it is not there."""
        with self.opened(path) as file:
            if file is None:
                return None
            file.seek(max(0, file.seek(0, os.SEEK_END) - size))
            return file.read()

    def scratch(self, path: str) -> Path:
        """Return a hidden file beside ``path``, and sweep up what killed writers left there."""
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        for leftover in target.parent.glob(f".{glob.escape(target.name)}.????????"):
            with suppress(OSError):
                if time.time() - leftover.stat().st_mtime > ABANDONED:
                    leftover.unlink()
        return target.with_name(f".{target.name}.{uuid4().hex[:8]}")

    def put(self, scratch: Path, path: str) -> None:
        """Rename."""
        scratch.replace(path)

    def names(self, folder: str) -> list[str]:
        """Return the names of the files of a folder; none when it is not there."""
        try:
            return os.listdir(folder)  # noqa: PTH208
        except FileNotFoundError:
            return []

    def find(self, folder: str) -> list[str]:
        """Return the paths of the files at any depth below a folder; not what is unfinished."""
        return [
            os.path.join(place, name)  # noqa: PTH118
            for place, _, names in os.walk(folder)
            for name in names
            if not name.startswith(".")
        ]

    def remove(self, path: str) -> None:
        """Remove a file; do nothing when it is not there."""
        Path(path).unlink(missing_ok=True)
