"""A disk without room, told in words."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from debrief.errors import DebriefError
from debrief.lake import Lake

_FULL = {
    errno.ENOSPC: "no space is left on the device",
    errno.EDQUOT: "the quota is used up",
    errno.EFBIG: "the file would be larger than is allowed",
}


class DiskFullError(DebriefError):
    """There is no room for a file."""


@contextmanager
def room(lake: Lake, table: str, partition: str) -> Iterator[None]:
    """Say of which partition it was that there was no room for.

    Raises:
        DiskFullError: there was none.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        file = error.filename or f"{lake.url}/{table}/{partition}.parquet"
        raise DiskFullError(
            str(file),
            f"cannot be written: {_FULL[error.errno]}",
            "Make room; what was there before stays, and the next run goes on from here.",
        ) from error
