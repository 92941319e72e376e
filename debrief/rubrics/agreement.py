"""How well judges, dimensions and rubrics agree with people's labels."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Literal, TypeVar

from msgspec import Struct

from debrief.errors import InputError
from debrief.outcomes.store import SUCCESS, Label, Labels, Roll
from debrief.rubrics.measures import (
    YES_OR_NO,
    Measure,
    MeasureName,
    Reading,
)
from debrief.rubrics.probes import Difference, OrderProbe, Probe
from debrief.stats import corrected_rate, gwet_ac1, weighted_kappa


class Unmatched(Struct, frozen=True):
    """A label that no score was found for."""

    label: Label
    reason: str
    similar_to: str = ""
    """The session whose id this one is, only written otherwise."""


AGREEMENT = "judge_agreement"
"""Table of the rows, all in one partition."""
ALL = "all"
_MOST_DRIFT = 0.1
"""Share of labels on ids that are another session's, only written otherwise, above which the rest
is not a sample of what was labelled any more."""
_SHOWN = 5
Number = TypeVar("Number", int, float)
_AS_SESSIONS_HAVE_THEM = "Write the ids as the sessions have them."
_PLACE = re.compile(r"(?:.*/)?rubric_\d+", re.IGNORECASE)


class AgreementRow(MeasureName, frozen=True, kw_only=True):
    """One row: how one judge, dimension or rubric agrees with people."""

    scale: Literal["fraction", "category", "five", "yes_or_no"]
    """What was compared: five bands of 0 to 1, categories, 1 to 5, or good against not good."""
    labelled: int
    """Sessions with a label and a score."""
    sessions: int
    """Sessions with a score."""
    raters: int
    agreed: float | None = None
    """Share of the labelled sessions on which both say exactly the same."""
    kappa: float | None = None
    """Cohen's, with quadratic weights; None where it is not defined."""
    kappa_low: float | None = None
    kappa_high: float | None = None
    ac1: float | None = None
    """Gwet's, unweighted."""
    ac1_low: float | None = None
    ac1_high: float | None = None
    people_kappa: float | None = None
    """Between people, on sessions that several of them labelled: no judge can be asked for more."""
    people_rate: float | None = None
    """Share of the labelled sessions that people call good."""
    judge_rate: float | None = None
    """Share of the labelled sessions that the judge calls good."""
    rate: float | None = None
    """Share of all scored sessions that the judge calls good."""
    sensitivity: float | None = None
    specificity: float | None = None
    corrected_rate: float | None = None
    """Share of all scored sessions that people would call good."""
    corrected_low: float | None = None
    corrected_high: float | None = None

    @property
    def coverage(self) -> float:
        """Return the share of scored sessions that have a label."""
        return self.labelled / self.sessions if self.sessions else 0.0


class Agreement(Struct, frozen=True, kw_only=True):
    """What labels came to."""

    rows: tuple[AgreementRow, ...]
    """Of what has labels; judges first, then dimensions, then rubrics."""
    labels: int
    """Read, free text that is no label left out."""
    matched: int
    """That a score was found for."""
    unmatched: tuple[Unmatched, ...]
    problems: tuple[str, ...]
    """Labels that could not be read."""
    values: dict[int, dict[str, float]] = {}
    """What people said, from 0 to 1, by the measure's place and session."""
    probes: tuple[Probe, ...] = ()
    differences: tuple[Difference, ...] = ()
    order: tuple[OrderProbe, ...] = ()


def compare(labels: Labels, measures: Sequence[Measure], roll: Roll) -> Agreement:
    """Hold people's labels against what was measured.

    Where several people labelled the same, the middle label counts, the worse of two; of one
    person's several, the last. A plain yes or no is compared as good against not good, and so
    is then everything else that is labelled with it.

    Args:
        labels: as read.
        measures: what judges, dimensions and rubrics said.
        roll: of the sessions that are there.

    Raises:
        InputError: there are labels and none matches, all of one name miss, or too many carry
            an id that is a session's own written otherwise. Agreement on what is left would look
            like agreement.
    """
    placed: dict[int, dict[str, dict[str, Reading]]] = defaultdict(lambda: defaultdict(dict))
    unmatched: list[Unmatched] = []
    problems = list(labels.problems)
    named: dict[str, list[bool]] = defaultdict(list)
    for label in labels.labels:
        targets = [n for n, measure in enumerate(measures) if measure.answers_to(label.name)]
        if not targets:
            is_free = label.loose or label.source == "view"
            if not is_free and label.name.casefold() != SUCCESS:
                unmatched.append(Unmatched(label, _unknown(label.name)))
            continue
        session = roll.find(label.session_id)
        readings: dict[int, Reading] = {}
        reasons: list[str] = []
        for number in targets if session else ():
            try:
                readings[number] = measures[number].scale.read(label.value)
            except InputError as error:
                reasons.append(str(error))
        if reasons and not readings:
            problems.append(f"{label.place}: {label.name}: {reasons[0]}")
        hits = [number for number in readings if session in measures[number].readings]
        for number in hits:
            rater = label.rater or label.origin
            placed[number][session][rater] = readings[number]
        named[label.name].append(bool(hits))
        if not session:
            alike = roll.look_alike(label.session_id)
            unmatched.append(Unmatched(label, "no session of that id", alike))
        elif readings and not hits:
            unmatched.append(Unmatched(label, "the session has no score of that name"))
    matched = sum(sum(found) for found in named.values())
    count = sum(map(len, named.values()))
    count += sum(one.label.name not in named for one in unmatched)
    if count and not matched:
        reason = f"not one matches a scored session: {_why_none(unmatched, problems, roll)}"
        move = "Correct the ids, names or values of the labels."
        raise InputError(f"{count} labels of people", reason, move)
    _refuse_drift(count, unmatched, named)
    return Agreement(
        rows=tuple(_row(measures[number], by) for number, by in sorted(placed.items())),
        labels=count,
        matched=matched,
        unmatched=tuple(unmatched),
        problems=tuple(problems),
        values={
            number: {
                id_: _middle([reading.value for reading in by_rater.values()])
                for id_, by_rater in by.items()
            }
            for number, by in placed.items()
        },
    )


