"""Measures: who gives sessions a score, and on which scale."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from msgspec import Struct

from debrief.errors import InputError
from debrief.judging.model import JudgeEvaluation
from debrief.outcomes.store import NO, YES
from debrief.rubrics.model import Rubric, RubricEvaluation
from debrief.scoring.dimensions import BY_NAME
from debrief.scoring.model import SessionScores

ScaleKind = Literal["fraction", "category", "five"]

_BANDS = 5
_GOOD_FRACTION = 0.5
_GOOD_OF_FIVE = 4
_ROUNDING = 1e-9
_OF_FIVE = re.compile(r"([1-5])\s*(?:/|of|out of)\s*5\Z", re.IGNORECASE)


class Reading(Struct, frozen=True):
    """A label or a score, placed on a scale."""

    level: int | None
    """The place among the scale's levels, from 0; None for a plain yes or no."""
    good: bool
    value: float
    """From 0 to 1."""


class Scale(Struct, frozen=True):
    """What values a score can have, in order from worst to best."""

    kind: ScaleKind
    levels: tuple[str, ...]
    """Names of the levels. A number from 0 to 1 falls into one of five equal bands."""
    values: tuple[float, ...] = ()
    """Of a category: what each level is worth."""

    def of(self, number: float) -> Reading:
        """Place a score.

        Raises:
            InputError: it is outside the scale.
        """
        if self.kind == "five":
            if number not in (1, 2, 3, 4, 5):
                raise InputError(f"{number:g}", "is no whole number from 1 to 5")
            return Reading(int(number) - 1, number >= _GOOD_OF_FIVE, (number - 1) / (_BANDS - 1))
        if not 0 <= number <= 1:
            move = "Write 4/5 for a scale of five." if number in (2, 3, 4, 5) else ""
            raise InputError(f"{number:g}", "is not from 0 to 1", move)
        if self.kind == "fraction":
            band = min(_BANDS - 1, math.floor(number * _BANDS + _ROUNDING))
            return Reading(band, number >= _GOOD_FRACTION, number)
        for level, value in enumerate(self.values):
            if math.isclose(value, number, abs_tol=0.005):
                return Reading(level, value > _GOOD_FRACTION, value)
        worth = ", ".join(f"{value:g}" for value in self.values)
        raise InputError(f"{number:g}", f"is the worth of no category ({worth})")

    def read(self, text: str) -> Reading:
        """Place a label as a person wrote it.

        Taken are the scale's own categories and numbers, ``4/5``, a percentage, and a plain yes
        or no (also good, bad, pass, fail, true, false), which tells good from bad and no more.

        Raises:
            InputError: it is none of these, or outside the scale.
        """
        said = text.strip().strip("\"'").casefold()
        if self.kind == "category" and said in self.levels:
            level = self.levels.index(said)
            return Reading(level, self.values[level] > _GOOD_FRACTION, self.values[level])
        if said in YES or said in NO:
            return Reading(None, said in YES, float(said in YES))
        if found := _OF_FIVE.match(said):
            place = int(found[1])
            if self.kind == "category":
                raise InputError(f"{place}/5", f"is none of {', '.join(self.levels)}")
            fraction = (place - 1) / (_BANDS - 1)
            return self.of(place if self.kind == "five" else fraction)
        try:
            number = float(said[:-1]) / 100 if said.endswith("%") else float(said)
        except ValueError:
            raise InputError(repr(text), f"is none of {', '.join(self.levels)}") from None
        return self.of(number)


FRACTION = Scale("fraction", ("0–0.2", "0.2–0.4", "0.4–0.6", "0.6–0.8", "0.8–1"))
FIVE = Scale("five", ("1", "2", "3", "4", "5"))
YES_OR_NO = ("not good", "good")


