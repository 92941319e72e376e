"""The friction that a review noted, and the passage of the session around it."""

from __future__ import annotations

from collections.abc import Iterator

from debrief.friction.schema import FrictionEvent
from debrief.scoring.model import SessionScores
from debrief.scoring.traces import trace_text, traces_of
from debrief.sessions.model import Evidence, Session

_AROUND = 1_000
"""Characters of a passage on each side of the words that show it."""


def noted_friction(row: SessionScores, session: Session) -> Iterator[FrictionEvent]:
    """Yield what a review noted; nothing where it failed."""
    for noted in row.review.frictions if row.review is not None else ():
        if noted.what:
            yield FrictionEvent(
                session_id=session.id,
                repository=session.repository,
                at=session.started,
                evidence=noted.place,
                by=row.model,
                what=noted.what,
                instead=noted.instead,
            )


def passage(session: Session, place: Evidence) -> str:
    """Return the text around a place, of its turn and the next one, as a review is shown it."""
    traces = [t for t in traces_of(session) if place.turn <= t.number <= place.turn + 1]
    text = "".join(map(trace_text, traces))
    at = text.find(place.quote.split("\n")[0]) if place.quote else 0
    at = max(at, 0)
    return text[max(0, at - _AROUND) : at + len(place.quote) + _AROUND]