def _unknown(name: str) -> str:
    if _PLACE.fullmatch(name):
        return "a rubric's place in its set, which moves from week to week: use its key"
    return "no judge, dimension or rubric of that name"


def _refuse_drift(
    count: int, unmatched: Sequence[Unmatched], named: Mapping[str, Sequence[bool]]
) -> None:
    drifted = [one for one in unmatched if one.similar_to]
    drift = _drift(unmatched)
    if len(drifted) > _MOST_DRIFT * count:
        culprit = f"{len(drifted)} of {count} labels of people"
        raise InputError(culprit, f"their ids have drifted: {drift}", _AS_SESSIONS_HAVE_THEM)
    for name, found in sorted(named.items()):
        lost = [unmatched for unmatched in drifted if unmatched.label.name == name]
        if lost and not any(found):
            culprit = f"{len(found)} labels of people, named {name}"
            raise InputError(culprit, f"not one matches: {drift}", _AS_SESSIONS_HAVE_THEM)


def _drift(unmatched: Sequence[Unmatched]) -> str:
    """Return the first ids that are a session's own, only written otherwise."""
    drifted = {one.label.session_id: one.similar_to for one in unmatched if one.similar_to}
    shown = [f"{id_!r} looks like session {known}" for id_, known in drifted.items()]
    more = [f"and {len(shown) - _SHOWN} more"] if len(shown) > _SHOWN else []
    return "; ".join([*shown[:_SHOWN], *more])


def _why_none(unmatched: Sequence[Unmatched], problems: Sequence[str], roll: Roll) -> str:
    if drift := _drift(unmatched):
        return drift
    if not unmatched:
        return "; ".join(problems[:_SHOWN])
    reasons = {one.reason for one in unmatched}
    ids = list(dict.fromkeys(one.label.session_id for one in unmatched))
    names = list(dict.fromkeys(one.label.name for one in unmatched))
    more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
    return (
        f"{', or '.join(sorted(reasons))} (labels are on {', '.join(ids[:_SHOWN])}{more}, named "
        f"{', '.join(names[:_SHOWN])}; sessions are {', '.join(sorted(roll.ids)[:3]) or 'none'})"
    )


def _row(measure: Measure, labelled: Mapping[str, Mapping[str, Reading]]) -> AgreementRow:
    plain = any(r.level is None for by_rater in labelled.values() for r in by_rater.values())
    levels = len(YES_OR_NO) if plain else len(measure.scale.levels)

    def place(reading: Reading) -> int:
        return int(reading.good) if plain or reading.level is None else reading.level

    ids = sorted(labelled)
    people = [_middle([place(r) for r in labelled[id_].values()]) for id_ in ids]
    people_good = [_middle([r.good for r in labelled[id_].values()]) == 1 for id_ in ids]
    judged = [place(measure.readings[id_]) for id_ in ids]
    judged_good = [measure.readings[id_].good for id_ in ids]
    rate = sum(reading.good for reading in measure.readings.values()) / len(measure.readings)
    sensitivity, specificity, corrected = corrected_rate(
        people_good, judged_good, rate, len(measure.readings)
    )
    kappa, ac1 = (how(people, judged, levels) for how in (weighted_kappa, gwet_ac1))
    among = [
        pair
        for by_rater in labelled.values()
        for pair in permutations([place(reading) for reading in by_rater.values()], 2)
    ]
    among_people = weighted_kappa([one for one, _ in among], [other for _, other in among], levels)
    return AgreementRow(
        **measure.identity,
        scale="yes_or_no" if plain else measure.scale.kind,
        labelled=len(ids),
        sessions=len(measure.readings),
        raters=len({rater for by_rater in labelled.values() for rater in by_rater}),
        agreed=sum(a == b for a, b in zip(people, judged, strict=True)) / len(ids),
        **(kappa.columns("kappa") if kappa else {}),
        **(ac1.columns("ac1") if ac1 else {}),
        people_kappa=_rounded(among_people.value if among_people else None),
        people_rate=sum(people_good) / len(ids),
        judge_rate=sum(judged_good) / len(ids),
        rate=rate,
        sensitivity=_rounded(sensitivity),
        specificity=_rounded(specificity),
        **(corrected.columns("corrected", "corrected_rate") if corrected else {}),
    )


def _middle(levels: Sequence[Number]) -> Number:
    return sorted(levels)[(len(levels) - 1) // 2]


def _rounded(number: float | None) -> float | None:
    return None if number is None or math.isnan(number) else round(number, 6)
