"""Transcripts in a folder, and what a scan makes of them."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

from debrief.sessions.model import Session, UnreadTranscript
from debrief.sessions.scanning import Scan
from debrief.sessions.sources import read_week
from tests.sessions.scenario import MONDAY, Log, usage

WEEK = "2026-01-05"


def session(number: int = 1, days: float = 0, prompt: str = "Go") -> Log:
    name, started = f"0a1b2c3d-0000-4000-8000-{number:012d}", MONDAY + timedelta(days=days)
    log = Log(prompt, session=name, started=started)
    log.says("Done", id=f"m{number}", usage=usage(1, 2))
    return log


def written(folder: Path, *logs: Log) -> Path:
    for log in logs:
        log.write(folder / f"{log.session}.jsonl")
    return folder


def blank(folder: Path) -> None:
    """Leave nothing in any file below a folder, and its size and time of change as they were."""
    for path in folder.rglob("*.json*"):
        status = path.stat()
        path.write_bytes(b" " * status.st_size)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def everything(found: Scan) -> list[Session | UnreadTranscript]:
    return [item for week in found.weeks() for item in read_week(found, week)]


def sessions(found: Scan) -> list[Session]:
    return [item for item in everything(found) if isinstance(item, Session)]


def unread(found: Scan) -> list[UnreadTranscript]:
    return [item for item in everything(found) if isinstance(item, UnreadTranscript)]
