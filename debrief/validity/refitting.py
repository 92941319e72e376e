"""Refit the order to a lake's labels, and measure the gain on tasks left out of the fit.

Tasks are dealt into five folds. What a table says of a fold was fitted on the other four, so no
figure is of sessions that a fit has seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import get_args

from msgspec import Struct
from msgspec.structs import replace

from debrief import stats
from debrief.signals.extract import SessionKind
from debrief.keys import digest_of
from debrief.lake import Lake
from debrief.markdown import counted, interval
from debrief.outcomes.store import Success, success_labels
from debrief.scoring.order import (
    LEAST,
    OrderedSession,
    OrderTable,
    TableKind,
    fit,
    places_of,
)
from debrief.stats import Estimate

_FOLDS = 5
_ONE_SIDED = 0.52 / 1.96
"""Of an interval of 95 %, what leaves 30 % on one side alone."""
_LEAST_FITTED = 10
"""Labelled sessions that the other folds need together."""


class LabelledOrder(Struct, frozen=True):
    """A person's sessions, and whether the work was done, where that is known."""

    sessions: tuple[OrderedSession, ...]
    """All of them: labelled ones are ranked among them."""
    labels: Mapping[str, Success]
    """By session."""


class Gain(Struct, frozen=True, kw_only=True):
    """What refitting comes to for one kind of session."""

    kind: TableKind
    sessions: int
    done: int
    sources: dict[str, int]
    """Labelled sessions by who says so, the most first."""
    tested: int = 0
    """Held-out sessions."""
    before: Estimate | None = None
    """AUROC of the place by the table before; None where it is not defined."""
    refitted: Estimate | None = None
    """AUROC of the probability by tables that were fitted on other tasks."""
    gained: Estimate | None = None
    brier: Estimate | None = None
    """Brier score of the probability minus that of the base rate: below 0 is better."""

    @property
    def missing(self) -> str:
        """Return what is missing for a fit; empty when nothing is."""
        failed = self.sessions - self.done
        more = max(LEAST - self.sessions, int(not self.done or not failed))
        if not more:
            return ""
        other = "success" if failed else "failure"
        none = "" if self.done and failed else f", with a {other} among them"
        return f"{more} more labelled sessions are needed{none}"

    @property
    def is_better(self) -> bool:
        """Return whether the probability most likely beats the base rate on held-out tasks."""
        if self.brier is None:
            return False
        return self.brier.value + _ONE_SIDED * (self.brier.high - self.brier.value) < 0


class Refit(Struct, frozen=True):
    """A refitted table, and what it gains."""

    table: OrderTable | None
    """None when no kind gains."""
    taken: tuple[TableKind, ...]
    """Kinds whose weights are the refitted ones."""
    gains: tuple[Gain, ...]


def rows_of_lake(lake: Lake, sources: Collection[str]) -> LabelledOrder:
    """Return a lake's sessions, and the labels of success that these sources give."""
    sessions = lake.rows("session_scores", OrderedSession)
    return LabelledOrder(tuple(sessions), success_labels(lake, sources))


def refit(rows: LabelledOrder, prior: OrderTable, *, force: bool = False) -> Refit:
    """Return the table that fits labelled sessions, as far as it beats the base rate elsewhere.

    Args:
        rows: all sessions, and the labels.
        prior: the table that weights are held to.
        force: take also what is no better, or could not be tested.
    """
    gains = tuple(_gains(rows, prior))
    taken = tuple(gain.kind for gain in gains if not gain.missing and (force or gain.is_better))
    if not taken:
        return Refit(None, (), gains)
    table = _fitted(rows, prior, rows.labels)
    return Refit(replace(prior, **{kind: getattr(table, kind) for kind in taken}), taken, gains)


def _fitted(
    rows: LabelledOrder, prior: OrderTable, labels: Mapping[str, Success], least: int = LEAST
) -> OrderTable:
    said = Counter(label.source for label in labels.values()).most_common()
    return fit(
        rows.sessions,
        {id_: label.success for id_, label in labels.items()},
        {id_: label.task for id_, label in labels.items()},
        prior,
        fitted_on=f"labels of your own: {', '.join(f'{count} {name}' for name, count in said)}",
        least=least,
    )


