"""Which sessions to look at first: facts as ranks among the person's own sessions of a kind.

An order is for looking, not for marking. Each fact of a session is its rank among the last 200
sessions of the same tool and kind of work; their weighted sum is a place from 0 (look first) to 1.
Below 20 such sessions there is no place.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from msgspec import Struct

from debrief.scoring.model import SessionKind

AMONG, LEAST_AMONG = 200, 20


class OrderedSession(Struct, frozen=True, kw_only=True):
    """The columns of a row of scores that the order is made of."""

    session_id: str
    started: datetime
    tool: str
    model: str
    status: str = "ok"
    kind: SessionKind = "unknown"
    facts: dict[str, float] = {}


class FactPlace(Struct, frozen=True):
    """One fact of a session, as a rank."""

    name: str
    rank: float
    """From 0 to 1: the share of the compared sessions that have less of it."""
    effect: float
    """How far it moved the place; below 0: towards "look first"."""


class Place(Struct, frozen=True, kw_only=True):
    """Where a session stands in the order."""

    place: float
    """From 0, to be looked at first, to 1: the share of the compared sessions that look worse."""
    among: int
    """Sessions that it was compared with, itself included."""
    facts: tuple[FactPlace, ...] = ()
    """The strongest first."""
    probability: float | None = None
    """That it did what was asked; only after labels of the user's own."""
    low: float | None = None
    high: float | None = None


LOOK_FIRST = 0.2
"""Places below it are the worst fifth: "look at these first"."""


def places_of(sessions: Iterable[OrderedSession], table: OrderTable) -> dict[str, Place]:
    """Return each session's place by its id; those that cannot be compared are left out."""
    raise SystemExit
