"""Which process this is, so that another one can return whether it still runs."""

from __future__ import annotations

import os
import socket
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

_PROC = Path("/proc")
_SAME_START = 2.0
"""Seconds by which two readings of a start may differ where it is told by the clock on the wall."""
_ZOMBIE = "Z"


class Process(Struct, frozen=True, kw_only=True):
    """A process, told apart from all others that had or will have its number."""

    host: str
    """For people."""
    machine: str
    """Where the number means this process: the host, its boot, and its space of numbers."""
    number: int
    started: float
    """Ticks since the machine's boot where that can be read, else seconds since 1970."""
    part: str = ""
    """Tells several apart that live in one process."""

    @property
    def told(self) -> str:
        """Return it in words."""
        return f"process {self.number} on {self.host}"

    @property
    def is_gone(self) -> bool:
        """Return whether it surely runs no more; False where that cannot be seen from here."""
        if self.machine != _machine():
            return False
        started = _started(self.number)
        return started is None or abs(started - self.started) > _precision()

    def encoded(self) -> str:
        """Return it as a text that ``decoded`` reads."""
        return msgspec.json.encode(self).decode()


def decoded(text: str) -> Process | None:
    """Return the process that a text tells of; None when it tells of none."""
    try:
        return msgspec.json.decode(text, type=Process)
    except msgspec.DecodeError:
        return None


def this_process() -> Process:
    """Return the process that asks."""
    return _process(os.getpid())


@cache
def _process(number: int) -> Process:
    return Process(
        host=socket.gethostname(),
        machine=_machine(),
        number=number,
        started=_started(number) or 0.0,
    )


def _started(number: int) -> float | None:
    """Return when a process started; None when there is none, or nothing but its remains."""
    if not _has_proc():
        return _started_elsewhere(number)
    try:
        told = (_PROC / str(number) / "stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name, which is second, may hold spaces and brackets.
    fields = told.rpartition(")")[2].split()
    return None if fields[0] == _ZOMBIE else float(fields[19])


def _started_elsewhere(number: int) -> float | None:
    import psutil

    try:
        process = psutil.Process(number)
        return None if process.status() == psutil.STATUS_ZOMBIE else float(process.create_time())
    except psutil.NoSuchProcess:
        return None


def _precision() -> float:
    return 0.0 if _has_proc() else _SAME_START


@cache
def _has_proc() -> bool:
    return (_PROC / "self" / "stat").exists()


@cache
def _machine() -> str:
    boot = _PROC / "sys" / "kernel" / "random" / "boot_id"
    numbers = _PROC / "self" / "ns" / "pid"
    parts = [socket.gethostname()]
    if boot.exists():
        parts.append(boot.read_text().strip())
    if numbers.exists():
        parts.append(str(numbers.stat().st_ino))
    return "/".join(parts)
