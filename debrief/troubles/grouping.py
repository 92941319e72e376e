"""Group what went wrong in a repository's sessions into troubles, the costliest first.

A trouble is what a colleague should know of: three sessions had it, and one in twelve of all; what
only costs must have cost something. What a session alone had again and again is shown on its own
page (``session_troubles``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from msgspec.structs import astuple

from debrief.sessions.model import Usage
from debrief.troubles.model import Trouble, TroubleEvent, TroubleKind, trouble_id
from debrief.troubles.naming import is_outside
from debrief.troubles.remedies import line_for

VERSION = "7"
"""Raised when the same events give other troubles."""
_SESSIONS, _ONE_IN, _MANY = 3, 12, 15
"""Sessions that must have had it: three, and one in twelve of the repository's; fifteen are enough
in a repository of many sessions."""
_OF_PERSON = 2
"""Sessions that are enough where a person had to step in, and said why."""
_MERE_COSTS: Final[frozenset[TroubleKind]] = frozenset(
    ["missed_edit", "repeated_read", "polling", "long_output", "same_start", "work_done_twice"]
)
"""Kinds that do no harm but by what they take."""
_LEAST_USD, _LEAST_TOKENS = 0.5, 100_000
"""What these take in all of a repository's sessions, at least: money; where that is not known,
tokens without reads of the cache."""
_OFTEN = 4
"""Times from which on refusals of different things are more than chance."""
_TRIFLE_USD = 0.02
_STARTS = 4
"""Sessions that begin by looking up the same thing, at least: and a third of all that begin so."""


def find_troubles(events: Iterable[TroubleEvent], sessions: Mapping[str, int]) -> list[Trouble]:
    """Return the troubles of all repositories, by repository, the costliest first.

    Events of one repository, kind and subject are one trouble, if they happened often enough for
    what they took. Those that cost next to nothing come last.

    Args:
        events: of all weeks.
        sessions: how many sessions each repository has, with and without events.
    """
    groups: dict[tuple[str, str, str], list[TroubleEvent]] = {}
    for event in events:
        if not event.repository:
            continue  # what it has to do with the others is not known
        groups.setdefault((event.repository, event.kind, event.subject), []).append(event)
    begun = _sessions_that_begin(groups.values())
    recurring = [
        group
        for group in groups.values()
        if len(group) > 1 and _recurs(group, begun, sessions.get(group[0].repository, 0))
    ]
    troubles = [_trouble(group) for group in _without_doubles(recurring)]
    return sorted(troubles, key=lambda trouble: (trouble.repository, *_order(trouble)))


def _sessions_that_begin(groups: Iterable[Sequence[TroubleEvent]]) -> Counter[str]:
    """Return how many sessions of each repository begin by looking something up."""
    sessions = {
        (event.repository, event.session_id)
        for group in groups
        if group[0].kind == "same_start"
        for event in group
    }
    return Counter(repository for repository, _ in sessions)


def _recurs(group: Sequence[TroubleEvent], begun: Mapping[str, int], of_all: int) -> bool:
    """Return whether something happened often enough for what it took.

    Args:
        begun: how many sessions of each repository begin by looking something up.
        of_all: the repository's sessions.
    """
    first = group[0]
    sessions = {event.session_id for event in group}
    if first.reason in ("test", "unsteady_test"):
        sessions = {event.session_id for event in group if event.reason == "unsteady_test"}
    least = max(_SESSIONS, min(of_all / _ONE_IN, _MANY))
    if first.kind in ("correction", "interruption", "refused_permission") and (
        sum(bool(event.words) for event in group) >= _OF_PERSON
    ):
        least = _OF_PERSON
    if len(sessions) < least:
        return False
    if first.reason in ("unsaid", "plan"):
        return False  # whether it is the same is not known; and plans are there to be talked over
    if _is_of_file(first) and is_outside(first.file):
        return False
    if _is_mere_cost(first) and not _takes_enough(group):
        return False
    if first.kind == "missed_edit" and _ONE_IN * len(group) < _edits_beside(group):
        return False  # as everywhere
    if first.kind == "same_start":
        return len(sessions) >= max(_STARTS, begun[first.repository] / 3)
    if first.kind == "long_output" and line_for(_trouble(group)) is None:
        return False  # what was asked for
    return not _is_of_chance(group) or len(group) >= _OFTEN


def _takes_enough(group: Sequence[TroubleEvent]) -> bool:
    trouble = _trouble(group)
    tokens = trouble.usage.input + trouble.usage.output + trouble.usage.cache_write
    return tokens >= _LEAST_TOKENS if trouble.cost_usd is None else trouble.cost_usd >= _LEAST_USD


def _edits_beside(group: Iterable[TroubleEvent]) -> int:
    """Return how many edits the sessions made that edits missed in."""
    return sum({event.session_id: event.of_edits for event in group}.values())


def _is_mere_cost(event: TroubleEvent) -> bool:
    return event.kind in _MERE_COSTS or event.reason in ("not_there", "too_large")


def _is_of_file(event: TroubleEvent) -> bool:
    """Return whether it is about a file; one outside the repository is no trouble of it."""
    is_kind = event.kind in ("missed_edit", "long_output", "repeated_read")
    return is_kind or event.reason in ("not_there", "too_large")


def _is_of_chance(group: Sequence[TroubleEvent]) -> bool:
    """Return whether a few of these say little: of edits of several files, of a tool that names
    none, or of a command that was granted elsewhere, other things were refused each time."""
    first = group[0]
    if first.kind != "refused_permission":
        return False
    is_granted = any(event.worked for event in group)
    files = {event.file for event in group}
    return is_granted or (not first.command and (len(files) > 1 or files == {""}))


def _without_doubles(
    groups: Sequence[Sequence[TroubleEvent]],
) -> Iterator[Sequence[TroubleEvent]]:
    """Leave out what only ever happened in the same calls as something else of its kind: the
    second test that failed whenever the first did."""
    known: dict[tuple[str, str], list[set[tuple[str, datetime, str]]]] = {}
    for group in sorted(groups, key=len, reverse=True):
        # With the time, as some sources mask the ids of all calls with one word.
        places = {(event.session_id, event.at, event.evidence.call) for event in group}
        others = known.setdefault((group[0].repository, group[0].kind), [])
        is_call = any(call for _, _, call in places)
        if is_call and any(places <= other for other in others):
            continue
        others.append(places)
        yield group


def _order(trouble: Trouble) -> tuple[bool, float, int, int, str]:
    """Return what sorts the troubles of a repository: money, else tokens, else how often."""
    is_trifle = trouble.cost_usd is not None and trouble.cost_usd < _TRIFLE_USD
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
        names=tuple(name for name, _ in Counter(event.name for event in events).most_common(3)),
        reason=next((e.reason for e in events if e.reason == "unsteady_test"), first.reason),
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
