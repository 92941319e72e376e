"""A request that is not let through, and why."""

from __future__ import annotations

from msgspec import Struct


class Refusal(Struct, frozen=True):
    """What is answered instead."""

    status: int
    """401, 403 or 421."""
    reason: str
    """One line that names the setting."""
