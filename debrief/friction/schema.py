"""The rows of friction: one event, what recurs, and what became of it after a line was written."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, Self

from msgspec import Struct
from msgspec.structs import astuple

from debrief.keys import digest_of
from debrief.sessions.model import Evidence, Usage

EVENTS, RECURRING, EFFECTS, ALL = "friction_events", "recurring_friction", "line_effects", "all"
"""Tables: events, a partition a week; the others in the one partition ``all``."""


class FrictionEvent(Struct, frozen=True, kw_only=True):
    """One time that something went wrong in a session. A row of ``friction_events``."""

    session_id: str
    repository: str
    """Empty where the session names none."""
    at: datetime
    evidence: Evidence
    """The turn, the call, and the words that show it."""
    by: str = ""
    """The model whose review noted it; empty where the rule saw it."""
    what: str
    """What the agent did. Of the rule: the command and its error, without what differs from one
    time to the next: events of one repository with the same text are one friction."""
    instead: str = ""
    """What it should have done. Of the rule: the command that then worked; empty where none was
    seen."""
    command: str = ""
    """Of the rule: the part of the command line that failed, as it was typed."""
    missing: str = ""
    """Of the rule: the program, subcommand, script or module that was not there."""
    calls: tuple[str, ...] = ()
    """Of the rule: ids of the calls of the stretch, from the failure to what then worked."""
    usage: Usage = Usage()
    """Of the messages of the stretch; of one that made other calls too, the share of its own."""
    cost_usd: float | None = None
    """Of ``usage``, by the model's list price; None where that is not known."""
    minutes: float | None = None
    """From the first call of the stretch to the end of the last; None without times."""

    @property
    def id(self) -> str:
        """Return a short digest of who saw what and where."""
        return digest_of(self.session_id, self.by, self.what, astuple(self.evidence))[:12]


class RecurringFriction(Struct, frozen=True, kw_only=True):
    """What went wrong in two sessions of a repository at least, and the line that stops it.

    A row of ``recurring_friction``.
    """

    id: str
    """12 hex digits; its page's address."""
    repository: str
    by: str = ""
    """The model that grouped the notes of reviews; empty for the rule."""
    what: str
    line: str
    """For CLAUDE.md or AGENTS.md; one line, checked by ``line_check``."""
    existing: str = ""
    """The line of the repository's prompt file that says it already; empty where none does."""
    events: tuple[str, ...]
    """Ids of its events."""
    sessions: tuple[str, ...]
    """Ids, the newest first; two at least."""
    first_seen: datetime
    last_seen: datetime
    usage: Usage = Usage()
    cost_usd: float | None = None
    """Of the events whose price is known; None where none is."""
    minutes: float | None = None
    examples: tuple[FrictionEvent, ...] = ()
    """Two, of two sessions, the newest first."""

    @classmethod
    def of(
        cls,
        events: Sequence[FrictionEvent],
        *,
        what: str,
        line: str,
        by: str = "",
        existing: str = "",
        id: str = "",
    ) -> Self:
        """Return the friction that events of two sessions or more are.

        Args:
            events: of one repository, in any order.
            what: what goes wrong, in a few words.
            line: that stops it.
            by: the model that grouped them; empty for the rule.
            existing: the line of the prompt file that says it already.
            id: by default, a digest of the repository and of what the rule calls it or, of a
                model's group, of its events.
        """
        newest = sorted(events, key=lambda event: event.at, reverse=True)
        ids = tuple(dict.fromkeys(event.id for event in newest))
        priced = [event.cost_usd for event in events if event.cost_usd is not None]
        minutes = [event.minutes for event in events if event.minutes is not None]
        others = (event for event in newest if event.session_id != newest[0].session_id)
        return cls(
            id=id or digest_of(newest[0].repository, by, ids if by else what)[:12],
            repository=newest[0].repository,
            by=by,
            what=what,
            line=line,
            existing=existing,
            events=ids,
            sessions=tuple(dict.fromkeys(event.session_id for event in newest)),
            first_seen=newest[-1].at,
            last_seen=newest[0].at,
            usage=sum((event.usage for event in events), Usage()),
            cost_usd=round(sum(priced), 6) if priced else None,
            minutes=round(sum(minutes), 2) if minutes else None,
            examples=(newest[0], *list(others)[:1]),
        )


LineOutcome = Literal["fewer", "more", "no_change", "back", "too_early", "always_there"]
"""What the sessions with the line show, beside those before it.

``fewer``, ``more``: the 95 % interval of the difference of the shares leaves zero out.
``no_change``: it leaves a fall by half out. ``back``: after five sessions in a row without the
friction, one of the newest five has it. ``too_early``: none of these can be told.
``always_there``: every session whose prompt files are known had the line.
"""


class LineEffect(Struct, frozen=True, kw_only=True):
    """How often sessions had a friction before a line about it came into their prompt files, and
    with it. A row of ``line_effects``.

    Counted are the repository's sessions whose prompt files are known and of which it is known
    whether they had the friction: the rule looks at each; of a review's friction, those that were
    asked about it. It is a comparison in time; whatever else changed meanwhile is in it too.
    """

    repository: str
    friction_id: str
    line: str
    """As the prompt files have it, without list marks."""
    since: datetime
    """When the first session began that had it."""
    sessions_before: int
    affected_before: int
    """Of ``sessions_before``, those with the friction."""
    sessions_after: int
    affected_after: int
    change: float | None = None
    """Share of affected sessions after, minus the share before, −1 to 1; None without sessions on
    both sides."""
    low: float | None = None
    """Of its 95 % interval."""
    high: float | None = None
    outcome: LineOutcome
