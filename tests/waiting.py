"""What tests wait for: so long that only a fault of the product lets them fail."""

from __future__ import annotations

import time
from collections.abc import Callable

import psutil

LONG = 120.0
"""Seconds in which everything comes true, even on a machine that is busy with other work."""


def wait_until(true: Callable[[], object], seconds: float = LONG) -> None:
    """Wait until something holds."""
    limit = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < limit, "it did not come true in time"
        time.sleep(0.01)


def is_over(pid: int) -> bool:
    """Return whether a process has ended, be it that nobody has asked how."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
