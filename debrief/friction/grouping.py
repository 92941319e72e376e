"""Group the commands that failed: the same failure in two sessions, and what then worked."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from debrief.friction.schema import FrictionEvent, RecurringFriction
from debrief.friction.suggestions import line_for

VERSION = "8"
"""Raised when the same events give other frictions."""
_SPAN = re.compile(r"`([^`]+)`")


def recurring_failures(events: Iterable[FrictionEvent]) -> list[RecurringFriction]:
    """Return what failed in two sessions of a repository at least, where what works is known.

    Events are the same when their text is. One without a repository is left out: what it has to do
    with others is not known.

    Args:
        events: of all weeks; those that reviews noted are left aside.
    """
    groups: dict[tuple[str, str], list[FrictionEvent]] = defaultdict(list)
    for event in events:
        if event.repository and not event.by:
            groups[event.repository, event.what].append(event)
    return [
        RecurringFriction.of(group, what=what, line=line)
        for (_, what), group in groups.items()
        if len({event.session_id for event in group}) > 1 and (line := line_for(group))
    ]


def in_order(frictions: Iterable[RecurringFriction]) -> list[RecurringFriction]:
    """Return frictions by repository, those of most sessions first, of equal ones the newest."""
    return sorted(
        frictions,
        key=lambda row: (row.repository, -len(row.sessions), -row.last_seen.timestamp(), row.id),
    )


def is_alike(one: RecurringFriction, other: RecurringFriction) -> bool:
    """Return whether two frictions of a repository are one: they share half of their sessions, and
    a name in their lines."""
    names = set(_SPAN.findall(one.line)) & set(_SPAN.findall(other.line))
    return bool(names) and half_shared(one.sessions, other.sessions)


def half_shared(some: Sequence[str], others: Sequence[str]) -> bool:
    """Return whether at least half of the smaller of two sets is in the other."""
    least = min(len(set(some)), len(set(others)))
    return 2 * len(set(some) & set(others)) >= least > 0