def _gains(rows: LabelledOrder, prior: OrderTable) -> Iterator[Gain]:
    before = places_of(rows.sessions, prior)
    kinds: dict[str, TableKind] = {
        row.session_id: _table_kind(row.kind)
        for row in rows.sessions
        if row.session_id in before and row.session_id in rows.labels
    }
    held_out = dict(_held_out(rows, prior, [*kinds]))
    for kind in get_args(TableKind):
        own = [id_ for id_ in sorted(kinds) if kinds[id_] == kind]
        labels = [rows.labels[id_] for id_ in own]
        if not own:
            continue
        gain = Gain(
            kind=kind,
            sessions=len(own),
            done=sum(label.success for label in labels),
            sources=dict(Counter(str(label.source) for label in labels).most_common()),
        )
        tested = [id_ for id_ in own if id_ in held_out]
        if gain.missing or not tested:
            yield gain
            continue
        places = [before[id_].place for id_ in tested]
        yield _tested(gain, rows.labels, tested, places, [held_out[id_] for id_ in tested])


def _table_kind(kind: SessionKind) -> TableKind:
    return "service" if kind == "service" else "coding"


def _held_out(
    rows: LabelledOrder, prior: OrderTable, ids: Sequence[str]
) -> Iterator[tuple[str, float]]:
    """Yield sessions with the probability by a table that was fitted on other tasks."""
    folds = {id_: int(digest_of(rows.labels[id_].task), 16) % _FOLDS for id_ in ids}
    for fold in range(_FOLDS):
        others = {id_: rows.labels[id_] for id_ in ids if folds[id_] != fold}
        places = places_of(rows.sessions, _fitted(rows, prior, others, _LEAST_FITTED))
        for id_ in ids:
            probability = places[id_].probability
            if folds[id_] == fold and probability is not None:
                yield id_, probability


def _tested(
    gain: Gain,
    labels: Mapping[str, Success],
    tested: Sequence[str],
    places: Sequence[float],
    probabilities: Sequence[float],
) -> Gain:
    import numpy as np

    done = np.array([labels[id_].success for id_ in tested])
    weights = stats.resampled([labels[id_].task for id_ in tested])
    old = stats.auroc(np.array(places), done, weights)
    new = stats.auroc(np.array(probabilities), done, weights)
    brier = stats.brier_excess(np.array(probabilities), done, weights)
    return replace(
        gain,
        tested=len(tested),
        before=stats.estimate_of(old),
        refitted=stats.estimate_of(new),
        gained=stats.estimate_of(new - old),
        brier=stats.estimate_of(brier),
    )


def gain_text(gain: Gain) -> str:
    """Return in words what refitting comes to for one kind of session."""
    sources = ", ".join(f"{count} {source}" for source, count in gain.sources.items())
    head = (
        f"{gain.kind}: {counted(gain.sessions, 'labelled session')} ({sources}), {gain.done} done"
    )
    if gain.missing:
        return f"{head}. {gain.missing}."
    lines = [f"{head}; tested on {gain.tested} of held-out tasks"]
    for name, value, form in (
        ("AUROC, table before", gain.before, ".3f"),
        ("AUROC, refitted", gain.refitted, ".3f"),
        ("AUROC gained", gain.gained, "+.3f"),
        ("Brier score minus the base rate's", gain.brier, "+.3f"),
    ):
        if value is not None:
            lines.append(f"  {name:34} {interval(value.value, value.low, value.high, form)}")
    if gain.brier is None:
        lines.append("  Too few held-out tasks to say what it gains.")
    elif not gain.is_better:
        lines.append("  It is not clearly better than the base rate on held-out tasks.")
    elif gain.gained is not None and gain.gained.low <= 0 <= gain.gained.high:
        labels = counted(gain.sessions, "label")
        lines.append(f"  With your {labels} the order's gain cannot be told from chance.")
    return "\n".join(lines)
