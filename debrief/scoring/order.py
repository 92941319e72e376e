"""Rank sessions by facts, among the person's own of a kind: the first ones need a look.

An order is for looking, not for marking. Each fact of a session is its rank among the last 200
sessions of the same tool and kind of work; the ranks' weighted sum gives a place, from 0 (look
first) to 1. Below 20 such sessions there is none.

From 20 labelled sessions on, the same sum is fitted to them with free signs; then it is also a
probability that the work was done.
"""

from __future__ import annotations

import datetime as dt
import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Literal, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from debrief.signals.extract import Facts, SessionKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

AMONG = 200
"""Sessions of the same tool and kind that one is compared with: the last ones before it and it."""
LEAST_AMONG = 20
LOOK_FIRST = 0.2
"""Places below it are the worst fifth: "look at these first"."""
TableKind = Literal["coding", "service"]


def _per_call(places: Sequence[object], facts: Facts) -> float:
    return len(places) / max(1, facts.calls)


def _share_passed(facts: Facts) -> float:
    """Return the share of the checks that passed: their number says mostly how long it took."""
    return sum(run.passed is True for run in facts.checks) / max(1, len(facts.checks))


VALUES: Mapping[str, Callable[[Facts], float]] = {
    "errors": lambda facts: _per_call(facts.errors, facts),
    "streak": lambda facts: float(len(facts.streak)),
    "repeats": lambda facts: _per_call(facts.repeats, facts),
    "timeouts": lambda facts: float(len(facts.timeouts)),
    "last_check_failed": lambda facts: float(_last(facts) is False),
    "last_check_passed": lambda facts: float(_last(facts) is True),
    "checks_passed": _share_passed,
    "seen_failing": lambda facts: float(facts.failed_before is not None),
    "corrections": lambda facts: float(len(facts.corrections)),
    "interruptions": lambda facts: float(len(facts.interruptions) + len(facts.rejections)),
    "broke_off": lambda facts: float(facts.broke_off),
    "unchanged": lambda facts: float(not facts.edits),
    "closing": lambda facts: float(facts.closing),
    "asked": lambda facts: float(facts.asked),
}
"""What the order is made of, as numbers whose ranks count."""


def _last(facts: Facts) -> bool | None:
    return None if facts.last_check is None else facts.last_check.passed


def values_of(facts: Facts) -> dict[str, float]:
    """Return the facts of a session that the order is made of, by name."""
    return {name: value(facts) for name, value in VALUES.items()}


class OrderedSession(Struct, frozen=True, kw_only=True):
    """The columns of a row of scores that the order is made of."""

    session_id: str
    started: datetime
    tool: str
    model: str = ""
    kind: SessionKind = "unknown"
    facts: dict[str, float] = {}


class FactPlace(Struct, frozen=True):
    """One fact of a session, as a rank."""

    name: str
    rank: float
    """From 0 to 1: the share of the compared sessions that have less of it, ties counted half."""
    effect: float
    """How far it moved the session's place; below 0: towards "look first"."""


class OrderPlace(Struct, frozen=True, kw_only=True):
    """Where a session stands in the order."""

    place: float
    """From 0, to be looked at first, to 1: the share of the compared sessions that look worse."""
    among: int
    """Sessions that it was compared with, itself included."""
    facts: tuple[FactPlace, ...] = ()
    """The strongest first."""
    probability: float | None = None
    """That what was asked was done; only after labels of the user's own."""
    low: float | None = None
    high: float | None = None
    """The interval that holds the probability 19 times in 20."""

    @property
    def look_first(self) -> bool:
        """Return whether it is one of the worst fifth."""
        return self.place < LOOK_FIRST


class KindTable(Struct, frozen=True, kw_only=True):
    """The weights for one kind of work."""

    weights: dict[str, float]
    """By fact, of its rank from -1 to 1; below 0: more of it speaks against the session."""
    intercept: float | None = None
    """None before labels of the user's own: there is no probability then."""
    covariance: tuple[tuple[float, ...], ...] = ()
    """Of the weights and the intercept, in this order."""
    fitted_on: str = ""
    sessions: int = 0
    done: int = 0
    date: str = ""


