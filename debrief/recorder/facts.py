"""What a session knows of itself at its end, before anything is asked of git."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from debrief.recorder.contracts import Contents


class RanCommand(Struct, frozen=True, kw_only=True):
    """A command that was run through the allowlist, in the order of its start."""

    cmd: str
    args: tuple[str, ...]
    cwd: str = "."
    """Relative to the repository's top folder."""
    output: str
    """Standard output and standard error as they came, not yet cut nor redacted; bytes that are
    no UTF-8 and NULs are U+FFFD."""
    cut: bool = False
    """More was printed than was kept in ``output``, which is longer than ``OUTPUT_LIMIT`` then."""
    exit_code: int | None
    """128 + n when signal n ended it; None at its time limit, or when the recorder was ended
    while it ran."""
    ending: str = ""
    """How it ended where ``exit_code`` is None: words to stand on a line after the output."""
    duration_ms: int
    tree: str | None
    """``snapshot_tree`` right after its end; None where that could not be told."""


class SessionFacts(Struct, frozen=True, kw_only=True):
    """All of a session but its changes."""

    session_id: str
    """A UUID."""
    task_id: str
    recorder: str
    """Name and version, as ``debrief 0.1.0``."""
    system: str | None = None
    prompt: str
    contents: Contents = "full"
    ignore: tuple[str, ...] = ()
    """Globs in the syntax of gitignore, beside the usual ones."""
    repo_name: str
    repo_remote: str | None = None
    """Without user name and password."""
    branch: str | None = None
    """None where HEAD was detached."""
    base_ref: str
    started_at: datetime
    stopped_at: datetime
    commands: tuple[RanCommand, ...] = ()
    summary: str | None = None
    """The person's own closing words; None for those that are made from the facts."""
