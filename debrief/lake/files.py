"""The files of a lake, in a local folder or in an object store, by way of fsspec.

No reader ever sees half a file: a local one is written beside its target and renamed, an object is
uploaded whole. A store that is away is retried by its own client, for about three minutes.
"""

from __future__ import annotations

import errno
import io
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO, Any, cast

from debrief.errors import ConfigurationError, LakeError
from debrief.files import atomic, make_private, shared_with_group
from debrief.settings import location

S3_OPTIONS = {"config_kwargs": {"retries": {"mode": "standard", "total_max_attempts": 18}}}
"""Waits between attempts are random, up to 20 s: about three minutes in all."""
_SMALL = 4 << 20
"""Bytes: an object up to this is read whole."""
_STORES = {"aiobotocore", "aiohttp", "botocore", "gcsfs", "google", "s3fs"}
"""Packages whose errors are those of an object store."""
_ABSENT = (FileNotFoundError, NotADirectoryError)
_CREDENTIALS = "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give the machine a role."
_RIGHTS = "Check the key, and its rights to list, read, write and delete there."
_NO_ROOM = {
    errno.ENOSPC: "no space is left on the device",
    errno.EDQUOT: "the quota is used up",
    errno.EFBIG: "the file would be larger than is allowed",
}
_MAKE_ROOM = "Make room; what was there before stays, and the next run goes on from here."


class FileStore:
    """Whole files below ``url``, by their full paths.

    Args:
        url: a local folder or any fsspec URL, such as ``s3://bucket/prefix``.

    Raises:
        ConfigurationError: no installed file system has such URLs.
    """

    def __init__(self, url: str) -> None:
        from fsspec.core import url_to_fs

        try:
            location(url)
        except ValueError as error:
            raise ConfigurationError(
                "the place", str(error), "Name a folder, s3://…, gs://… or az://…."
            ) from None
        self.is_local = "://" not in url or url.startswith("file://")
        if self.is_local:
            url = os.path.abspath(os.path.expanduser(url.partition("://")[2] or url))  # noqa: PTH100, PTH111
        self.url = url.rstrip("/")
        """The same for the same location, however it was written."""
        options = S3_OPTIONS if url.startswith("s3://") else {}
        try:
            self._fs, root = url_to_fs(self.url, use_listings_cache=False, **options)
        except ImportError as error:
            raise ConfigurationError(
                url,
                f"no client for it is installed ({error})",
                "From a checkout: pip install -r deploy/locks/team.lock.",
            ) from error
        self.root = root.rstrip("/")
        """The URL without its protocol: where all paths start."""

    @contextmanager
    def opened(self, path: str) -> Iterator[IO[bytes] | None]:
        """Open a file for reading; None if it does not exist. Of an object, one version is read."""
        file = None
        with suppress(*_ABSENT), self._explained():
            file = self._open(path)
        with self._explained(), file or nullcontext():
            yield file

    def _open(self, path: str) -> IO[bytes]:
        """Open a file: a small object by one request, a large one by ranges of one version."""
        if not self.is_local:
            try:
                start = self._fs.cat_file(path, start=0, end=_SMALL)
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise
                start = b""  # no range of an empty object is valid
            if len(start) < _SMALL:
                return io.BytesIO(start)
        return cast(IO[bytes], self._fs.open(path, "rb", block_size=_SMALL))

    def read(self, path: str) -> bytes | None:
        """Return a file; None if it does not exist."""
        with suppress(*_ABSENT), self._explained():
            return cast(bytes, self._fs.cat_file(path))
        return None

    def tail(self, path: str, size: int) -> bytes | None:
        """Return the last ``size`` bytes of a file, or all it has; None if it does not exist."""
        with suppress(*_ABSENT), self._explained():
            return cast(bytes, self._fs.cat_file(path, start=-size))
        return None

    @contextmanager
    def writing(self, path: str, *, durable: bool = True) -> Iterator[IO[bytes]]:
        """Yield a new file, which is at ``path`` when the block has ended without an error.

        Args:
            path: its full path; the folders above it are made.
            durable: force a local file to the disk.

        Raises:
            LakeError: there is no room for it, or the store is away.
        """
        try:
            if self.is_local:
                folder = Path(path).parent
                make_private(folder)
                with atomic(Path(path), durable=durable) as file:
                    if shared_with_group(folder):
                        os.fchmod(file.fileno(), 0o660)
                    yield file
            else:
                with tempfile.NamedTemporaryFile(prefix="debrief-") as file:
                    yield cast(IO[bytes], file)
                    file.flush()
                    with self._explained():
                        self._fs.put_file(file.name, path)
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            reason = f"cannot be written: {_NO_ROOM[error.errno]}"
            raise LakeError(str(error.filename or path), reason, _MAKE_ROOM) from error

    def find(self, folder: str) -> dict[str, dict[str, Any]]:
        """Return fsspec's description of each file at any depth below a folder, by path."""
        with suppress(*_ABSENT), self._explained():
            files = self._fs.find(folder, detail=True).items()
            return {path: info for path, info in files if not Path(path).name.startswith(".")}
        return {}

    def remove(self, path: str) -> None:
        """Remove a file; do nothing if it does not exist."""
        with suppress(*_ABSENT), self._explained():
            self._fs.rm_file(path)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Raise errors of an object store's client as errors with a next move.

        Raises:
            FileNotFoundError: the file does not exist.
            ConfigurationError: the bucket, the credentials or the rights are missing.
            LakeError: the store stayed away, or refuses.
        """
        try:
            yield
        except Exception as error:
            packages = {type(e).__module__.partition(".")[0] for e in (error, error.__cause__)}
            response = getattr(error.__cause__, "response", None) or {}
            reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
            if response.get("Error", {}).get("Code") == "NoSuchBucket":
                what, move = "the bucket does not exist", "Create it, or name another one."
            elif isinstance(error, FileNotFoundError) or not packages & _STORES:
                raise
            elif type(error).__name__ in ("NoCredentialsError", "PartialCredentialsError"):
                what, move = "no credentials were found for it", _CREDENTIALS
            elif isinstance(error, PermissionError):
                what, move = f"access was denied ({reason})", _RIGHTS
            elif type(error).__name__ == "FileExpired":
                what, move = "an object was replaced while it was read", "Run the same again."
                raise LakeError(self.url, what, move) from error
            else:
                move = "What was finished is kept; run the same again once it answers."
                raise LakeError(self.url, reason, move) from error
            raise ConfigurationError(self.url, what, move) from error
