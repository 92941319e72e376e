"""What went wrong more than once within one session: shown on its page, for whoever reads it.

It says only that it happened here. What a repository has again and again, and what is worth a line
in CLAUDE.md, is for ``grouping``, which asks for more.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from debrief.sessions.model import Usage
from debrief.troubles.model import TroubleEvent, TroubleKind
from debrief.troubles.remedies import cost_shown

_ALIKE: Final[frozenset[TroubleKind]] = frozenset(
    ["missed_edit", "correction", "interruption", "refused_permission"]
)
"""Within one session these are one trouble, whatever file, command or words each was about."""
_OF_ANY: Final[frozenset[TroubleKind]] = frozenset(["missed_edit", "polling"])
_LEFT_OUT: Final[TroubleKind] = "same_start"
"""Only several sessions can have it."""


class SessionTrouble(Struct, frozen=True, kw_only=True):
    """What happened at least twice in a session."""

    kind: TroubleKind
    subjects: tuple[str, ...]
    """What each time was about, in the order of the session; each once."""
    events: tuple[TroubleEvent, ...]
    """Each time, in the order of the session."""

    @property
    def cost(self) -> list[str]:
        """Return what its stretches took, in a few words each; nothing where they share calls,
        which would count twice."""
        calls = [call for event in self.events for call in event.calls]
        if len(set(calls)) < len(calls):
            return []
        priced = [event.cost_usd for event in self.events if event.cost_usd is not None]
        minutes = [event.minutes for event in self.events if event.minutes is not None]
        return cost_shown(
            sum((event.usage for event in self.events), Usage()),
            sum(priced) if priced else None,
            len(self.events) - len(priced),
            sum(minutes) if minutes else None,
        )


def session_troubles(events: Iterable[TroubleEvent]) -> list[SessionTrouble]:
    """Return what went wrong at least twice in a session, what happened most often first.

    Args:
        events: of one session.
    """
    groups: dict[tuple[TroubleKind, str], list[TroubleEvent]] = {}
    for event in sorted(events, key=lambda event: (event.evidence.turn, event.at)):
        if event.kind != _LEFT_OUT:
            subject = "" if event.kind in _ALIKE else event.subject
            groups.setdefault((event.kind, subject), []).append(event)
    found = [
        SessionTrouble(
            kind=kind,
            subjects=tuple(dict.fromkeys(map(_title, group))),
            events=tuple(group),
        )
        for (kind, _), group in groups.items()
        if len(group) > 1
    ]
    return sorted(found, key=lambda trouble: -len(trouble.events))


def _title(event: TroubleEvent) -> str:
    """Return what one time was about: its subject names no file or command where a repository's
    trouble is the same whichever it is."""
    return event.name if event.kind in _OF_ANY and event.name else event.subject
