"""What processes of tests find set, and what tests wait for: so long that only faults fail them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import psutil

LONG = 120.0
"""Seconds in which everything comes true, even on a machine that is busy with other work."""


def clean_environment(**more: str) -> dict[str, str]:
    """Return this process's environment without the settings of Debrief and Dagster."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("DEBRIEF_", "DAGSTER_"))}
    return {**kept, **more}


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
