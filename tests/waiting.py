"""What tests wait for, and how long work takes, on a machine that may be busy with other work."""

from __future__ import annotations

import time
from collections.abc import Callable

import psutil

LONG = 120.0
"""Seconds in which everything comes true, even on a machine that is busy with other work."""


def wait_until(true: Callable[[], object], seconds: float = LONG) -> None:
    """Wait until something holds.

    What takes long to find out, such as to ask a server for a page, is asked less often: what is
    waited for needs the processor too.
    """
    limit = (began := time.monotonic()) + seconds
    while not true():
        now = time.monotonic()
        assert now < limit, "it did not come true in time"
        time.sleep(min(0.3, max(0.01, 5 * (now - began))))
        began = time.monotonic()


def is_done_within(seconds: float, work: Callable[[], object]) -> bool:
    """Return whether some work takes so little processor time in one of four runs.

    What is made once a process (compiled patterns, caches) counts in the first alone, and a busy
    machine or the collection of garbage seldom slows all of them down.
    """
    for _ in range(4):
        began = time.process_time()
        work()
        if time.process_time() - began < seconds:
            return True
    return False


def is_over(pid: int) -> bool:
    """Return whether a process has ended, be it that nobody has asked how."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
