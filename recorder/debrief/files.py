"""Write files atomically: whole or not at all, even when the process or machine stops."""

from __future__ import annotations

import fcntl
import glob
import hashlib
import logging
import math
import os
import shutil
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

from debrief.errors import ConfigurationError, InputError


def make_folder(folder: Path) -> None:
    """Make a private folder and the folders above it, as ``make_private`` does.

    Raises:
        ConfigurationError: The folder cannot be made.
    """
    try:
        make_private(folder)
    except OSError as error:
        reason = f"cannot be made: {error.strerror}"
        raise ConfigurationError(str(folder), reason, "Check DEBRIEF_HOME.") from error


def make_private(folder: Path) -> None:
    """Make a folder and the folders above it, closed to other accounts of the machine.

    Only the owner can enter, unless the folder above is shared with a group (``chmod 2770``):
    then the group can, too.

    Raises:
        OSError: The folder cannot be made.
    """
    if not folder.is_dir():
        make_private(folder.parent)
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
            if shared_with_group(folder.parent):
                folder.chmod(0o2770)
        sync_folder(folder.parent)


def shared_with_group(folder: Path) -> bool:
    """Return whether a folder's group may write to it and owns what is made in it."""
    mode = folder.stat().st_mode
    return bool(mode & stat.S_ISGID and mode & stat.S_IWGRP)


_ABANDONED = 3_600.0
"""Seconds after which nobody can still be writing to an unfinished file."""


@contextmanager
def atomic(
    path: Path, *, mode: int = 0o600, durable: bool = True, replace: bool = True
) -> Iterator[IO[bytes]]:
    """Yield a new file, which takes the place of ``path`` in one step when the block has ended.

    A reader sees the old file or the whole new one. Where the block raises, the old one stays and
    the new one goes; what a killed writer left is removed by the next one, an hour later.

    Args:
        path: of the file; its folder is there.
        mode: the file's permissions, before the umask; by default its owner's alone.
        durable: what was written survives a power cut once the block has ended.
        replace: a file that is there gives way.

    Raises:
        FileExistsError: a file is there, and ``replace`` is False.
        OSError: it cannot be written, as on a full disk.
    """
    for leftover in path.parent.glob(f".{glob.escape(path.name)}.????????"):
        with suppress(OSError):
            if time.time() - leftover.stat().st_mtime > _ABANDONED:
                leftover.unlink()
    unfinished = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    try:
        descriptor = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "w+b") as file:
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
        if replace:
            unfinished.replace(path)
        else:
            os.link(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
    if durable:
        sync_folder(path.parent)


def write_durably(path: Path, data: bytes | Iterable[bytes]) -> None:
    """Write a file that its owner alone can read, as ``atomic`` does, and survives a power cut.

    Raises:
        ConfigurationError: it cannot be written, as on a full disk; the old one is as it was.
    """
    try:
        with atomic(path) as file:
            file.writelines([data] if isinstance(data, bytes) else data)
    except OSError as error:
        raise ConfigurationError(
            str(path), f"cannot be written: {error.strerror}", "Mend that and try again."
        ) from error


def write_folder(folder: Path, files: Mapping[str, bytes], *, replace: bool = False) -> None:
    """Write a folder that its owner alone can enter, whole or not at all.

    Args:
        folder: where it goes; the folders above it are made.
        files: by path within it.
        replace: a folder that is there gives way.

    Raises:
        OSError: it cannot be written, or a folder with files is there; that one is as it was.
    """
    make_private(folder.parent)
    unfinished = folder.with_name(f".{folder.name}.{os.getpid()}")
    replaced = folder.with_name(f".{folder.name}.{os.getpid()}.old")
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        unfinished.mkdir(mode=0o700)
        for name, data in files.items():
            (unfinished / name).parent.mkdir(parents=True, exist_ok=True)
            (unfinished / name).write_bytes(data)
        if replace and folder.exists():
            folder.rename(replaced)
        unfinished.rename(folder)
    except BaseException:
        if replaced.exists() and not folder.exists():
            replaced.rename(folder)
        raise
    finally:
        for leftover in (unfinished, replaced):
            shutil.rmtree(leftover, ignore_errors=True)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut, where it can be opened at all."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_LARGEST = 20_000_000


def read_text(path: Path, next_move: str = "") -> str:
    """Return a file's text.

    Raises:
        InputError: it cannot be read, is no UTF-8, or is far too large.
    """
    try:
        if path.stat().st_size > _LARGEST:
            raise InputError(str(path), f"has more than {_LARGEST} bytes")
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        reason = f"cannot be read: {error.strerror or error}"
        raise InputError(str(path), reason, next_move) from None
    except UnicodeDecodeError as error:
        raise InputError(str(path), f"is not UTF-8 at byte {error.start}") from None


@contextmanager
def locked(path: Path, timeout: float = 0.0) -> Iterator[bool]:
    """Hold a lock while the block runs, or until the process ends; False: another one holds it.

    Args:
        path: a file, made if need be.
        timeout: seconds to wait for another process to give it up.
    """
    make_folder(path.parent)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        yield _is_acquired(descriptor, time.monotonic() + timeout)
    finally:
        os.close(descriptor)


@contextmanager
def only_writer(home: Path, lake: str) -> Iterator[None]:
    """Hold this machine's lock on a lake, which goes with the process however it ends.

    Args:
        home: where locks are kept.
        lake: its URL.
    """
    path = home / "locks" / hashlib.sha256(lake.encode()).hexdigest()[:16]
    with ExitStack() as held:
        if not held.enter_context(locked(path)):
            logging.getLogger("debrief.progress").info(
                "waits for %s, which has %s", path.read_text() or "another run", lake
            )
            held.enter_context(locked(path, timeout=math.inf))
        path.write_text(f"process {os.getpid()}")
        yield


def _is_acquired(descriptor: int, until: float) -> bool:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(0.02)
        else:
            return True
