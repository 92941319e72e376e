"""Refits: what tables of success say of a family that they were fitted without, or to a part of."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Sequence
from hashlib import sha256
from typing import get_args

from debrief.offline.success import (
    GROWS_WITH_LENGTH,
    SuccessTable,
    TableKind,
    estimate,
    shipped_table,
)
from msgspec.structs import replace

from debrief.validity.measuring import Measured, Values
from debrief.validity.refitting import Row, refit
from tools.fit_table import table_of

LEFT_OUT, REFITTED = "order, family left out", "order, refitted"
REFITTED_PROBABILITY = "probability, refitted"
BASE_RATE = "probability, base rate of what was fitted"
NO_LENGTH = ", no length"
_FOLDS = 5

Prior = Callable[[str, frozenset[str]], SuccessTable]
"""Returns a table that does not know a family, without some facts."""


def with_refits(rows: Sequence[Measured], prior: Prior) -> list[Measured]:
    """Return the sessions with what other tables say of them.

    Each fifth of a family's tasks is fitted as ``debrief fit`` does, drawn to the table that does
    not know the family, and what comes of it is said of the next fifth: a fit that is no better on
    what it held out is not taken, and then there is no probability. A family with too few labels in
    a fifth is left as it is.
    """
    values: dict[str, Values] = {row.run.session_id: dict(row.values) for row in rows}
    for family in dict.fromkeys(row.run.family for row in rows):
        own = [row for row in rows if row.run.family == family]
        for without, suffix in ((frozenset[str](), ""), (GROWS_WITH_LENGTH, NO_LENGTH)):
            table = prior(family, without)
            for row in own:
                values[row.run.session_id][LEFT_OUT + suffix] = estimate(row.facts, table).order
            for session_id, order, probability, rate in _refitted(own, table):
                values[session_id][REFITTED + suffix] = order
                if not suffix and probability is not None:
                    values[session_id] |= {REFITTED_PROBABILITY: probability, BASE_RATE: rate}
    return [replace(row, values=values[row.run.session_id]) for row in rows]


def without_family(rows: Sequence[Measured]) -> Prior:
    """Return what finds the table that does not know a family.

    It is the shipped one where that was not fitted on the family; else one that is fitted in the
    same way to all other families here, without sessions of tasks that the family has too.
    """
    shipped = shipped_table()
    known = ", ".join(getattr(shipped, kind).fitted_on for kind in get_args(TableKind)).split(", ")

    def prior(family: str, without: frozenset[str]) -> SuccessTable:
        if family not in known:
            return without_facts(shipped, without)
        tasks = {row.run.task for row in rows if row.run.family == family}
        others = (row for row in rows if row.run.family != family)
        return table_of([row for row in others if row.run.task not in tasks], without)

    return prior


def without_facts(table: SuccessTable, names: Collection[str]) -> SuccessTable:
    """Return a table that does not weigh some facts, and gives an order alone."""
    kinds = {}
    for kind in get_args(TableKind):
        numbers = getattr(table, kind)
        terms = {name: term for name, term in numbers.terms.items() if name not in names}
        kinds[kind] = replace(numbers, terms=terms, intercept=None, covariance=())
    return SuccessTable(**kinds)


def _refitted(
    rows: Sequence[Measured], prior: SuccessTable
) -> Iterator[tuple[str, float, float | None, float]]:
    """Yield session ids with an order, a probability, and the rate of success in the labels fitted.

    The order is the rank, from −½ to ½, among all that the same table was not fitted to: orders of
    two tables are not comparable.
    """
    tasks = sorted({row.run.task for row in rows}, key=lambda task: sha256(task.encode()).digest())
    fold_of = {task: place % _FOLDS for place, task in enumerate(tasks)}
    folds = [[row for row in rows if fold_of[row.run.task] == fold] for fold in range(_FOLDS)]
    for place, fold in enumerate(folds):
        labelled = [Row(row.facts, row.run.success, row.run.task, "", "") for row in fold]
        made = refit(labelled, prior)
        if all(gain.missing for gain in made.gains):
            continue
        table, rate = made.table or prior, sum(row.success for row in labelled) / len(labelled)
        others = [row for row in rows if fold_of[row.run.task] != place]
        said = {row.run.session_id: estimate(row.facts, table) for row in others}
        orders = sorted(each.order for each in said.values() if each.order is not None)
        for row in folds[(place + 1) % _FOLDS]:
            found = said[row.run.session_id]
            if found.order is not None:
                rank = bisect_left(orders, found.order) / len(orders) - 0.5
                yield row.run.session_id, rank, found.probability, rate
