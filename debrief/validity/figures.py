"""Figures: agreement with those who know, each with its interval.

Families are never pooled where sessions are ordered: their base rates differ, and a score
that only knows the family would look good.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from debrief import stats
from debrief.scoring.model import SessionScores
from debrief.scoring.order import LOOK_FIRST
from debrief.scoring.verdict import COMPLETE, VERDICT_NAMES
from debrief.stats import Estimate
from debrief.validity.changes import CHANGES
from debrief.validity.measuring import Measured

if TYPE_CHECKING:
    from debrief.stats import Bools, Floats

FEWEST = 5
"""Of each outcome, or tasks, that an interval is made of."""
TOO_FEW = f"{FEWEST} of each outcome are needed"
_ALIKE = "all are alike"
SHARE = ".0%"
Value = Callable[[Measured], float | None]


class Statistic(Struct, frozen=True, kw_only=True):
    """One figure."""

    name: str
    count: int
    """What it is of."""
    noun: str = "session"
    value: Estimate | None = None
    """None where there is too little for an interval, for this reason:"""
    missing: str = "there is none"
    chance: float | None = None
    """What guessing gives; None where that says nothing."""
    form: str = ".2f"

    @property
    def is_chance(self) -> bool:
        """Return whether it cannot be told from what guessing gives."""
        if self.chance is None:
            return False
        return self.value is None or self.value.low <= self.chance <= self.value.high


class MoveStatistic(Struct, frozen=True, kw_only=True):
    """How often a verdict moved as it must after one change."""

    change: str
    must: str
    held: int
    count: int


class ModelAgreement(Struct, frozen=True, kw_only=True):
    """What a model's verdict, done or not, is worth on sessions with labels."""

    sessions: int
    """With a label and a verdict by both."""
    kappa: Estimate | None
    """Of the model's verdict with the labels; None where there are too few."""
    over_offline: Estimate | None
    """How much higher that is than that of the offline rules."""

    @property
    def is_more_than_none(self) -> bool:
        """Return whether it agrees with labels more often than chance."""
        return self.kappa is not None and self.kappa.low > 0


class ValidityReport(Struct, frozen=True, kw_only=True):
    """All that was measured."""

    labels: int
    """Sessions with a reference that could be read."""
    coverage: tuple[Statistic, ...]
    agreement: tuple[Statistic, ...]
    order: tuple[Statistic, ...]
    reversed_families: tuple[str, ...]
    """In which the order is significantly worse than chance."""
    crossed: dict[str, dict[str, int]]
    """Sessions by the verdict, and by the readers'."""
    moves: tuple[MoveStatistic, ...]
    model: str = ""
    paired: tuple[Statistic, ...] = ()
    """The model and the offline verdict on the same sessions."""
    agrees: ModelAgreement | None = None
    """Of the model's word on these sessions."""
    failures: dict[str, int] = {}
    """How often the model gave no scores, by the reason."""


def report_of(
    rows: Sequence[Measured], model: str = "", scores: Mapping[str, SessionScores] | None = None
) -> ValidityReport:
    """Return the report on measured sessions, and on what a model says of them."""
    families = _families(rows, _place)
    crossed: dict[str, Counter[str]] = {name: Counter() for name in VERDICT_NAMES}
    for row in rows:
        if row.reference.verdict is not None:
            crossed[_verdict(row)][row.reference.verdict] += 1
    failed = Counter(row.failure for row in (scores or {}).values() if row.status == "failed")
    return ValidityReport(
        labels=len(rows),
        coverage=tuple(_coverage(rows)),
        agreement=tuple(_agreement(rows)),
        order=tuple(_order(rows)),
        reversed_families=tuple(
            family
            for family, own in families.items()
            if (found := stats.estimate_of(_auroc(own, _place, _weights(own)))) is not None
            and found.high < _EVEN
        ),
        crossed={name: dict(found) for name, found in crossed.items() if found},
        moves=tuple(_moves(rows)),
        model=model,
        paired=tuple(_paired(rows, scores)) if scores is not None else (),
        agrees=_worth(rows, scores) if scores is not None else None,
        failures=dict(failed),
    )