def scale_of_dimension(name: str) -> Scale:
    """Return the scale of one of the six dimensions, or of ``overall_quality``."""
    dimension = BY_NAME.get(name)
    if dimension is None or dimension.kind == "numeric":
        return FRACTION
    anchors = dimension.anchors
    return Scale("category", tuple(a.label for a in anchors), tuple(a.value for a in anchors))


Kind = Literal["judge", "dimension", "rubric"]
OVERALL = "overall_quality"


class MeasureName(Struct, frozen=True, kw_only=True):
    """One judge, dimension or rubric, as somebody answers for it."""

    kind: Kind
    name: str
    judged_by: str
    """A model's name, or ``offline``."""
    fingerprint: str = ""
    """Of the judges or the scorer; empty for a rubric."""

    @property
    def identity(self) -> dict[str, Any]:
        """What tells it from all others, by the names of its fields."""
        return {name: getattr(self, name) for name in MeasureName.__struct_fields__}


class Measure(MeasureName, frozen=True, kw_only=True):
    """What one judge, dimension or rubric said of every session."""

    scale: Scale
    names: frozenset[str]
    """What a label may call it, in small letters."""
    readings: Mapping[str, Reading]
    """By session id."""

    def answers_to(self, name: str) -> bool:
        """Return whether a label of that name is about this."""
        return _folded(name) in self.names


def measures_of(
    judgements: Iterable[JudgeEvaluation],
    scores: Iterable[SessionScores],
    rubric_evaluations: Iterable[RubricEvaluation],
    rubrics: Iterable[Rubric],
) -> list[Measure]:
    """Sort rows into measures: judges first, then dimensions, then rubrics, by name.

    The same judge with another model or another text is another measure. Rows that failed, and
    evaluations of rubrics that are no longer in the set, are left out.
    """
    found: dict[tuple[Kind, str, str, str], dict[str, Reading]] = {}

    def put(kind: Kind, name: str, by: str, mark: str, session: str, reading: Reading) -> None:
        found.setdefault((kind, name, by, mark), {})[session] = reading

    for judged in judgements:
        if judged.score is not None:
            reading = FRACTION.of(judged.score)
            mark = judged.eval_fingerprint
            put("judge", judged.judge, judged.model, mark, judged.session_id, reading)
    for row in scores:
        if row.status != "ok":
            continue
        mark = row.scoring_fingerprint
        for verdict in row.dimension_scores:
            if verdict.value is None:
                continue
            reading = scale_of_dimension(verdict.dimension).of(verdict.value)
            put("dimension", verdict.dimension, row.model, mark, row.session_id, reading)
        if row.overall_quality is not None:
            reading = FRACTION.of(min(1.0, max(0.0, row.overall_quality)))
            put("dimension", OVERALL, row.model, mark, row.session_id, reading)
    current = {(rubric.score_name, rubric.key): rubric for rubric in rubrics}
    for evaluation in rubric_evaluations:
        if (
            evaluation.score is not None
            and (evaluation.score_name, evaluation.rubric_key) in current
        ):
            name = f"{evaluation.score_name}/{evaluation.rubric_key}"
            put(
                "rubric",
                name,
                evaluation.model,
                "",
                evaluation.session_id,
                FIVE.of(evaluation.score),
            )
    other_names = {f"{name}/{key}": {key, rubric.name} for (name, key), rubric in current.items()}
    other_names[OVERALL] = {"score"}
    scales: dict[str, Scale] = {"judge": FRACTION, "rubric": FIVE}
    return [
        Measure(
            kind=kind,
            name=name,
            judged_by=by,
            fingerprint=mark,
            scale=scales.get(kind) or scale_of_dimension(name),
            names=frozenset(map(_folded, {name, f"{kind}:{name}"} | other_names.get(name, set()))),
            readings=found[kind, name, by, mark],
        )
        for kind, name, by, mark in sorted(found, key=lambda key: (key[0] != "judge", key))
    ]


def _folded(name: str) -> str:
    return " ".join(name.casefold().split())
