"""Which process this is, so that another one can tell whether it still runs."""

from __future__ import annotations

import os
import socket
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

_SAME_START = 0.5
"""Seconds by which two readings of a process's start may differ."""


class Process(Struct, frozen=True, kw_only=True):
    """A process, told apart from all others that had or will have its number."""

    host: str
    """For people."""
    machine: str
    """Where the number means this process: the host, its start, and its space of numbers."""
    number: int
    started: float
    """Seconds since 1970."""

    @property
    def told(self) -> str:
        """Return it in words."""
        return f"process {self.number} on {self.host}"

    @property
    def is_gone(self) -> bool:
        """Tell whether it surely runs no more; False where that cannot be seen from here."""
        if self.machine != _machine():
            return False
        import psutil

        try:
            process = psutil.Process(self.number)
            if abs(process.create_time() - self.started) > _SAME_START:
                return True
            return bool(process.status() == psutil.STATUS_ZOMBIE)
        except psutil.NoSuchProcess:
            return True
        except psutil.AccessDenied:
            return False

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
    import psutil

    return Process(
        host=socket.gethostname(),
        machine=_machine(),
        number=number,
        started=psutil.Process(number).create_time(),
    )


@cache
def _machine() -> str:
    boot = Path("/proc/sys/kernel/random/boot_id")
    numbers = Path("/proc/self/ns/pid")
    parts = [socket.gethostname()]
    if boot.exists():
        parts.append(boot.read_text().strip())
    if numbers.exists():
        parts.append(str(numbers.stat().st_ino))
    return "/".join(parts)
