"""Probes of judges: do their scores follow length, order or model rather than the work?

Scores are calibrated by labels, correlated with the session's length, compared with another
model's, and asked for again with the material in another order: that should move them no more
than asking the same question twice does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from statistics import fmean
from typing import Any

from msgspec import Struct

from debrief.errors import DebriefError
from debrief.evaluation import OFFLINE
from debrief.judging.context import context_from_session, has_change
from debrief.judging.dspy_judge import DspyJudge
from debrief.judging.model import Judge
from debrief.keys import digest_of
from debrief.rubrics.measures import Kind, Measure, MeasureName
from debrief.sessions.model import Session
from debrief.stats import Estimate, difference_of, isotonic, rank_correlation, weighted_kappa

PROBES, ORDER_PROBES = "judge_probes", "judge_order_probes"
FEWEST_TASKS = 5
"""Tasks with a label, below which nothing is calibrated; as many folds the fit is tried on."""
FEWEST_LABELS = 20
"""Sessions with a label, below which agreement counts as not known, and nothing is calibrated."""
_FEWEST = 10
"""Sessions, below which nothing is correlated."""
_FEWEST_OWN = 5
_FARTHEST = 3
_FAMILY = re.compile(r"(?:[a-z][a-z\d-]*\.)*([a-z]+)")
"""Bedrock puts a region and a vendor before it, with full stops between."""


class Probe(MeasureName, frozen=True, kw_only=True):
    """One row: one judge, dimension or rubric."""

    labels: str = ""
    """What it is calibrated by: ``people``, who labelled it, or ``success``."""
    labelled: int = 0
    brier: float | None = None
    """Mean squared distance from the labels, from 0 to 1."""
    brier_calibrated: float | None = None
    """The same after an isotonic fit, on tasks that the fit has not seen."""
    error: float | None = None
    """Mean distance from the labels."""
    error_calibrated: float | None = None
    calibration: tuple[tuple[float, float], ...] = ()
    """What a score is worth: points of the fit to all labels, straight lines between them."""
    length: float | None = None
    """Rank correlation with the session's length, labels held equal where there are enough."""
    length_low: float | None = None
    length_high: float | None = None
    own: float | None = None
    """How much higher than other models it scores sessions of its own kind of model, beyond how
    much higher it scores those of others."""
    own_low: float | None = None
    own_high: float | None = None


class Difference(Struct, frozen=True, kw_only=True):
    """How two models differ on the same sessions."""

    kind: Kind
    name: str
    models: tuple[str, str]
    sessions: int
    kappa: Estimate | None
    """Cohen's with quadratic weights."""
    mean: float
    """The second one's score minus the first one's, on a scale from 0 to 1."""
    farthest: tuple[tuple[str, float, float], ...]
    """Session and both scores, where they differ most."""


def probes_of(
    measures: Sequence[Measure],
    labels: Mapping[int, Mapping[str, float]],
    success: Mapping[str, bool],
    *,
    tasks: Mapping[str, str],
    lengths: Mapping[str, int],
    models: Mapping[str, str],
) -> list[Probe]:
    """Return a row for each measure that anything is known of.

    Args:
        measures: what was said of sessions, by their ids.
        labels: people's values, from 0 to 1, by the measure's place and session.
        success: whether sessions succeeded, for measures that too few labels name.
        tasks: of sessions; those of one task are not independent.
        lengths: of sessions, in tokens that the agent wrote; 0 where nobody knows.
        models: that did the sessions' work.
    """
    rows = []
    for place, measure in enumerate(measures):
        values = {id_: reading.value for id_, reading in measure.readings.items()}
        truths, source = labels.get(place, {}), "people"
        if len(truths) < FEWEST_LABELS:
            truths = {id_: float(success[id_]) for id_ in values if id_ in success}
            source = "success"
        found = {**calibrated(values, truths, tasks), **_by_length(values, truths, lengths)}
        found |= _own(measure, measures, models)
        if found:
            if "brier" in found:
                found |= {"labels": source, "labelled": len(truths)}
            rows.append(Probe(**measure.identity, **found))
    return rows


def calibrated(
    values: Mapping[str, float], truths: Mapping[str, float], tasks: Mapping[str, str]
) -> dict[str, Any]:
    """Return how far scores lie from labels, before and after an isotonic fit, and the fit.

    The fit is tried five times on a fifth of the tasks that it has not seen. Empty when there
    are fewer than 20 labels or five tasks.
    """
    import numpy as np

    ids = sorted(values.keys() & truths.keys())
    groups = [tasks.get(id_, id_) for id_ in ids]
    drawn = sorted(set(groups), key=lambda group: digest_of("fold", group))
    if len(ids) < FEWEST_LABELS or len(drawn) < FEWEST_TASKS:
        return {}
    places = {group: place % FEWEST_TASKS for place, group in enumerate(drawn)}
    folds = np.array([places[group] for group in groups])
    x, y = (np.array([column[id_] for id_ in ids]) for column in (values, truths))
    held_out = np.empty(len(ids))
    for fold in range(FEWEST_TASKS):
        out = folds == fold
        held_out[out] = np.interp(x[out], *isotonic(x[~out], y[~out]))
    fitted = zip(*(np.round(column, 6).tolist() for column in isotonic(x, y)), strict=True)
    return {
        "brier": float(np.mean((x - y) ** 2)),
        "brier_calibrated": float(np.mean((held_out - y) ** 2)),
        "error": float(np.mean(np.abs(x - y))),
        "error_calibrated": float(np.mean(np.abs(held_out - y))),
        "calibration": tuple(fitted),
    }


