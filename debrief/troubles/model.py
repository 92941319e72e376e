"""What a trouble is, and one time that it happened."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final, Literal

from msgspec import Struct

from debrief.keys import digest_of
from debrief.sessions.model import Evidence, Usage

EVENTS, TROUBLES, ALL = "trouble_events", "troubles", "all"
EFFECTS = "line_effects"
"""Tables: what happened, a partition a week; what recurs, all in one partition."""
TroubleKind = Literal[
    "failing_command",
    "missed_edit",
    "refused_permission",
    "correction",
    "interruption",
    "repeated_read",
    "polling",
    "blind_check",
    "work_done_twice",
    "missing_tool",
    "wrong_folder",
    "long_output",
    "same_start",
]
"""``missed_edit``: the text to replace was not there, or the file had not been read.
``blind_check``: a check that could not have failed because of the change. ``work_done_twice``:
after a compaction. ``same_start``: sessions that begin by finding out the same thing."""

TroubleReason = Literal[
    "",
    "test",
    "unsteady_test",
    "rule",
    "diagnostic",
    "message",
    "not_formatted",
    "unknown_option",
    "not_there",
    "too_large",
    "machine",
    "unsaid",
    "program",
    "subcommand",
    "skill",
    "agent",
    "tool",
    "mcp_server",
    "script",
    "python_module",
    "not_read",
    "changed_since_read",
    "several_matches",
    "same_text",
    "no_match",
    "plan",
]
"""Why a command or an edit failed, as far as its form says; empty where it does not.

Of a check: the ``test`` that failed, or the ``unsteady_test`` that failed before anything was
changed, or passed the next time though nothing was; the ``rule`` that was broken, a compiler's
``diagnostic`` of a place in the code, another ``message``, or files that are ``not_formatted``. Of
any command: an ``unknown_option``, a path that is ``not_there``, a file that is ``too_large`` to be
read whole, what the ``machine`` refuses, or ``unsaid`` where the error says no more than that it
failed. Of a ``missing_tool``: what was missing, from ``program`` on. Of a ``missed_edit``: from
``not_read`` on. Of a ``refused_permission``: a ``plan``, or ``unsaid`` where the program's name
does not say what was refused (``python3``)."""

KINDS_SHOWN: Final[Mapping[TroubleKind, str]] = {
    "failing_command": "command that fails",
    "missed_edit": "edit that misses",
    "refused_permission": "permission refused",
    "correction": "correction",
    "interruption": "interruption",
    "repeated_read": "read again and again",
    "polling": "polling",
    "blind_check": "check that cannot see the change",
    "work_done_twice": "work done twice",
    "missing_tool": "missing tool",
    "wrong_folder": "wrong folder",
    "long_output": "long output",
    "same_start": "same start",
}
"""Each kind in a few words."""


class TroubleEvent(Struct, frozen=True, kw_only=True):
    """One time that something went wrong, with what that stretch of the session cost.

    A row of ``trouble_events``, a partition a week.
    """

    session_id: str
    repository: str
    """Empty where the session names none."""
    kind: TroubleKind
    subject: str
    """What happened, without paths of machines, numbers and ids: two events of one repository,
    kind and subject are one trouble."""
    name: str = ""
    """What it is about: a program with its subcommand, a file, a tool, what a person named."""
    reason: TroubleReason = ""
    at: datetime
    evidence: Evidence
    """The place, and the words that show it."""
    calls: tuple[str, ...] = ()
    """Ids of the calls of the stretch: what failed, and all that was done about it."""
    command: str = ""
    """The part of a command line that it is about, as it was typed; empty where it is about
    none."""
    file: str = ""
    """The file below the repository that it is about; empty where it is about none."""
    words: str = ""
    """The person's own; empty where they said none."""
    worked: str = ""
    """The command, or the file, that then did what had failed; empty where none was seen."""
    of_edits: int = 0
    """Edits that the session made, whether they missed or not; 0 of other kinds."""
    usage: Usage = Usage()
    """Of the messages of the stretch; of one that made other calls too, the share of its own."""
    cost_usd: float | None = None
    """Of ``usage``, by the model's price; None where that is not known."""
    minutes: float | None = None
    """From the first call of the stretch to the end of the last; None without times."""


class Trouble(Struct, frozen=True, kw_only=True):
    """What recurs in a repository's sessions, and took something (``grouping``). A row of
    ``troubles``, all in one partition."""

    id: str
    """A short digest of repository, kind and subject: its page's address."""
    repository: str
    kind: TroubleKind
    subject: str
    names: tuple[str, ...] = ()
    """What its events are about, the most frequent first; three at most."""
    reason: TroubleReason = ""
    count: int
    """At least 2."""
    sessions: tuple[str, ...]
    """Ids, the newest first."""
    first_seen: datetime
    last_seen: datetime
    usage: Usage = Usage()
    cost_usd: float | None = None
    """Of the events whose price is known; None where none is."""
    unpriced: int = 0
    """Events whose price is not known."""
    minutes: float | None = None
    examples: tuple[TroubleEvent, ...] = ()
    """Two, of two sessions where there are, the newest first."""
    worked: str = ""
    """What then worked most often; empty where nothing did twice, or once of two."""

    @property
    def name(self) -> str:
        """Return what most of its events are about; empty where an earlier version found it."""
        return next(iter(self.names), "")


def trouble_id(repository: str, kind: TroubleKind, subject: str) -> str:
    """Return the id of what happened, in hex: the same for each event of one trouble."""
    return digest_of(repository, kind, subject)[:12]


LineOutcome = Literal["fewer", "more", "no_change", "too_early", "always_there"]
"""``fewer``, ``more``: of the sessions after the line came in, a smaller or a larger share had the
trouble, and the 95 % interval of the difference leaves nought out. ``no_change``: it leaves out a
fall by half. ``too_early``: it leaves out neither. ``always_there``: every session whose prompt
files are known had the line."""


class LineEffect(Struct, frozen=True, kw_only=True):
    """How often sessions had a trouble before and after a line about it came into their prompt
    files. A row of ``line_effects``, all in one partition.

    Counted are the repository's sessions whose prompt files are known: before are those that began
    before the first one with the line and did not have it, after are those that had it. It is a
    comparison in time; whatever else changed meanwhile is in it too.
    """

    repository: str
    trouble_id: str
    line: str
    """As the prompt files have it, without list marks."""
    lines: int = 1
    """Lines about the trouble that the very same sessions had: nothing tells them apart, and
    ``line`` is the first."""
    since: datetime
    """When the first session began that had it."""
    sessions_before: int
    troubled_before: int
    """Of ``sessions_before``, those with the trouble."""
    sessions_after: int
    troubled_after: int
    change: float | None = None
    """Share of sessions with the trouble after, minus the share before, −1 to 1; None without
    sessions on both sides."""
    low: float | None = None
    """Of its 95 % interval."""
    high: float | None = None
    outcome: LineOutcome
