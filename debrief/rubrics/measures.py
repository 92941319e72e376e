"""Measures: everything that gives a session a score that a person could give, too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec import Struct

from debrief.judging.model import JudgeEvaluation
from debrief.rubrics.model import Rubric, RubricEvaluation
from debrief.rubrics.scales import FIVE, FRACTION, Reading, Scale, scale_of_dimension
from debrief.scoring.model import SessionScores

Kind = Literal["judge", "dimension", "rubric"]
OVERALL = "overall_quality"
_KINDS: tuple[Kind, ...] = ("judge", "dimension", "rubric")


class Measure(Struct, frozen=True, kw_only=True):
    """What one judge, dimension or rubric said of every session."""

    kind: Kind
    name: str
    judged_by: str
    fingerprint: str = ""
    scale: Scale
    names: frozenset[str]
    """What a label may call it, in small letters."""
    readings: Mapping[str, Reading]
    """By session id."""

    def answers_to(self, name: str) -> bool:
        """Return whether a label of that name is about this."""
        return _plain(name) in self.names


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
        for verdict in row.verdicts:
            reading = scale_of_dimension(verdict.dimension).of(verdict.value)
            put("dimension", verdict.dimension, row.model, mark, row.session_id, reading)
        if row.overall_quality is not None:
            reading = FRACTION.of(min(1.0, max(0.0, row.overall_quality)))
            put("dimension", OVERALL, row.model, mark, row.session_id, reading)
    current = {(rubric.score_name, rubric.key): rubric for rubric in rubrics}
    for one in rubric_evaluations:
        if one.score is not None and (one.score_name, one.rubric_key) in current:
            name = f"{one.score_name}/{one.rubric_key}"
            put("rubric", name, one.model, "", one.session_id, FIVE.of(one.score))
    titles = {f"{name}/{key}": rubric.name for (name, key), rubric in current.items()}
    measures = [
        Measure(
            kind=kind,
            name=name,
            judged_by=by,
            fingerprint=mark,
            scale=_scale(kind, name),
            names=_names(kind, name, titles),
            readings=readings,
        )
        for (kind, name, by, mark), readings in found.items()
    ]
    return sorted(
        measures, key=lambda m: (_KINDS.index(m.kind), m.name, m.judged_by, m.fingerprint)
    )


def _scale(kind: Kind, name: str) -> Scale:
    if kind == "dimension":
        return scale_of_dimension(name)
    return FIVE if kind == "rubric" else FRACTION


def _names(kind: Kind, name: str, titles: Mapping[str, str]) -> frozenset[str]:
    names = {name, f"{kind}:{name}"}
    if name == OVERALL:
        names.add("score")
    if kind == "rubric":
        names |= {name.split("/", 1)[1], titles[name]}
    return frozenset(_plain(one) for one in names)


def _plain(name: str) -> str:
    return " ".join(name.casefold().split())
