"""The forms of what ``debrief record … --json`` answers."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import Struct


class _Answer(Struct, frozen=True, kw_only=True, rename="camel"):
    """What all answers share: the names of JSON are in camel case."""


class ErrorAnswer(_Answer, frozen=True, kw_only=True):
    """An error, for programs."""

    code: str
    culprit: str
    reason: str
    next_move: str
    message: str
    """All three in one line."""
    facts: dict[str, Any]


class CommandAnswer(_Answer, frozen=True, kw_only=True):
    """A command of the session under way."""

    cmd: str
    args: tuple[str, ...]
    cwd: str
    state: str
    """``running``, ``ended``, or ``interrupted``: nobody saw its end."""
    exit_code: int | None
    ending: str
    """How it ended where there is no exit code."""
    duration_ms: int
    is_check: bool
    output: str
    """Its end, at most 4,000 characters."""


class SessionAnswer(_Answer, frozen=True, kw_only=True):
    """The session under way."""

    id: str
    task_id: str
    system: str | None
    prompt: str
    contents: str
    worktree: str
    repo_name: str
    branch: str | None
    base_ref: str
    started_at: datetime
    elapsed_seconds: float
    state: str
    """``recording``, ``running`` a command, or ``stopped``: its record is made, and not sent."""
    commands: list[CommandAnswer]
    changes: list[Any]
    skipped: list[Any]
    warnings: list[str]
    redactions: int
    not_ready: list[str]
    """Why it would be a draft if it were stopped now."""


class StatusAnswer(_Answer, frozen=True, kw_only=True):
    """A worktree, and its session if there is one."""

    worktree: str
    repo_name: str
    repo_remote: str | None
    branch: str | None
    head: str
    session: SessionAnswer | None
    not_clean: list[str]
    """What keeps a session from being started; empty while there is one."""
    waiting: int
    """Records of this machine that wait to be sent."""


class AskedAnswer(_Answer, frozen=True, kw_only=True):
    """What the validator says of one command."""

    command: list[str]
    accepted: bool
    reason: str
    next_move: str
    is_check: bool


class RuleAnswer(_Answer, frozen=True, kw_only=True):
    """A command that may be run."""

    program: str
    arguments: list[str]
    """Words; ``<kind>`` stands for one argument of that kind, ``<kind>+`` for one or more."""
    is_check: bool
    time_limit: float
    own: bool
    """It is one of the repository's own rules."""
    filled: AskedAnswer | None
    """The command that it is with the values that were given; None where one is missing."""


class CommandsAnswer(_Answer, frozen=True, kw_only=True):
    """Which commands may be run here."""

    source: str | None
    """The file of the repository's own rules; None without one."""
    digest: str | None
    """Of the repository's own rules."""
    agreed: bool
    """Its owner agreed to the repository's own rules; true where there are none."""
    kinds: dict[str, str]
    """A regular expression for each ``<kind>``; it matches the whole argument."""
    commands: list[RuleAnswer]
    asked: AskedAnswer | None = None


class StoppedAnswer(_Answer, frozen=True, kw_only=True):
    """A session that is over."""

    session_id: str
    sent: bool
    file: str | None
    status: str
    not_ready: list[str]
    size: int
    meta: Any
    """The record's own ``meta``."""


class HistoryEntry(_Answer, frozen=True, kw_only=True):
    """A record of this machine."""

    session_id: str
    task_id: str
    repo_name: str
    stopped_at: datetime
    state: str
    """``waiting`` to be sent, or ``sent``."""
    status: str
    """``draft`` or ``ready``; empty while it waits."""
    not_ready: list[str]
    size: int
    server: str


class HistoryAnswer(_Answer, frozen=True, kw_only=True):
    """The records of this machine, the latest first."""

    sessions: list[HistoryEntry]
    error: ErrorAnswer | None
    """Why the statuses are those of when the records were sent; None when the server was asked."""