class OrderTable(Struct, frozen=True):
    """The weights of both kinds of work."""

    coding: KindTable
    service: KindTable

    def of(self, kind: SessionKind) -> KindTable:
        """Return the weights for a kind; those of coding where the kind is not known."""
        return self.service if kind == "service" else self.coding


@cache
def shipped_table() -> OrderTable:
    """Return the table that comes with the program."""
    text = (resources.files("debrief.scoring") / "order.toml").read_bytes()
    return msgspec.toml.decode(text, type=OrderTable)


def ranks_of(sessions: Iterable[OrderedSession]) -> dict[str, tuple[dict[str, float], int]]:
    """Return each session's ranks by fact, and how many it was compared with, by its id.

    A session that has fewer than 20 before and with it is compared with the first 20 of its tool
    and kind; where there are fewer, it has no ranks. Of a session that several models scored, one
    row counts.
    """
    groups: dict[tuple[str, SessionKind], dict[str, OrderedSession]] = defaultdict(dict)
    for session in sessions:
        if session.facts:
            groups[session.tool, session.kind].setdefault(session.session_id, session)
    found = {}
    for group in groups.values():
        rows = sorted(group.values(), key=lambda row: (row.started, row.session_id))
        if len(rows) < LEAST_AMONG:
            continue
        for at, row in enumerate(rows):
            end = max(at + 1, LEAST_AMONG)
            among = rows[max(0, end - AMONG) : end]
            ranks = {
                name: _rank(value, sorted(other.facts.get(name, 0.0) for other in among))
                for name, value in row.facts.items()
            }
            found[row.session_id] = ranks, len(among)
    return found


def _rank(value: float, ordered: Sequence[float]) -> float:
    return (bisect_left(ordered, value) + bisect_right(ordered, value)) / (2 * len(ordered))


def places_of(
    sessions: Iterable[OrderedSession], table: OrderTable | None = None
) -> dict[str, OrderPlace]:
    """Return each session's place by its id; those that cannot be compared are left out.

    Args:
        sessions: all of the person's, of any weeks.
        table: the weights; the shipped ones by default.
    """
    rows = list(sessions)
    weights = table or shipped_table()
    ranks = ranks_of(rows)
    kinds = {row.session_id: row.kind for row in rows}
    groups: dict[tuple[str, SessionKind], list[tuple[datetime, str, float]]] = defaultdict(list)
    effects: dict[str, list[FactPlace]] = {}
    for row in rows:
        if row.session_id not in ranks or row.session_id in effects:
            continue
        moved = [
            FactPlace(name, rank, weight * (2 * rank - 1))
            for name, weight in weights.of(row.kind).weights.items()
            for rank in [ranks[row.session_id][0].get(name, 0.5)]
        ]
        effects[row.session_id] = sorted(
            moved, key=lambda fact_place: (-abs(fact_place.effect), fact_place.name)
        )
        total = math.fsum(fact_place.effect for fact_place in moved)
        groups[row.tool, row.kind].append((row.started, row.session_id, total))
    places = {}
    for group in groups.values():
        group.sort()
        for at, (_, session_id, total) in enumerate(group):
            end = max(at + 1, LEAST_AMONG)
            among = sorted(total for _, _, total in group[max(0, end - AMONG) : end])
            places[session_id] = _with_probability(
                OrderPlace(
                    place=_rank(total, among),
                    among=len(among),
                    facts=tuple(effect for effect in effects[session_id] if effect.effect),
                ),
                weights.of(kinds[session_id]),
                ranks[session_id][0],
            )
    return places


def _with_probability(
    place: OrderPlace, table: KindTable, ranks: Mapping[str, float]
) -> OrderPlace:
    if table.intercept is None:
        return place
    row = _row(ranks, table)
    middle = math.fsum(
        v * w for v, w in zip(row, [*table.weights.values(), table.intercept], strict=True)
    )
    variance = math.fsum(
        row[i] * row[j] * value
        for i, line in enumerate(table.covariance)
        for j, value in enumerate(line)
    )
    reach = 1.96 * math.sqrt(max(0.0, variance))
    return replace(
        place,
        probability=_sigmoid(middle),
        low=_sigmoid(middle - reach),
        high=_sigmoid(middle + reach),
    )


