"""Whether a session did what was asked: an order before labels, a probability after.

A table of a few weights, one for each kind of session, is all that decides. Before there are
labels of the user's own it gives an order and no probability: from one family of sessions to the
next, base rates run from 4 to 89 %, and no table can know them. After ``fit`` on labelled
sessions it gives both. An end that breaks off, a failure that is admitted and a change that was
never made are guards: they rank a session below all that end well, whatever else it shows.
"""

from __future__ import annotations

import datetime as dt
import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Literal, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from debrief.markdown import counted
from debrief.offline.facts import Facts
from debrief.scoring.model import Reason, SessionKind, SuccessEstimate
from debrief.sessions.model import Evidence

if TYPE_CHECKING:
    from numpy.typing import NDArray

TableKind = Literal["coding", "service"]
GuardName = Literal["open", "admitted", "unchanged"]
_RANKED_BELOW: Mapping[GuardName, float] = {"open": 4.0, "admitted": 12.0, "unchanged": 4.0}
"""What a guard takes from the order: more than all facts together can give."""
_MOST = 3.0
"""Standard deviations from the mean beyond which a fact says no more."""
_SLIGHT = 0.02
"""Effects below it are no reason."""
_FEW_WRITTEN = 200
"""Characters below which the agent wrote too little to go by."""
_LONG_WAY = math.log1p(500)
"""Calls after which a session that broke off is as far as any."""


class Term(Struct, frozen=True):
    """A fact's weight, and what it usually is."""

    mean: float
    scale: float
    weight: float


class KindTable(Struct, frozen=True, kw_only=True):
    """What decides for one kind of session."""

    terms: dict[str, Term]
    guards: dict[GuardName, float]
    deciles: tuple[float, ...] = ()
    """Of the order, over the sessions that it was fitted on."""
    intercept: float | None = None
    """None before labels of the user's own: there is no probability then."""
    covariance: tuple[tuple[float, ...], ...] = ()
    """Of the weights, guards and intercept, in this order."""
    fitted_on: str = ""
    sessions: int = 0
    succeeded: int = 0
    date: str = ""
    licence: str = ""


class SuccessTable(Struct, frozen=True):
    """The fitted numbers of both kinds."""

    coding: KindTable
    service: KindTable

    def of(self, kind: SessionKind) -> KindTable | None:
        """Return the numbers for a kind; None where there are none."""
        return None if kind == "unknown" else getattr(self, kind)


def _last_check(facts: Facts, passed: bool) -> float:
    return float(facts.last_check is not None and facts.last_check.passed is passed)


VALUES: Mapping[str, Callable[[Facts], float]] = {
    "wrote": lambda facts: math.log1p(facts.wrote),
    "doubts": lambda facts: len(facts.doubts) / max(1, facts.messages),
    "errors": lambda facts: len(facts.errors) / max(1, facts.calls),
    "streak": lambda facts: math.log1p(len(facts.streak)),
    "repeats": lambda facts: len(facts.repeats) / max(1, facts.calls),
    "timeouts": lambda facts: float(bool(facts.timeouts)),
    "last_check_failed": lambda facts: _last_check(facts, passed=False),
    "last_check_passed": lambda facts: _last_check(facts, passed=True),
    "corrections": lambda facts: math.log1p(len(facts.corrections)),
}
"""The facts that a table weighs, as numbers."""
SPEAKS_FOR = frozenset(["last_check_passed"])
"""Facts whose weight may not be negative; that of all others may not be positive."""
GROWS_WITH_LENGTH = frozenset(["wrote", "streak"])
GUARDS: tuple[GuardName, ...] = get_args(GuardName)
GUARD_AT_MOST = -0.5
"""The weight of a guard is never nearer to 0: what it means is known without labels."""


def guards_of(facts: Facts) -> dict[GuardName, float]:
    """Return the guards that hold, as numbers.

    ``open`` is from 1 to 2, in steps: of what broke off, the less was done the further it was from
    its end.
    """
    done = min(1.0, round(20 * math.log1p(facts.calls) / _LONG_WAY) / 20)
    unchanged = facts.kind == "coding" and facts.asked_for_change and not facts.left
    return {
        "open": 0.0 if facts.ending == "closed" else 2.0 - done,
        "admitted": float(facts.admitted is not None),
        "unchanged": float(unchanged),
    }


def row_of(facts: Facts, table: KindTable) -> list[float]:
    """Return what the weights and guards of a table are multiplied with, and 1 at the end.

    What took little is no sign of success where the work broke off: facts count of a session
    that came to its end.
    """
    guards = guards_of(facts)
    at_end = not guards["open"]
    facts_ = (
        max(-_MOST, min(_MOST, (VALUES[name](facts) - term.mean) / term.scale)) * at_end
        for name, term in table.terms.items()
    )
    return [*facts_, *guards.values(), 1.0]


