"""Folders with as many sessions as a benchmark wants: the samples, again and again, moved in time."""

from __future__ import annotations

import datetime as dt
import re
from functools import partial
from pathlib import Path
from uuid import NAMESPACE_OID, uuid5

from debrief.samples import folder
from debrief.weeks import week_after

_UUID = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_DAY = re.compile(rb"\b2026-(?:10|11)-[0-3]\d(?=T\d\d:)")


def write_sessions(target: Path, weeks: list[str], sessions: int) -> None:
    """Write so many sessions of Claude Code, spread evenly over ``weeks``.

    Every session has identifiers of its own, so that none passes for a copy of another.
    """
    originals = [
        path
        for path in sorted((folder() / "claude").rglob("*.jsonl"))
        if _first_day(path.read_bytes()) is not None and "agent-" not in path.name
    ]
    for number in range(sessions):
        original = originals[number % len(originals)]
        data = original.read_bytes()
        day = _first_day(data)
        if day is None:
            continue
        week = dt.date.fromisoformat(weeks[number % len(weeks)])
        shift = week + dt.timedelta(days=day.weekday()) - day
        data = _DAY.sub(partial(_later, shift), _UUID.sub(partial(_other, number), data))
        name = _UUID.sub(partial(_other, number), original.name.encode()).decode()
        path = target / "projects" / f"-home-sam-copy-{number % 20}" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def weeks_until(last: str, count: int) -> list[str]:
    """Return so many weeks in order, ``last`` being the last."""
    return [week_after(last, -back) for back in range(count - 1, -1, -1)]


def _first_day(data: bytes) -> dt.date | None:
    found = _DAY.search(data)
    return dt.date.fromisoformat(found[0].decode()) if found else None


def _other(number: int, match: re.Match[bytes]) -> bytes:
    return str(uuid5(NAMESPACE_OID, f"{number} {match[0].decode()}")).encode()


def _later(shift: dt.timedelta, match: re.Match[bytes]) -> bytes:
    return (dt.date.fromisoformat(match[0].decode()) + shift).isoformat().encode()