def _row(ranks: Mapping[str, float], table: KindTable) -> list[float]:
    return [*(2 * ranks.get(name, 0.5) - 1 for name in table.weights), 1.0]


def _sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, value))))


LEAST = 20
"""Labelled sessions of a kind, with both outcomes among them, that a fit takes."""
STRENGTH = 15.0
"""How firmly weights are held to the earlier table, in sessions about."""


def fit(
    sessions: Sequence[OrderedSession],
    done: Mapping[str, bool],
    tasks: Mapping[str, str],
    prior: OrderTable | None = None,
    *,
    fitted_on: str = "labels of your own",
    strength: float = STRENGTH,
    least: int = LEAST,
) -> OrderTable:
    """Return a table fitted to labelled sessions; of a kind with too few it stays the earlier one.

    Args:
        sessions: all of the person's: labelled ones are ranked among them.
        done: whether what was asked was done, by session.
        tasks: what each worked on; sessions of one task tell less than as many of several.
        prior: the table that weights are held to; the shipped one by default.
        fitted_on: what the sessions are, for the reader.
        strength: how firmly weights are held.
        least: labelled sessions of a kind that a fit takes.
    """
    earlier, ranks = prior or shipped_table(), ranks_of(sessions)
    kinds: dict[str, KindTable] = {}
    for kind in get_args(TableKind):
        table: KindTable = getattr(earlier, kind)
        rows = {
            row.session_id: row
            for row in sessions
            if row.session_id in ranks and row.session_id in done and earlier.of(row.kind) is table
        }
        labels = [done[id_] for id_ in rows]
        kinds[kind] = table
        if len(rows) >= least and 0 < sum(labels) < len(rows):
            weighed = replace(table, weights=dict.fromkeys(VALUES, 0.0) | table.weights)
            fitted = _fitted(
                [_row(ranks[id_][0], weighed) for id_ in rows],
                labels,
                [tasks.get(id_, id_) for id_ in rows],
                weighed,
                strength,
            )
            kinds[kind] = replace(
                fitted,
                fitted_on=fitted_on,
                sessions=len(rows),
                done=sum(labels),
                date=dt.datetime.now(dt.UTC).date().isoformat(),
            )
    return OrderTable(**kinds)


def _fitted(
    rows: list[list[float]],
    labels: Sequence[bool],
    tasks: Sequence[str],
    prior: KindTable,
    strength: float,
) -> KindTable:
    """Return the weights that explain the labels best, held to the earlier ones."""
    import numpy as np
    from scipy.optimize import minimize

    x, y = np.array(rows), np.array(labels, dtype=float)
    towards = np.array([*prior.weights.values(), 0.0])
    held = np.array([strength] * len(prior.weights) + [0.1])

    def loss(weights: NDArray[Any]) -> tuple[float, NDArray[Any]]:
        odds, away = x @ weights, weights - towards
        value = np.sum(np.logaddexp(0, odds) - y * odds) + 0.5 * held @ away**2
        slope = x.T @ (1 / (1 + np.exp(-odds)) - y) + held * away
        return float(value), slope

    weights = minimize(loss, towards, jac=True, method="L-BFGS-B").x
    share = 1 / (1 + np.exp(-(x @ weights)))
    hessian = (x * (share * (1 - share))[:, None]).T @ x + np.diag(held)
    inverse = np.linalg.inv(hessian)
    _, place = np.unique(list(tasks), return_inverse=True)
    scores = np.zeros((int(place.max()) + 1, x.shape[1]))
    np.add.at(scores, place, x * (y - share)[:, None])
    covariance = inverse @ (scores.T @ scores + np.diag(held)) @ inverse
    found = [float(weight) for weight in weights]
    return replace(
        prior,
        weights=dict(zip(prior.weights, found[:-1], strict=True)),
        intercept=found[-1],
        covariance=tuple(tuple(map(float, line)) for line in covariance),
    )
