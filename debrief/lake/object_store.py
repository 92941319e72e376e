"""An object store as the place of a lake: S3's protocol, or another that fsspec speaks.

A request costs more than the bytes of a small file do, so nothing is asked twice: whether an
object is there is what reading it tells, and one read brings a small object whole. Listings are
never remembered, since other workers write too.
"""

from __future__ import annotations

import errno
import io
import os
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, Any, cast

from debrief.errors import ConfigurationError
from debrief.lake.patience import PATIENCE, Patience
from debrief.lake.places import ABANDONED, Place

_SCRATCH = "debrief-scratch-"
_AT_ONCE = 1 << 20
"""Bytes of an object that the first request brings."""
_A_READ = 1 << 20
"""Bytes that a small read of a large object brings."""


class ObjectStore(Place):
    """Objects below a URL.

    Args:
        url: such as ``s3://bucket/prefix``.
        patience: seconds that the store may be away.

    Raises:
        ConfigurationError: there is no client for such URLs.
    """

    def __init__(self, url: str, patience: float = PATIENCE) -> None:
        from fsspec.core import url_to_fs

        try:
            self._fs, self.root = url_to_fs(url, use_listings_cache=False, **_options(url))
        except ImportError as error:
            raise ConfigurationError(
                url,
                f"no client for it is installed ({error})",
                "From a checkout: pip install -r deploy/locks/team.lock.",
            ) from error
        except ValueError as error:
            raise ConfigurationError(
                url, f"is no place that is known ({error})", "Name a folder, s3://… or gs://…."
            ) from error
        self._patiently = Patience(url, patience)

    def open(self, path: str) -> IO[bytes] | None:
        """Open an object: one request for a small one, ranges of one version for a large one."""
        head = self._range(path, 0, _AT_ONCE)
        if head is None:
            return None
        if len(head) < _AT_ONCE:
            return io.BytesIO(head)
        try:
            inner = self._patiently(self._fs.open, path, "rb", cache_type="none")
        except FileNotFoundError:
            return None
        return cast(IO[bytes], io.BufferedReader(_Ranges(inner, self._patiently), _A_READ))

    def tail(self, path: str, size: int) -> bytes | None:
        """Return the last bytes of an object; None when it is not there."""
        return self._range(path, -size, None)

    def scratch(self, path: str) -> Path:
        """Return a temporary file; what killed writers left is swept up once a process."""
        _sweep(tempfile.gettempdir(), os.getpid())
        handle, name = tempfile.mkstemp(prefix=_SCRATCH, suffix=Path(path).suffix)
        os.close(handle)
        return Path(name)

    def put(self, scratch: Path, path: str) -> None:
        """Upload: an object appears whole, in parts uploaded side by side when it is large."""
        self._patiently(self._fs.put_file, str(scratch), path)

    def names(self, folder: str) -> list[str]:
        """Return the names of the objects right below a prefix."""
        try:
            found = self._patiently(self._fs.ls, folder, detail=False)
        except FileNotFoundError:
            return []
        return [str(path).rstrip("/").rpartition("/")[2] for path in found]

    def find(self, folder: str) -> list[str]:
        """Return the paths of the objects at any depth below a prefix."""
        return list(self.stamps(folder))

    def stamps(self, folder: str) -> dict[str, dict[str, Any]]:
        """Return what the store tells of each object below a prefix, by path."""
        try:
            found = self._patiently(self._fs.find, folder, detail=True)
        except FileNotFoundError:
            return {}
        return {str(path): told for path, told in found.items() if told.get("type") == "file"}

    def fetch(self, path: str, to: Path) -> None:
        """Bring an object to this machine."""
        self._patiently(self._fs.get_file, path, str(to))

    def remove(self, path: str) -> None:
        """Remove an object; do nothing when it is not there."""
        try:
            self._patiently(self._fs.rm_file, path)
        except FileNotFoundError:
            return

    def _range(self, path: str, start: int, end: int | None) -> bytes | None:
        try:
            return self._patiently(self._cat, path, start, end)
        except FileNotFoundError:
            return None

    def _cat(self, path: str, start: int, end: int | None) -> bytes:
        try:
            data: bytes = self._fs.cat_file(path, start=start, end=end)
        except OSError as error:
            if error.errno == errno.EINVAL and _is_empty_range(error):
                return b""
            raise
        return data


@cache
def _sweep(folder: str, _process: int) -> None:
    for leftover in Path(folder).glob(f"{_SCRATCH}*"):
        with suppress(OSError):
            if time.time() - leftover.stat().st_mtime > ABANDONED:
                leftover.unlink()


def _options(url: str) -> dict[str, Any]:
    """Keep a client from waiting by itself: ``Patience`` does, and tells of it."""
    if not url.startswith(("s3://", "s3a://")):
        return {}
    return {"config_kwargs": {"retries": {"max_attempts": 1}}}


class _Ranges(io.RawIOBase):
    """A large object that is read in ranges; it fails when another version takes its place."""

    def __init__(self, inner: IO[bytes], patiently: Patience) -> None:
        self._inner = inner
        self._patiently = patiently
        self._at = 0
        self._size = inner.seek(0, io.SEEK_END)

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place; nothing is asked for it."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def tell(self) -> int:
        """Return the place."""
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Ask for as much as the buffer holds."""
        wanted = min(len(buffer), max(0, self._size - self._at))
        data = self._patiently(self._ask, wanted) if wanted else b""
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def close(self) -> None:
        """Close the object too."""
        if not self.closed:
            self._inner.close()
        super().close()

    def _ask(self, size: int) -> bytes:
        self._inner.seek(self._at)
        return self._inner.read(size)


def _is_empty_range(error: OSError) -> bool:
    """Return whether a range was refused because the object is empty."""
    response = getattr(error.__cause__, "response", None) or {}
    return response.get("Error", {}).get("Code") in ("InvalidRange", "416")
