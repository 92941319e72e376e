"""What is left of troubles when one of their sessions is forgotten."""

from __future__ import annotations

from debrief.forgetting.pruning import pruned_row
from debrief.forgetting.signs import Signs
from debrief.tables import TABLES
from debrief.troubles.finding import events_of
from debrief.troubles.grouping import find_troubles
from debrief.troubles.model import EVENTS, TROUBLES, Trouble, TroubleEvent
from tests.troubles.scenario import day, prices
from tests.troubles.test_failures import wrong_runner


def test_a_forgotten_session_leaves_no_event_and_no_example() -> None:
    gone, *kept = [day(number, wrong_runner()) for number in range(3)]
    events = [event for session in (gone, *kept) for event in events_of(session, prices)]
    (trouble,) = find_troubles(events, {"shop": 3})
    signs = Signs(frozenset({gone.id}), frozenset(session.id for session in kept), frozenset())
    signs.learn(gone)
    assert (TABLES[EVENTS].rows, TABLES[TROUBLES].rows) == (TroubleEvent, Trouble)
    left = [pruned_row(event, signs, may_quote=TABLES[EVENTS].may_quote) for event in events]
    assert left == [None, *events[1:]]
    pruned = pruned_row(trouble, signs, may_quote=TABLES[TROUBLES].may_quote)
    assert pruned is None or gone.id not in repr(pruned)
