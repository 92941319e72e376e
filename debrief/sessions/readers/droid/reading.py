"""Files of droid: a transcript, its settings, and the transcripts of its subagents."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from debrief.sessions.model import Problem
from debrief.sessions.readers.assembly import Reading
from debrief.sessions.readers.droid.conversion import CONTEXT, convert, settings_usage
from debrief.sessions.readers.folders import Head, first_time, head_records, is_whole
from debrief.sessions.readers.jsonl import JsonLines, load_json, string
from debrief.sessions.readers.timeline import NO_USAGE

SUFFIX = ".jsonl"
_START = re.compile(rb'\A\s*\{[^\n]{0,4000}?"type"\s*:\s*"session_start"')
_FIRST_MESSAGE = re.compile(rb'"type"\s*:\s*"message"\s*,\s*"id"\s*:\s*"([^"\\]{1,80})"')
_SETTINGS = ".settings.json"


def claims(head: bytes) -> bool:
    """Return whether a file with this beginning is droid's: its first record starts a session."""
    return _START.match(head) is not None


def describe(head: bytes, path: str) -> Head | None:
    """Return what the beginning tells; a session without an id is named after its file."""
    records = head_records(head)
    if is_whole(head) and not any(record.get("type") == "message" for record in records):
        return None
    root = _FIRST_MESSAGE.search(head)
    start = next((record for record in records if record.get("type") == "session_start"), {})
    return Head(
        id=string(start.get("id")) or Path(path).stem,
        started=first_time(head),
        parent=string(start.get("callingSessionId")),
        root=root[1].decode(errors="replace").removeprefix(CONTEXT) if root else "",
    )


def settings_path(path: str) -> str:
    """Return where the settings of a transcript are kept."""
    return path.removesuffix(SUFFIX) + _SETTINGS


def settings_beside(path: str) -> tuple[str, ...]:
    """Return a transcript's settings file when there is one."""
    settings = settings_path(path)
    return (settings,) if Path(settings).is_file() else ()


def read_transcript(path: str) -> Reading:
    """Read one transcript with its settings.

    Raises:
        OSError: the transcript cannot be read.
    """
    reading = Reading(path)
    settings = _read_settings(reading)
    reading.facts.model = string(settings.get("model"))
    lines = JsonLines(path)
    convert(lines, reading)
    reading.take(lines)
    reading.facts.id = reading.facts.id or Path(path).stem
    told = settings_usage(settings)
    if told != NO_USAGE:
        reading.usage = told
        inclusive = settings_usage(settings, "inclusiveTokenUsage")
        reading.inclusive_usage = None if inclusive == NO_USAGE else inclusive
    elif reading.timeline.usage == NO_USAGE and not reading.timeline.empty:
        reading.report(0, "no settings with token counts beside it: tokens are not known")
    return reading


def _read_settings(reading: Reading) -> dict[str, Any]:
    path = settings_path(reading.path)
    if not Path(path).is_file():
        return {}
    try:
        settings, ref, problems = load_json(path)
    except (OSError, ValueError) as error:
        reading.problems.append(Problem(path=path, line=0, reason=f"cannot be read: {error}"))
        return {}
    reading.settings.append(ref)
    reading.problems += problems
    if type(settings) is not dict:
        reading.problems.append(Problem(path=path, line=0, reason="holds no settings"))
        return {}
    return settings
