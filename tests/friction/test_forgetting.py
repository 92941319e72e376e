"""What is left of recurring friction when one of its sessions is forgotten."""

from __future__ import annotations

from debrief.forgetting.pruning import pruned_row
from debrief.forgetting.signs import Signs
from debrief.friction.failed_commands import failed_commands
from debrief.friction.grouping import recurring_failures
from debrief.friction.schema import EVENTS, RECURRING, FrictionEvent, RecurringFriction
from debrief.tables import TABLES
from tests.friction.scenario import day, prices
from tests.friction.test_failures import wrong_runner


def test_a_forgotten_session_leaves_no_event_and_no_example() -> None:
    gone, *kept = [day(number, wrong_runner()) for number in range(3)]
    events = [event for session in (gone, *kept) for event in failed_commands(session, prices)]
    (friction,) = recurring_failures(events)
    signs = Signs(frozenset({gone.id}), frozenset(session.id for session in kept), frozenset())
    signs.learn(gone)
    assert (TABLES[EVENTS].rows, TABLES[RECURRING].rows) == (FrictionEvent, RecurringFriction)
    left = [pruned_row(event, signs, may_quote=TABLES[EVENTS].may_quote) for event in events]
    assert left == [None, *events[1:]]
    pruned = pruned_row(friction, signs, may_quote=TABLES[RECURRING].may_quote)
    assert pruned is None or gone.id not in repr(pruned)
