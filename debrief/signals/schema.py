"""The signals of a session: what rules see in it, each with its evidence. They judge nothing."""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal

from msgspec import Struct

from debrief.sessions.model import Evidence

TABLE: Final = "session_signals"

WorkKind = Literal["code", "text", "settings", "operations", "answer", "nothing"]
"""What was worked on. ``code``: files that a program runs or compiles. ``text``: documents only.
``settings``: configuration only. ``operations``: git or shell operations without an edit.
``answer``: an answer, or the search for one, with nothing changed. ``nothing``: hardly anything
was done."""

Worth = Literal["fixed_test", "tests", "program", "static", "build", "nothing"]
"""What a check shows, the most first. ``fixed_test``: a test that failed before and passes now.
``tests``: tests that ran; skipped ones do not count. ``program``: the changed program was run.
``static``: types or lint. ``build``: it builds. ``nothing``: no test ran, or the outcome is
unknown."""
VERIFYING: Final[frozenset[Worth]] = frozenset(["fixed_test", "tests", "program"])
"""Checks that show that work holds, when they pass."""

CheckKind = Literal["test", "lint", "types", "build", "run"]
"""``run``: a changed program itself, or code with assertions, was run."""

Ending = Literal["answered", "open", "refused", "interrupted", "limit"]
"""How a session ends. ``answered``: with an answer. ``open``: it ends without a closing answer.
``refused``: the only change that was asked for was refused. ``interrupted``: the person stopped
it. ``limit``: its program stopped it."""

EventKind = Literal[
    "foreign_files",
    "destructive",
    "exposure",
    "correction",
    "interruption",
    "refusal",
    "failed_check",
    "refused_change",
    "open_request",
    "stopped",
]
"""What a person would want to look at, the most urgent first. ``foreign_files``: somebody else's
files were changed or thrown away. ``destructive``: a command that destroys data or bypasses a
guard. ``exposure``: a secret was shown or written down. ``correction``, ``interruption``,
``refusal``: the person's. ``failed_check``: the last check of a target failed.
``refused_change``: the only change was refused. ``open_request``: it ends without a closing answer.
``stopped``: a limit stopped it."""


OF_OTHER_LINES: Final[frozenset[EventKind]] = frozenset(
    ["failed_check", "refused_change", "open_request", "stopped"]
)
"""Events that a list of checks and of how a session ends tells as well."""


class CheckSignal(Struct, frozen=True, kw_only=True):
    """The last check of a kind and target, with a known outcome where there is one."""

    kind: CheckKind
    tool: str
    """The command that checks, such as ``cargo test``."""
    target: str = ""
    """Folder or package that it looks at; empty for the session's folder."""
    worth: Worth
    passed: bool | None
    """None where nothing tells."""
    ran: int | None = None
    """Tests that ran, skipped ones left out; None where the output has no count."""
    failed: int | None = None
    skipped: int | None = None
    covers_change: bool = False
    """It ran after the last edit of what it looks at, and could have failed because of it."""
    evidence: Evidence


class Change(Struct, frozen=True, kw_only=True):
    """What a session changed."""

    files: tuple[str, ...] = ()
    """Files of the work that are known to have changed, relative to the session's folder."""
    deleted: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    """Commands that changed files which they do not name."""
    commits: tuple[Evidence, ...] = ()
    """Commits and pushes that git confirmed, each with what git printed."""
    counted: int | None = None
    """Files that git counted in commits, a file once for each commit; None where it printed no
    count."""

    def __bool__(self) -> bool:
        """Return whether anything was changed."""
        return bool(self.files or self.deleted or self.commands or self.commits)


class Event(Struct, frozen=True, kw_only=True):
    """Something that a person would want to look at, and how often it happened."""

    kind: EventKind
    evidence: tuple[Evidence, ...]
    """Where, in the order of the session; at least one."""

    @property
    def count(self) -> int:
        """Return how often it happened."""
        return len(self.evidence)


class SessionSignals(Struct, frozen=True, kw_only=True):
    """One row: what rules see in a session."""

    session_id: str
    session_digest: str
    started: datetime
    ended: datetime
    task: str
    tool: str
    work: WorkKind
    requests: tuple[Evidence, ...] = ()
    """What was asked: the person's words, shortened, by turn."""
    change: Change = Change()
    checks: tuple[CheckSignal, ...] = ()
    """The last one of each kind and target, in the order in which they ran."""
    ending: Ending
    end: Evidence | None = None
    """Where it ends."""
    events: tuple[Event, ...] = ()
    """What a person would want to look at, the most urgent first."""
    approvals: tuple[Evidence, ...] = ()
    """Words of the person that accept the work."""
    calls: int = 0
    """Tool calls, subagents included."""
    failed_calls: int = 0
    lines_kept: int = 0
    """Lines that the session added or removed for good."""
    tokens: int = 0
    """Input and output tokens, cache reads left out."""
    cost_usd: float | None = None
    """By list prices; None where a model's price is unknown."""

    @property
    def last_check(self) -> CheckSignal | None:
        """Return the check of the change that counts: a failing one, else the most telling."""
        failing = [check for check in self.checks if check.passed is False and check.covers_change]
        if failing:
            return failing[-1]
        order: list[Worth] = ["fixed_test", "tests", "program", "static", "build", "nothing"]
        passing = [check for check in self.checks if check.passed and check.covers_change]
        return min(passing, key=lambda check: order.index(check.worth), default=None)
