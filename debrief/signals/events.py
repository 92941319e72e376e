"""What a person would want to look at in a session, the most urgent first, each with where.

Nothing is weighed: the order is that of ``EventKind``, and a kind without a place is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, get_args

from debrief.markdown import shorten
from debrief.sessions.model import Evidence, Intervention, ToolCall, Turn
from debrief.signals.excerpts import first_line, label
from debrief.signals.risky_commands import HazardKind
from debrief.signals.schema import CheckSignal, Event, EventKind
from debrief.signals.termination import End

HAZARDS: Final[Mapping[HazardKind, EventKind]] = {
    "destructive": "destructive",
    "bypass": "destructive",
    "exposure": "exposure",
    "secret": "exposure",
}
"""The event that a risky command is; to run code from the net is none."""
_ENDS: Final[Mapping[str, EventKind]] = {
    "refused": "refused_change",
    "open": "open_request",
    "limit": "stopped",
}


def events_of(
    noted: Mapping[EventKind, Sequence[Evidence]], checks: Sequence[CheckSignal], end: End
) -> tuple[Event, ...]:
    """Return the events of a session, the most urgent first.

    Args:
        noted: places by kind, in the order of the session.
        checks: the last of each kind and target.
        end: of the session.
    """
    places: dict[EventKind, list[Evidence]] = {kind: [*found] for kind, found in noted.items()}
    places["failed_check"] = [check.evidence for check in checks if check.passed is False]
    if end.ending in _ENDS and end.evidence is not None:
        places[_ENDS[end.ending]] = [end.evidence]
    return tuple(
        Event(kind=kind, evidence=tuple(dict.fromkeys(places[kind])))
        for kind in get_args(EventKind)
        if places.get(kind)
    )


def refusals_in(turn: Turn) -> Iterator[Evidence]:
    """Yield the calls of a turn that the person refused, each with what they said."""
    deeds = iter([deed for deed in turn.interventions if deed.kind == "rejection"])
    for message in turn.messages:
        for call in message.calls:
            if call.status == "rejected":
                yield Evidence(turn.number, call.id, _refusal(label(call), next(deeds, None)))
    yield from (Evidence(turn.number, "", _refusal("a call", deed)) for deed in deeds)


def interrupted_call(turn: Turn, deed: Intervention) -> ToolCall | None:
    """Return the last call that a turn made before the person stopped the agent; None for none."""
    calls = [call for message in turn.messages for call in message.calls]
    before = [call for call in calls if not (call.at and deed.at) or call.at <= deed.at]
    return before[-1] if before else None


def _refusal(what: str, deed: Intervention | None) -> str:
    words = first_line(deed.text) if deed is not None else ""
    return shorten(f"{what}: {words}" if words else what, 160)