def _by_length(
    values: Mapping[str, float], truths: Mapping[str, float], lengths: Mapping[str, int]
) -> dict[str, float]:
    """Return the rank correlation of scores with lengths, labels held equal if there are any."""
    ids = values.keys() & {id_ for id_, length in lengths.items() if length}
    columns: list[Mapping[str, float]] = [values, lengths]
    if len(ids & truths.keys()) >= FEWEST_LABELS:
        ids &= truths.keys()
        if len({truths[id_] for id_ in ids}) > 1:  # else they are equal already
            columns.append(truths)
    if len(ids) < _FEWEST or any(len({c[id_] for id_ in ids}) == 1 for c in columns):
        return {}
    found = rank_correlation(*([column[id_] for id_ in sorted(ids)] for column in columns))
    return found.columns("length") if found else {}


def _own(
    measure: Measure, measures: Sequence[Measure], models: Mapping[str, str]
) -> dict[str, float]:
    """Return how much more a model likes sessions of its own kind of model than others do."""
    kind = _family(measure.judged_by)
    others = [
        each.readings
        for each in measures
        if (each.kind, each.name) == (measure.kind, measure.name)
        and _family(each.judged_by) not in (kind, OFFLINE)
    ]
    more: dict[bool, list[float]] = {True: [], False: []}
    for id_, reading in measure.readings.items():
        said = [readings[id_].value for readings in others if id_ in readings]
        if said and kind != OFFLINE and (worker := _family(models.get(id_, ""))):
            more[worker == kind].append(reading.value - fmean(said))
    if min(map(len, more.values())) < _FEWEST_OWN:
        return {}
    return difference_of(more[True], more[False]).columns("own")


def _family(model: str) -> str:
    """Return the kind that a model is of: ``claude``, ``gpt``.

    >>> _family("openrouter/anthropic/claude-sonnet-4.5")
    'claude'
    >>> _family("bedrock/us.anthropic.claude-sonnet-4-20250514-v1:0")
    'claude'
    >>> _family("<synthetic>")
    ''
    """
    found = _FAMILY.match(model.rpartition("/")[2].lower())
    return found[1] if found else ""


def differences(measures: Iterable[Measure]) -> Iterator[Difference]:
    """Yield how each two models differ that scored the same sessions; of several sets of judges
    or prompts of one model, the one that scored the most counts.
    """
    chosen = {
        (measure.kind, measure.name, measure.judged_by): measure
        for measure in sorted(measures, key=lambda measure: len(measure.readings))
        if measure.judged_by != OFFLINE
    }
    for (key, first), (other, second) in combinations(sorted(chosen.items()), 2):
        shared = sorted(first.readings.keys() & second.readings.keys())
        if key[:2] == other[:2] and shared:
            yield _difference(first, second, shared)


def _difference(first: Measure, second: Measure, shared: Sequence[str]) -> Difference:
    both = [(id_, first.readings[id_], second.readings[id_]) for id_ in shared]
    levels = [[reading.level or 0 for reading in column] for _, *column in both]
    values = [
        (id_, reading.value, two.value) for id_, reading, two in both if reading.value != two.value
    ]
    far = sorted(values, key=lambda value: (-abs(value[1] - value[2]), value[0]))
    return Difference(
        kind=first.kind,
        name=first.name,
        models=(first.judged_by, second.judged_by),
        sessions=len(both),
        kappa=weighted_kappa(
            [one for one, _ in levels], [two for _, two in levels], len(first.scale.levels)
        ),
        mean=fmean(two.value - reading.value for _, reading, two in both),
        farthest=tuple(far[:_FARTHEST]),
    )


class OrderProbe(Struct, frozen=True, kw_only=True):
    """One row: what becomes of one judge's scores when it is asked again."""

    judge: str
    judged_by: str
    sessions: int
    repeated: float
    """Mean distance between two answers to the same question."""
    turned: float
    """Mean distance when the changes stand before the plan."""
    shift: float
    """By how much the scores rose on average with that order."""


def order_probes(
    sessions: Iterable[Session],
    judges: Sequence[Judge],
    usual: DspyJudge,
) -> list[OrderProbe]:
    """Ask judges about sessions as usual, once more, and with the changes before the plan.

    A session that changed nothing is left out, and so is one that a judge cannot answer for.

    Args:
        sessions: a few.
        judges: all of them are asked.
        usual: who answers for them; what was answered before is not asked again.
    """
    ways = (usual, replace(usual, again=True), replace(usual, turned=True))
    scores: dict[tuple[str, str], list[list[float]]] = {}
    for session in filter(has_change, sessions):
        context = context_from_session(session)
        for judge in judges:
            try:
                said = [way.judge(judge, context, session).score for way in ways]
            except DebriefError:
                continue
            known = [score for score in said if score is not None]
            if len(known) == len(ways):
                scores.setdefault((judge.name, judge.model), []).append(known)
    return [
        OrderProbe(
            judge=name,
            judged_by=model,
            sessions=len(rows),
            repeated=fmean(abs(again - usual) for usual, again, _ in rows),
            turned=fmean(abs(turned - usual) for usual, _, turned in rows),
            shift=fmean(turned - usual for usual, _, turned in rows),
        )
        for (name, model), rows in scores.items()
    ]
