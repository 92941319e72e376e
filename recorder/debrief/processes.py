"""Child processes that end with their parent, and the sockets that they listen on."""

from __future__ import annotations

import errno
import hashlib
import os
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from debrief.errors import ConfigurationError


def stop_with_parent(number: signal.Signals) -> Callable[[], None]:
    """Return a ``preexec_fn`` by which Linux signals the child when its parent dies."""
    if sys.platform != "linux":
        return lambda: None
    import ctypes

    prctl = ctypes.CDLL(None).prctl
    return lambda: prctl(1, number)  # 1: PR_SET_PDEATHSIG


def socket_folder(folder: Path) -> Path:
    """Return where the sockets of what runs in ``folder`` are: a socket's path has to be short."""
    digest = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:16]
    return Path("/tmp") / f"debrief-{digest}"


def make_socket_folder(folder: Path, user: int | None = None) -> Path:
    """Make the folder of ``socket_folder``, open to one user alone, and empty.

    Args:
        folder: in which the programs run.
        user: whose sockets they are; this process's own by default.

    Raises:
        ConfigurationError: somebody else has made a folder of that name.
    """
    sockets = socket_folder(folder)
    sockets.mkdir(mode=0o700, exist_ok=True)
    status = sockets.lstat()
    if status.st_uid not in (user, os.geteuid()) or status.st_mode & 0o077 or sockets.is_symlink():
        raise ConfigurationError(
            str(sockets), "belongs to another user", "Remove it, then try again."
        )
    for leftover in sockets.iterdir():
        leftover.unlink()
    if user is not None:
        os.chown(sockets, user, -1)
    return sockets


def accepts(path: Path) -> bool:
    """Return whether a server listens on a Unix socket, or one that is closed to this user may."""
    with closing(socket.socket(socket.AF_UNIX)) as client:
        return client.connect_ex(str(path)) in (0, errno.EACCES)