def estimate(facts: Facts, table: SuccessTable) -> SuccessEstimate:
    """Return how likely a session's success is, and why."""
    kind = table.of(facts.kind)
    if kind is None or (reason := _why_not(facts)):
        return SuccessEstimate(
            kind=facts.kind,
            cannot_tell="nothing shows what kind of work it was" if kind is None else reason,
        )
    row = row_of(facts, kind)
    weights = [*(term.weight for term in kind.terms.values()), *kind.guards.values()]
    effects = [weight * value for weight, value in zip(weights, row, strict=False)]
    below = [_RANKED_BELOW[name] * value for name, value in guards_of(facts).items()]
    order = math.fsum(effects) - math.fsum(below)
    estimated = SuccessEstimate(
        kind=facts.kind,
        order=order,
        rank=bisect_left(kind.deciles, order) / 10 if kind.deciles else None,
        reasons=_reasons(facts, kind, row, effects),
    )
    if kind.intercept is None:
        return estimated
    middle = math.fsum(effects) + kind.intercept
    reach = 1.96 * math.sqrt(max(0.0, _variance(row, kind.covariance)))
    return msgspec.structs.replace(
        estimated,
        probability=_sigmoid(middle),
        low=_sigmoid(middle - reach),
        high=_sigmoid(middle + reach),
    )


def _why_not(facts: Facts) -> str:
    if facts.ending != "closed" or facts.admitted:
        return ""
    if facts.wrote < _FEW_WRITTEN:
        return "too little was done"
    if facts.kind == "coding" and not facts.edits and not facts.asked_for_change:
        return "it was asked for an answer, and nothing shows whether it is right"
    return ""


def _variance(row: list[float], covariance: tuple[tuple[float, ...], ...]) -> float:
    return math.fsum(
        row[i] * row[j] * value for i, line in enumerate(covariance) for j, value in enumerate(line)
    )


def _sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, value))))


def _reasons(
    facts: Facts, table: KindTable, row: list[float], effects: list[float]
) -> tuple[Reason, ...]:
    named = zip((*table.terms, *table.guards), row, effects, strict=False)
    found = []
    for name, value, effect in named:
        if value and (abs(effect) >= _SLIGHT or name in table.guards):
            text, evidence = sentence_on(name, facts, table)
            found.append(Reason(text, effect, evidence[:3]))
    return tuple(sorted(found, key=lambda reason: (-abs(reason.effect), reason.text)))


_SAID = {
    "wrote": "the agent wrote {characters}{than}",
    "doubts": "a word that often goes with trouble (instead, wrong, wait …) is in {n} of {messages}"
    "{than}",
    "errors": "{n} of {calls} failed{than}",
    "streak": "at most {found} in a row failed",
    "repeats": "{n} of {calls} repeated an earlier one, with nothing changed in between",
    "timeouts": "{found} ran out of time",
    "corrections": "the person corrected the agent {times}",
    "open": "it breaks off without a closing answer",
    "interrupted": "the person interrupted it at the end",
    "limit": "a limit stopped it",
    "admitted": "the last message says that something was not achieved",
    "unchanged": "nothing was written or changed",
    "passed": "the last check{since} passed ({tool})",
    "failed": "the last check{since} failed ({tool})",
    "unknown": "no check with a known outcome followed the last edit",
}


def sentence_on(
    name: str, facts: Facts, usual: KindTable | None = None
) -> tuple[str, tuple[Evidence, ...]]:
    """Return what a session shows of a fact or a guard, in words, and where.

    Args:
        name: of the fact.
        facts: the session's.
        usual: what to compare with, where the fact is compared.
    """
    key, places, tool, than = name, getattr(facts, name, ()), "", ""
    if name.startswith("last_check"):
        run = facts.last_check
        key = "unknown" if run is None else "passed" if run.passed else "failed"
        places, tool = ((run.evidence,), run.tool) if run else ((), "")
    elif name in ("open", "admitted"):
        key = facts.ending if name == "open" else name
        place = facts.end if name == "open" else facts.admitted
        places = (place,) if place else ()
    elif usual is not None and name in usual.terms:
        more = VALUES[name](facts) > usual.terms[name].mean
        than = f", {'more' if more else 'less'} than usual"
    places = places if isinstance(places, tuple) else ()
    since = " since the last edit" if facts.edits else ""
    words = {
        "n": len(places),
        "found": counted(len(places), "call"),
        "times": counted(len(places), "time"),
        "calls": counted(facts.calls, "call"),
        "messages": counted(facts.messages, "message"),
        "characters": counted(facts.wrote, "character"),
    }
    return _SAID[key].format(**words, tool=tool, than=than, since=since), places


@cache
def shipped_table() -> SuccessTable:
    """Return the table that comes with the program."""
    text = (resources.files("debrief.offline") / "table.toml").read_bytes()
    return msgspec.toml.decode(text, type=SuccessTable)


LEAST = 20
"""Labelled sessions of a kind, with both outcomes among them, that a fit takes."""
STRENGTH = 40.0
"""How firmly weights are held to the earlier table, in sessions about."""