_EVEN = 0.5


def _verdict(row: Measured) -> str:
    return row.verdict.verdict if row.verdict else "undetermined"


def _place(row: Measured) -> float | None:
    return row.place


def _shown(row: Measured) -> float:
    return row.shown


def _decided(rows: Sequence[Measured]) -> list[Measured]:
    return [row for row in rows if _verdict(row) != "undetermined"]


def _share(name: str, held: Sequence[bool], chance: float | None = None) -> Statistic:
    value = stats.share_of(sum(held), len(held))
    return Statistic(name=name, count=len(held), value=value, chance=chance, form=SHARE)


def _coverage(rows: Sequence[Measured]) -> Iterator[Statistic]:
    def has_verdict(some: Sequence[Measured]) -> list[bool]:
        return [_verdict(row) != "undetermined" for row in some]

    yield _share("a verdict, of all", has_verdict(rows))
    yield _share(
        "a verdict, of those that changed a file", has_verdict([row for row in rows if row.edited])
    )
    yield _share("a place in the order", [row.place is not None for row in rows])


def _agreement(rows: Sequence[Measured]) -> Iterator[Statistic]:
    """Yield the agreement with readers' verdicts, then with "done or not" of whoever says it."""
    yield from _verdicts(rows)
    yield from _readers(rows)
    yield from _done_or_not(rows)


def _verdicts(rows: Sequence[Measured]) -> Iterator[Statistic]:
    read = [row for row in _decided(rows) if row.reference.verdict not in (None, "undetermined")]
    pairs = [(_verdict(row), str(row.reference.verdict)) for row in read]
    if pairs:
        yield _share(
            "the readers' verdict exactly, where there is a verdict", [a == b for a, b in pairs]
        )
        kappa = stats.nominal_kappa([ours for ours, _ in pairs], [theirs for _, theirs in pairs])
        yield Statistic(name="… as κ", count=len(pairs), value=kappa, chance=0.0, missing=_ALIKE)
        gross = [_is_gross(ours, theirs) for ours, theirs in pairs]
        yield _share("gross errors: done for not done, or the reverse", gross)


def _readers(rows: Sequence[Measured]) -> Iterator[Statistic]:
    twice = [row.reference.readings for row in rows if len(row.reference.readings) > 1]
    if twice:
        same = [len({reading.verdict for reading in own}) == 1 for own in twice]
        yield _share("two readers among each other, exactly", same)
    marked = [
        (row.shown, quality) for row in rows if (quality := row.reference.quality) is not None
    ]
    if marked:
        ours, theirs = zip(*marked, strict=True)
        yield Statistic(
            name="verdict, then place, with the readers' quality: Spearman",
            count=len(marked),
            value=stats.rank_correlation(ours, theirs),
            missing=f"{FEWEST} that differ are needed",
            chance=0.0,
        )


def _done_or_not(rows: Sequence[Measured]) -> Iterator[Statistic]:
    known = [row for row in _decided(rows) if row.reference.done is not None]
    if known:
        said = [_verdict(row) in COMPLETE for row in known]
        truth = [*map(_done, known)]
        same = [ours == theirs for ours, theirs in zip(said, truth, strict=True)]
        yield _share("done or not, where there is a verdict", same)
        draws = stats.kappa(_bools(said), _bools(truth), _weights(known))
        value = stats.estimate_of(draws) if _enough(known) else None
        missing = _ALIKE if _enough(known) else TOO_FEW
        yield Statistic(name="… as κ", count=len(known), value=value, chance=0.0, missing=missing)


def _is_gross(ours: str, theirs: str) -> bool:
    return (ours in COMPLETE and theirs == "failed") or (ours == "failed" and theirs in COMPLETE)


def _task(row: Measured) -> str:
    return row.reference.task


def _done(row: Measured) -> bool:
    return row.reference.done is True


