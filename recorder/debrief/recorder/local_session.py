"""What is known of a session on this machine: its start, its commands, its end."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from debrief.git.scratch import Entry
from debrief.recorder.contracts import (
    OUTPUT_LIMIT,
    TRUNCATED,
    CommandRules,
    Contents,
    Meta,
    OthersWork,
)


class NewSession(Struct, frozen=True, kw_only=True):
    """What a person starts a session with."""

    task_id: str
    system: str | None = None
    prompt: str
    contents: Contents = "full"
    ignore: tuple[str, ...] = ()
    """Patterns in the syntax of gitignore, beside the usual ones."""


class Started(NewSession, frozen=True, kw_only=True):
    """A session as it was started."""

    id: str
    """A UUID; the record's as well."""
    worktree: str
    """The top folder, for people to read."""
    repo_name: str
    repo_remote: str | None = None
    """Without user name and password."""
    branch: str | None = None
    """None where HEAD was detached."""
    base_ref: str
    rules: str = ""
    """The repository's own rules, as JSON; empty without any."""
    reflog_size: int | None = None
    """Lines of HEAD's reflog; None in sessions of earlier versions."""
    started_at: datetime


class KeptFile(Struct, frozen=True):
    """A changed file, as it was when a command was started; None where there was none."""

    path: str
    before: Entry | None
    """At the commit that the state is of."""
    after: Entry | None
    """Its text is kept beside the session."""


class KeptState(Struct, frozen=True):
    """The changed files when a command was started."""

    base: str
    """The commit that they differ from."""
    files: tuple[KeptFile, ...]


class CommandStart(Struct, frozen=True, kw_only=True):
    """A command that is about to be run."""

    cmd: str
    args: tuple[str, ...]
    cwd: str
    started_at: datetime
    time_limit: float
    """Seconds."""
    state: KeptState | None = None
    """None in sessions of earlier versions."""


class CommandEnd(Struct, frozen=True, kw_only=True):
    """How a command ended."""

    exit_code: int | None
    """128 + n when signal n ended it; None at its time limit, or when the recorder was ended
    while it ran."""
    ending: str = ""
    """How it ended where ``exit_code`` is None, for a line of its own after the output."""
    duration_ms: int
    cut: bool = False
    """More was printed than was kept, which is more than ``OUTPUT_LIMIT`` then."""


class RanCommand(CommandEnd, frozen=True, kw_only=True):
    """A command that was run through the allowlist."""

    cmd: str
    args: tuple[str, ...]
    cwd: str = "."
    """Relative to the repository's top folder."""
    output: str
    """Standard output and standard error as they came, not yet cut nor redacted; bytes that are
    not UTF-8 and NULs are U+FFFD."""
    is_over: bool = True
    """False while it runs, and when the recorder was ended before it."""
    state: KeptState | None = None
    """As of ``CommandStart``."""


def shown_output(run: RanCommand) -> str:
    """Return a command's output as a record has it; one that was cut ends in ``TRUNCATED``."""
    output = run.output.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
    ending = f"\n{run.ending}" if run.ending and output else run.ending
    room = OUTPUT_LIMIT - len(ending)
    if run.cut or len(output) > room:
        return f"{output[:room]}{ending}{TRUNCATED}"
    return f"{output}{ending}"


class SessionFacts(Started, frozen=True, kw_only=True):
    """All of a session at its end but its changes."""

    stopped_at: datetime
    commands: tuple[RanCommand, ...] = ()
    """In the order of their starts."""
    summary: str | None = None
    """The person's own closing words; None for those that are made from the facts."""
    others: OthersWork | None = None
    """What others brought in; ``base_ref`` is the commit that the changes start from then."""
    accept_skipped: bool = False
    """What is skipped was seen, and the record is whole without it."""


def rules_of(started: Started) -> CommandRules | None:
    """Return the repository's own rules, as they were at the start; None without any."""
    return CommandRules.model_validate_json(started.rules) if started.rules else None


class StopOptions(Struct, frozen=True, kw_only=True):
    """How a record is made, and what becomes of it on the server."""

    summary: str | None = None
    """Closing words, instead of those made from the facts."""
    ignore: tuple[str, ...] = ()
    """Patterns of what to leave out, beside those of the start."""
    create_task: str | None = None
    """Name of the task to make on the server when it is not there."""
    ready: bool = False
    """Mark it ready on the server once it is there, if nothing is missing."""
    keep: bool = False
    """Keep the record's file after it was sent."""
    accept_skipped: bool = False
    """What is skipped was seen, and the record is whole without it."""


class SentRecord(Struct, frozen=True, kw_only=True):
    """A record that a server took, or is to take."""

    session_id: str
    task_id: str
    repo_name: str
    stopped_at: datetime
    size: int
    status: str = ""
    not_ready: tuple[str, ...] = ()
    server: str = ""
    """Its address."""

    @classmethod
    def of(cls, meta: Meta, size: int) -> SentRecord:
        """Return what is remembered of a record that no server has yet."""
        return cls(
            session_id=str(meta.session_id),
            task_id=meta.task_id,
            repo_name=meta.repo_name,
            stopped_at=meta.stopped_at,
            size=size,
        )
