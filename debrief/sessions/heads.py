"""Sessions without their turns: what most questions need, read without decoding the rest."""

from __future__ import annotations

from datetime import datetime

from msgspec import UNSET, Struct, UnsetType

from debrief.sessions.model import Problem, Recorded, RecordStatus, TranscriptRef, Usage


class SessionHead(Struct, frozen=True, kw_only=True):
    """The columns of a ``raw_sessions`` row that are small."""

    id: str
    source: str
    tool: str
    models: tuple[str, ...] = ()
    task: str
    repository: str = ""
    branch: str = ""
    cwd: str = ""
    started: datetime
    ended: datetime
    transcripts: tuple[TranscriptRef, ...] = ()
    usage: Usage = Usage()
    api_calls: int = 0
    lines_added: int = 0
    lines_removed: int = 0
    problems: tuple[Problem, ...] = ()
    redactions: int = 0
    unsure_redactions: int = 0
    digest: str = ""
    base_commit: str | UnsetType = UNSET
    recorded: Recorded | UnsetType = UNSET
    status: RecordStatus | UnsetType = UNSET