def _order(rows: Sequence[Measured]) -> Iterator[Statistic]:
    """Yield how well sessions are ordered: in pairs of one task, in families, the worst fifth."""
    known = [row for row in rows if row.reference.done is not None]
    for name, value in (("place", _place), ("verdict, then place", _shown)):
        yield _pairs(f"runs of one task, {name}: AUROC", known, value, _task)
    if len({row.reference.family for row in known}) > 1:
        yield _pairs(
            "… runs of one task and family, place: AUROC",
            known,
            _place,
            lambda row: (row.reference.task, row.reference.family),
        )
    for name, value in (("place", _place), ("verdict, then place", _shown)):
        yield _mean(f"{name}: AUROC", known, value, _auroc, _EVEN)
    yield _mean("failures in the worst fifth, times the usual share", known, _place, _lift, 1.0)


def _pairs(
    name: str, rows: Sequence[Measured], value: Value, key: Callable[[Measured], Hashable]
) -> Statistic:
    """Return how often the run that is done comes first, as a mean over tasks that have both."""
    import numpy as np

    tasks: dict[Hashable, list[Measured]] = defaultdict(list)
    for row in rows:
        if value(row) is not None:
            tasks[key(row)].append(row)
    both = {task: own for task, own in tasks.items() if len({*map(_done, own)}) == 2}
    found = None
    if len(both) >= FEWEST:
        once = [_auroc(own, value, np.ones((1, len(own))))[0] for own in both.values()]
        weights = stats.resampled([str(task) for task in both])
        found = stats.estimate_of((weights @ np.array(once)) / weights.sum(axis=1))
    return Statistic(
        name=name,
        count=len(both),
        noun="task",
        value=found,
        missing=f"{FEWEST} tasks with both outcomes are needed",
        chance=_EVEN,
    )


Metric = Callable[[Sequence[Measured], Value, "Floats"], "Floats"]


def _mean(
    name: str, rows: Sequence[Measured], value: Value, metric: Metric, chance: float
) -> Statistic:
    """Return a metric as the mean over families with enough of both outcomes."""
    families = _families(rows, value)
    draws = _over_families(families, value, metric)
    more = f", mean of {len(families)} families" if len(families) > 1 else ""
    count = sum(map(len, families.values()))
    found = None if draws is None else stats.estimate_of(draws)
    missing = "no session is in the worst fifth" if families else TOO_FEW
    return Statistic(name=name + more, count=count, value=found, missing=missing, chance=chance)


def _families(rows: Sequence[Measured], value: Value) -> dict[str, list[Measured]]:
    families: dict[str, list[Measured]] = defaultdict(list)
    for row in rows:
        if row.reference.done is not None and value(row) is not None:
            families[row.reference.family].append(row)
    return {family: own for family, own in families.items() if _enough(own)}


def _enough(rows: Sequence[Measured]) -> bool:
    done = sum(map(_done, rows))
    return min(done, len(rows) - done) >= FEWEST


def _over_families(
    families: Mapping[str, Sequence[Measured]], value: Value, metric: Metric
) -> Floats | None:
    """Return the mean over families by resample; a task is drawn in all of them at once."""
    rows = [row for own in families.values() for row in own]
    if not rows:
        return None
    weights, start, found = _weights(rows), 0, []
    for own in families.values():
        found.append(metric(own, value, weights[:, start : start + len(own)]))
        start += len(own)
    return stats.mean_of_families(found)


def _weights(rows: Sequence[Measured]) -> Floats:
    return stats.resampled([row.reference.task for row in rows])


def _bools(values: Iterable[bool]) -> Bools:
    import numpy as np

    return np.array(list(values), dtype=bool)


def _auroc(rows: Sequence[Measured], value: Value, weights: Floats) -> Floats:
    import numpy as np

    scores = np.array([value(row) for row in rows], dtype=float)
    return stats.auroc(scores, _bools(map(_done, rows)), weights)


def _lift(rows: Sequence[Measured], value: Value, weights: Floats) -> Floats:
    """Return the share of failures below ``LOOK_FIRST``, as a multiple of that of all."""
    import numpy as np

    first = np.array([value(row) for row in rows], dtype=float) < LOOK_FIRST
    failed = ~_bools(map(_done, rows))
    with np.errstate(invalid="ignore", divide="ignore"):
        there: Floats = (weights @ (failed & first)) / (weights @ first)
        lift: Floats = there / (weights @ failed) * weights.sum(axis=1)
    return lift


