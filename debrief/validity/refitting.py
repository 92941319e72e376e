"""Refitting the table of success to a lake's own labels, and what that gains in later weeks.

What is gained is measured on sessions that no fit has seen: of the later half of the labelled
sessions, each stretch of weeks is estimated with a table that was fitted on the weeks before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, get_args

from msgspec import Struct
from msgspec.structs import replace

from debrief import stats
from debrief.keys import digest_of, week_of
from debrief.lake import Lake
from debrief.markdown import counted, interval
from debrief.offline.facts import Facts, facts_of
from debrief.offline.success import LEAST, SuccessTable, TableKind, estimate, fit
from debrief.outcomes.store import labelled_sessions, success_labels
from debrief.sessions.model import Session
from debrief.sessions.store import SESSIONS_TABLE
from debrief.stats import Estimate

if TYPE_CHECKING:
    from debrief.stats import Floats

_STRETCHES = 6
"""Most fits for one measurement."""
_ONE_SIDED = 0.52 / 1.96
"""Of an interval of 95 %, what leaves 30 % on one side alone."""
_LEAST_BEFORE = 10
"""Labelled sessions that the weeks before must have."""


class Row(NamedTuple):
    """A labelled session."""

    facts: Facts
    success: bool
    task: str
    week: str
    source: str


class Gain(Struct, frozen=True, kw_only=True):
    """What refitting comes to for one kind of session."""

    kind: TableKind
    sessions: int = 0
    succeeded: int = 0
    sources: tuple[tuple[str, int], ...] = ()
    """Labelled sessions by who says whether they succeeded, the most first."""
    held_out: str = "weeks"
    """``tasks`` where all sessions are of one week."""
    tested: int = 0
    """Sessions of held-out weeks."""
    shipped: Estimate | None = None
    """AUROC of the table before; None where it is not defined."""
    refitted: Estimate | None = None
    gained: Estimate | None = None
    """AUROC of the refitted table minus that of the one before."""
    brier: Estimate | None = None
    """Brier score of P(success) minus that of the base rate, which is better below 0."""

    @property
    def missing(self) -> str:
        """Return what is missing for a fit; empty when nothing is."""
        failed = self.sessions - self.succeeded
        more = max(LEAST - self.sessions, int(not self.succeeded or not failed))
        if not more:
            return ""
        none = "" if self.succeeded and failed else f", with a {_OTHER[bool(failed)]} among them"
        return f"{more} more labelled sessions are needed{none}"

    @property
    def shortfall(self) -> str:
        """Return why the refitted numbers are not better than those before; empty if they are."""
        if self.brier is None:
            return f"too few held-out {self.held_out} to tell"
        likely = self.brier.value + _ONE_SIDED * (self.brier.high - self.brier.value)
        no_better = "P(success) is not clearly better than the base rate on held-out"
        return f"{no_better} {self.held_out}" if likely >= 0 else ""


_OTHER = {True: "success", False: "failure"}


def gain_text(gain: Gain) -> str:
    """Return in words what refitting comes to for one kind of session."""
    sources = ", ".join(f"{count} {source}" for source, count in gain.sources)
    head = (
        f"{gain.kind}: {counted(gain.sessions, 'labelled session')} ({sources}), "
        f"{gain.succeeded} succeeded"
    )
    if gain.missing:
        return f"{head}. {gain.missing}."
    lines = [f"{head}; tested on {gain.tested} of held-out {gain.held_out}"]
    for name, value, form in (
        ("AUROC, table before", gain.shipped, ".3f"),
        ("AUROC, refitted", gain.refitted, ".3f"),
        ("AUROC gained", gain.gained, "+.3f"),
        ("Brier score minus the base rate's", gain.brier, "+.3f"),
    ):
        if value is not None:
            lines.append(f"  {name:34} {interval(value.value, value.low, value.high, form)}")
    if gain.shortfall:
        lines.append(f"  not taken: {gain.shortfall}; --force takes it all the same")
    return "\n".join(lines)


class Refit(NamedTuple):
    """A refitted table, and what it gains."""

    table: SuccessTable | None
    """With the numbers before for every kind that is not taken; None when none is."""
    taken: tuple[TableKind, ...]
    gains: tuple[Gain, ...]


def rows_of_lake(lake: Lake, sources: Collection[str]) -> list[Row]:
    """Return the labelled sessions of a lake with their facts, by start.

    Args:
        lake: with sessions and labels.
        sources: that may say whether a session succeeded.
    """
    labels = success_labels(lake, sources)
    starts = (one.started for one in labelled_sessions(lake) if one.id in labels)
    found: list[tuple[datetime, str, Row]] = []
    for week in sorted({week_of(started) for started in starts}):
        for session in lake.read(SESSIONS_TABLE, week, Session, ("id", labels.keys())):
            known = labels[session.id]
            row = Row(facts_of(session), known.success, known.task, week, known.source)
            found.append((session.started, session.id, row))
    return [row for _, _, row in sorted(found, key=lambda each: each[:2])]


def refit(rows: Sequence[Row], prior: SuccessTable, *, force: bool = False) -> Refit:
    """Return the table that fits labelled sessions, as far as it is better on later ones.

    Args:
        rows: by start.
        prior: the table that weights are held to.
        force: take also what is no better, or could not be tested.
    """
    gains = tuple(_gains(rows, prior))
    taken = tuple(gain.kind for gain in gains if not gain.missing and (force or not gain.shortfall))
    if not taken:
        return Refit(None, (), gains)
    table = _fitted(rows, prior)
    return Refit(replace(prior, **{kind: getattr(table, kind) for kind in taken}), taken, gains)


def _fitted(rows: Sequence[Row], prior: SuccessTable, least: int = LEAST) -> SuccessTable:
    said = ", ".join(f"{count} {source}" for source, count in _sources(rows))
    facts, labels, tasks, _, _ = zip(*rows, strict=True)
    return fit(facts, labels, tasks, prior, f"labels of your own: {said}", least=least)


def _gains(rows: Sequence[Row], prior: SuccessTable) -> Iterator[Gain]:
    known = [row for row in rows if not estimate(row.facts, prior).cannot_tell]
    for kind in get_args(TableKind):
        if own := [row for row in known if row.facts.kind == kind]:
            yield _gain(kind, own, prior)


def _sources(rows: Iterable[Row]) -> list[tuple[str, int]]:
    return Counter(row.source for row in rows).most_common()


def _gain(kind: TableKind, rows: Sequence[Row], prior: SuccessTable) -> Gain:
    import numpy as np

    weeks = len({row.week for row in rows}) > 1
    known = Gain(
        kind=kind,
        sessions=len(rows),
        succeeded=sum(row.success for row in rows),
        sources=tuple(_sources(rows)),
        held_out="weeks" if weeks else "tasks",
    )
    if known.missing:
        return known
    if not weeks:  # each task's sessions together, the tasks in an order that says nothing
        rows = sorted(rows, key=lambda row: digest_of(row.task))
    tested = list(_held_out(rows, prior, weeks))
    if not tested:
        return known
    held, before, after = zip(*tested, strict=True)
    success = np.array([row.success for row in held])
    weights = stats.resampled([row.task for row in held])
    old = stats.auroc(np.array(before), success, weights)
    new = stats.auroc(np.array(after), success, weights)
    brier = stats.brier_excess(np.array(after), success, weights)
    names = ("shipped", "refitted", "gained", "brier")
    values: Iterable[Floats] = (old, new, new - old, brier)
    estimates = dict(zip(names, map(stats.estimate_of, values), strict=True))
    return replace(known, tested=len(held), **estimates)


def _held_out(
    rows: Sequence[Row], prior: SuccessTable, weeks: bool
) -> Iterator[tuple[Row, float, float]]:
    """Yield the sessions of held-out groups, the order of the table before, and P(success)."""
    groups = [row.week if weeks else row.task for row in rows]
    starts = [at for at in range(1, len(rows)) if groups[at] != groups[at - 1]]
    starts = [at for at in starts if at >= max(_LEAST_BEFORE, len(rows) // 2)]
    step = -(-len(starts) // _STRETCHES) or 1
    cuts = [*starts[::step], len(rows)]
    for start, end in pairwise(cuts):
        earlier = rows[:start]
        if len({row.success for row in earlier}) < 2:
            continue
        table, seen = _fitted(earlier, prior, least=_LEAST_BEFORE), {row.task for row in earlier}
        for row in rows[start:end]:
            new, old = estimate(row.facts, table), estimate(row.facts, prior)
            if row.task not in seen and new.probability is not None and old.order is not None:
                yield row, old.order, new.probability
