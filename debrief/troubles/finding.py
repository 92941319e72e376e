"""Find what went wrong in a session, and the tokens and time that each case took.

Nothing here asks a model or weighs anything: every event cites the call or the words that show it,
and what happened once is for ``grouping`` to leave out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from debrief.models.usage import Price
from debrief.sessions.model import Session
from debrief.troubles.failures import failures
from debrief.troubles.looking import needless
from debrief.troubles.model import TroubleEvent
from debrief.troubles.person import said
from debrief.troubles.steps import Course, Mishap, cost_of

VERSION = "11"
"""Raised when the same session gives other events."""


def events_of(session: Session, prices: Callable[[str], Price | None]) -> list[TroubleEvent]:
    """Return what went wrong in a session, in order.

    Of a message that made other calls too, only the share of the calls of the stretch counts. A
    call counts once among the events of a trouble: one within the stretch of an earlier event adds
    nothing to what it took.

    Args:
        session: in its normal form.
        prices: returns the price of a model by its name; None when it is not known.
    """
    course = Course(session)
    found = sorted(
        _mishaps(course), key=lambda mishap: (mishap.evidence.turn, mishap.at or session.started)
    )
    edits = sum(step.call.action == "edit" for strand in course.strands for step in strand)
    counted: dict[tuple[str, str], set[str]] = {}
    events = []
    for mishap in found:
        known = counted.setdefault((mishap.kind, mishap.subject), set())
        parts = course.parts_of(mishap, known)
        usage, cost, minutes = cost_of(parts, prices)
        is_nothing = not parts and bool(mishap.messages or mishap.steps)
        events.append(
            TroubleEvent(
                session_id=session.id,
                repository=session.repository,
                kind=mishap.kind,
                subject=mishap.subject,
                name=mishap.name,
                reason=mishap.reason,
                at=mishap.at or session.started,
                evidence=mishap.evidence,
                calls=tuple(step.call.id for step in mishap.steps),
                command=mishap.command,
                file=mishap.file,
                words=mishap.words,
                worked=mishap.worked,
                of_edits=edits if mishap.kind == "missed_edit" else 0,
                usage=usage,
                cost_usd=0.0 if is_nothing else cost,
                minutes=minutes,
            )
        )
    return events


def _mishaps(course: Course) -> Iterator[Mishap]:
    for strand in course.strands:
        yield from failures(strand)
    yield from said(course)
    yield from needless(course)