def _moves(rows: Sequence[Measured]) -> Iterator[MoveStatistic]:
    moves = [move for row in rows for move in row.moves]
    for change, must, _ in CHANGES:
        if held := [move.holds for move in moves if move.change == change]:
            yield MoveStatistic(change=change, must=must, held=sum(held), count=len(held))


def _paired(rows: Sequence[Measured], scores: Mapping[str, SessionScores]) -> Iterator[Statistic]:
    """Yield what the model's quality says, what offline is shown, and the difference, of the same
    sessions and resamples."""

    def of_model(row: Measured) -> float | None:
        found = scores.get(row.reference.session_id)
        return None if found is None else found.overall_quality

    yield _share("a quality by the model", [of_model(row) is not None for row in rows])
    by_model = _by_model(rows, scores)
    for statistic in (*_verdicts(by_model), *_done_or_not(by_model)):
        yield replace(statistic, name=f"the model: {statistic.name}")
    families = _families(rows, of_model)
    names = ("the model", "offline: verdict, then place", "the model minus offline")
    count = sum(map(len, families.values()))
    both = [_over_families(families, value, _auroc) for value in (of_model, _shown)]
    yield from _differences("done or not: AUROC", names, both, count, _EVEN)
    marked = [
        row for row in rows if row.reference.quality is not None and of_model(row) is not None
    ]
    both = [_spearman(marked, value) for value in (of_model, _shown)]
    yield from _differences("readers' quality: Spearman", names, both, len(marked), 0.0)


def _by_model(rows: Sequence[Measured], scores: Mapping[str, SessionScores]) -> list[Measured]:
    """Return the sessions that the model scored, with its verdict in place of the rules'."""
    found = [(row, scores.get(row.reference.session_id)) for row in rows]
    return [
        replace(row, verdict=own.verdict, place=None)
        for row, own in found
        if own is not None and own.status == "ok"
    ]


def _worth(rows: Sequence[Measured], scores: Mapping[str, SessionScores]) -> ModelAgreement:
    """Return what the model's verdict is worth where both it and the rules decide."""
    by_model = {row.reference.session_id: row for row in _decided(_by_model(rows, scores))}
    known = [
        row
        for row in _decided(rows)
        if row.reference.done is not None and row.reference.session_id in by_model
    ]
    if not _enough(known):
        return ModelAgreement(sessions=len(known), kappa=None, over_offline=None)
    truth, weights = _bools(map(_done, known)), _weights(known)
    own = [by_model[row.reference.session_id] for row in known]
    ours, theirs = (
        stats.kappa(_bools(_verdict(row) in COMPLETE for row in each), truth, weights)
        for each in (own, known)
    )
    kappa, more = stats.estimate_of(ours), stats.estimate_of(ours - theirs)
    return ModelAgreement(sessions=len(known), kappa=kappa, over_offline=more)


def _differences(
    what: str,
    names: Sequence[str],
    both: Sequence[Floats | None],
    count: int,
    chance: float,
) -> Iterator[Statistic]:
    ours, theirs = both
    if ours is None or theirs is None:
        return
    columns = zip(names, (ours, theirs, ours - theirs), (chance, chance, 0.0), strict=True)
    for name, draws, even in columns:
        value = stats.estimate_of(draws)
        yield Statistic(name=f"{what}, {name}", count=count, value=value, chance=even)


def _spearman(rows: Sequence[Measured], value: Value) -> Floats | None:
    """Return the rank correlation with the readers' quality, by resample."""
    import numpy as np

    if len(rows) < FEWEST:
        return None
    ours = np.array([value(row) for row in rows], dtype=float)
    theirs = np.array([row.reference.quality for row in rows], dtype=float)
    found = []
    for drawn in _weights(rows).astype(int):
        x, y = (stats.ranks(np.repeat(values, drawn)) for values in (ours, theirs))
        varies = len({*x}) > 1 and len({*y}) > 1
        found.append(float(np.corrcoef(x, y)[0, 1]) if varies else np.nan)
    return np.array(found)