def fit(
    rows: Sequence[Facts],
    labels: Sequence[bool],
    tasks: Sequence[str],
    prior: SuccessTable,
    fitted_on: str = "labels of your own",
    strength: float = STRENGTH,
    least: int = LEAST,
) -> SuccessTable:
    """Return a table fitted to labelled sessions; of a kind with too few it stays the earlier one.

    Args:
        rows: the sessions' facts.
        labels: whether each succeeded.
        tasks: what each worked on; sessions of one task tell less than as many of several.
        prior: the table that weights are drawn to.
        fitted_on: what the sessions are, for the reader.
        strength: how firmly.
        least: labelled sessions of a kind that a fit takes.
    """
    kinds = {}
    for kind in get_args(TableKind):
        chosen = [
            at
            for at, facts in enumerate(rows)
            if facts.kind == kind and not estimate(facts, prior).cannot_tell
        ]
        succeeded = sum(bool(labels[at]) for at in chosen)
        earlier: KindTable = getattr(prior, kind)
        kinds[kind] = earlier
        if len(chosen) >= least and 0 < succeeded < len(chosen):
            facts_ = [rows[at] for at in chosen]
            found = _fitted(
                [row_of(facts, earlier) for facts in facts_],
                [bool(labels[at]) for at in chosen],
                [tasks[at] for at in chosen],
                earlier,
                strength,
            )
            kinds[kind] = replace(
                found,
                fitted_on=fitted_on,
                sessions=len(chosen),
                succeeded=succeeded,
                date=dt.datetime.now(dt.UTC).date().isoformat(),
                licence="",
            )
    table = SuccessTable(**kinds)
    return SuccessTable(**{kind: _with_deciles(kind, table, rows) for kind in get_args(TableKind)})


def _fitted(
    rows: list[list[float]],
    labels: list[bool],
    tasks: list[str],
    prior: KindTable,
    strength: float,
) -> KindTable:
    import numpy as np

    x, y = np.array(rows), np.array(labels, dtype=float)
    names = [*prior.terms, *prior.guards]
    towards = np.array([*(t.weight for t in prior.terms.values()), *prior.guards.values(), 0.0])
    held = np.array([strength] * len(names) + [0.1])
    bounds = [_bounds(name) for name in names]
    weights = minimum(x, y, np.ones(len(y)), towards, held, [*bounds, (None, None)])
    share = 1 / (1 + np.exp(-(x @ weights)))
    hessian = (x * (share * (1 - share))[:, None]).T @ x + np.diag(held)
    inverse = np.linalg.inv(hessian)
    _, place = np.unique(tasks, return_inverse=True)
    scores: NDArray[Any] = np.zeros((place.max() + 1, x.shape[1]))
    np.add.at(scores, place, x * (y - share)[:, None])
    covariance = inverse @ (scores.T @ scores + np.diag(held)) @ inverse
    found = [float(weight) for weight in weights]
    terms = {
        name: Term(term.mean, term.scale, weight)
        for (name, term), weight in zip(prior.terms.items(), found, strict=False)
    }
    guards = dict(zip(GUARDS, found[len(terms) : -1], strict=True))
    lines = tuple(tuple(map(float, line)) for line in covariance)
    return replace(prior, terms=terms, guards=guards, intercept=found[-1], covariance=lines)


def _bounds(name: str) -> tuple[float | None, float | None]:
    if name in GUARDS:
        return None, GUARD_AT_MOST
    return (0.0, None) if name in SPEAKS_FOR else (None, 0.0)


def minimum(
    x: NDArray[Any],
    y: NDArray[Any],
    importance: NDArray[Any],
    towards: NDArray[Any],
    held: NDArray[Any],
    bounds: list[tuple[float | None, float | None]],
) -> NDArray[Any]:
    """Return the weights within bounds that explain the labels best.

    Args:
        x: a row a session.
        y: 1 for success.
        importance: of each session.
        towards: the weights that there is no reason to leave.
        held: how firmly, by weight.
        bounds: of each weight.
    """
    import numpy as np
    from scipy.optimize import minimize

    def loss(weights: NDArray[Any]) -> tuple[float, NDArray[Any]]:
        odds, away = x @ weights, weights - towards
        value = importance @ (np.logaddexp(0, odds) - y * odds) + 0.5 * held @ away**2
        slope = x.T @ (importance * (1 / (1 + np.exp(-odds)) - y)) + held * away
        return float(value), slope

    found = minimize(loss, towards, jac=True, bounds=bounds, method="L-BFGS-B")
    weights: NDArray[Any] = found.x
    return weights


def _with_deciles(kind: TableKind, table: SuccessTable, rows: Sequence[Facts]) -> KindTable:
    """Return a kind's numbers with the deciles of its order over these sessions."""
    import numpy as np

    orders = [estimate(facts, table).order for facts in rows if facts.kind == kind]
    known = [order for order in orders if order is not None]
    numbers: KindTable = getattr(table, kind)
    if len(known) < LEAST:
        return numbers
    deciles = np.quantile(known, np.linspace(0.1, 0.9, 9))
    return replace(numbers, deciles=tuple(map(float, deciles)))
