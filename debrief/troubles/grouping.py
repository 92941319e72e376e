"""Troubles: what happened more than once in a repository, the costliest first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec.structs import astuple

from debrief.sessions.model import Usage
from debrief.troubles.model import Trouble, TroubleEvent, trouble_id

VERSION = "1"
"""Raised when the same events give other troubles."""
_EXAMPLES = 2


def find_troubles(events: Iterable[TroubleEvent]) -> list[Trouble]:
    """Return the troubles of all repositories, by repository, the costliest first.

    Events of one repository, kind and subject are one trouble; what happened once is none. What
    happened in several sessions, or at least three times, stands before the rest, whatever it cost.
    """
    groups: dict[tuple[str, str, str], list[TroubleEvent]] = {}
    for event in events:
        groups.setdefault((event.repository, event.kind, event.subject), []).append(event)
    troubles = [_trouble(group) for group in groups.values() if len(group) > 1]
    return sorted(troubles, key=lambda one: (one.repository, *_order(one)))


def _order(trouble: Trouble) -> tuple[bool, float, int, int, str]:
    """Return what sorts the troubles of a repository: money, else tokens, else how often."""
    is_trifle = len(trouble.sessions) == 1 and trouble.count == 2
    tokens = trouble.usage.input + trouble.usage.output + trouble.usage.cache_write
    return is_trifle, -(trouble.cost_usd or 0.0), -tokens, -trouble.count, trouble.id


def _trouble(group: Sequence[TroubleEvent]) -> Trouble:
    events = sorted(group, key=lambda event: event.at)
    newest = events[::-1]
    first = events[0]
    priced = [event.cost_usd for event in events if event.cost_usd is not None]
    paid = any(any(astuple(event.usage)) for event in events if event.cost_usd is not None)
    minutes = [event.minutes for event in events if event.minutes is not None]
    return Trouble(
        id=trouble_id(first.repository, first.kind, first.subject),
        repository=first.repository,
        kind=first.kind,
        subject=first.subject,
        count=len(events),
        sessions=tuple(dict.fromkeys(event.session_id for event in newest)),
        first_seen=first.at,
        last_seen=newest[0].at,
        usage=sum((event.usage for event in events), Usage()),
        cost_usd=round(sum(priced), 6) if priced and paid else None,
        unpriced=len(events) - len(priced),
        minutes=round(sum(minutes), 2) if minutes else None,
        examples=_examples(newest),
        worked=_worked(events),
    )


def _examples(newest: Sequence[TroubleEvent]) -> tuple[TroubleEvent, ...]:
    """Return two events, of two sessions where there are, the newest first."""
    other = (event for event in newest[1:] if event.session_id != newest[0].session_id)
    return newest[0], next(other, newest[1])


def _worked(events: Sequence[TroubleEvent]) -> str:
    """Return what then worked most often: twice at least, or once of two."""
    seen = Counter(event.worked for event in events if event.worked)
    if not seen:
        return ""
    worked, count = seen.most_common(1)[0]
    return worked if count > 1 or len(events) == 2 else ""
