"""Rubrics: what sets good sessions apart, whether it holds, and sessions for and against it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import median

from fastapi import APIRouter, Response
from msgspec import Struct

from debrief.errors import InputError
from debrief.lake import Lake
from debrief.rubrics.linting import scale_points
from debrief.rubrics.model import (
    ALL,
    EVALUATIONS,
    EXTRACTED,
    RUBRICS,
    SEARCHES,
    TRIALS,
    ExtractedRubric,
    Rubric,
    RubricEvaluation,
    RubricEvidence,
    RubricSearch,
    RubricTrial,
)
from debrief.rubrics.page import p_value
from debrief.rubrics.trial import MEANINGS
from debrief.scoring.model import SCORE_NAMES, ScoreName
from debrief.scoring.model_scorer import cited_turns
from debrief.view.indexed import SessionRow
from debrief.view.templating import Page, PageContext, environment

router = APIRouter()
environment().filters["p_value"] = p_value
_HIGH, _LOW = 4, 2
"""Levels from which on, and up to which, a session shows a rubric, or does not."""
_SHOWN = 8
"""Sessions on each side."""
_QUOTES = 5


class _Efficiencies(Struct, frozen=True, kw_only=True):
    """The columns that say how good a session is, in each sense."""

    session_id: str
    overall_quality: float | None = None
    token_efficiency: float | None = None
    user_turn_efficiency: float | None = None

    def value(self, score_name: ScoreName) -> float | None:
        """Return what a score name means for the session, as ``rubrics.contrast`` has it."""
        if score_name == "excellence":
            return self.overall_quality
        efficiency: float | None = getattr(self, score_name)
        return efficiency or None


class _Level(Struct, frozen=True, kw_only=True):
    """The columns that say how far a session shows a rubric."""

    session_id: str
    score_name: str
    rubric_key: str
    score: int | None = None


class SessionSide(Struct, frozen=True, kw_only=True):
    """A session that speaks for a rubric, or against it."""

    row: SessionRow
    level: int
    value: float
    """In the sense of the rubric's score name."""
    is_good: bool
    """Whether it is in the better half of the sessions judged."""
    reasoning: str = ""
    turn: int | None = None
    """That the reasoning cites first."""


class RubricSides(Struct, frozen=True, kw_only=True):
    """What unseen sessions say of a rubric."""

    judged: int
    count_for: int
    count_against: int
    speak_for: tuple[SessionSide, ...]
    speak_against: tuple[SessionSide, ...]


@router.get("/rubrics")
def rubrics(page: Page) -> Response:
    """Show what the search came to for each score name: what holds, and what was dropped."""
    trials = list(page.lake.read(TRIALS, ALL, RubricTrial))
    searches = {row.score_name: row for row in page.lake.read(SEARCHES, ALL, RubricSearch)}
    parts = []
    for name in SCORE_NAMES:
        held = list(page.lake.read(RUBRICS, name, Rubric))
        dropped = [one for one in trials if one.score_name == name and not one.kept]
        dropped.sort(key=lambda one: (one.corrected_p is None, one.corrected_p, one.name))
        if held or dropped or name in searches:
            parts.append((name, MEANINGS[name], searches.get(name), held, dropped))
    return page.render("rubrics/list.html", title="Rubrics", parts=parts)


@router.get("/rubrics/{score_name}/{key}")
def rubric(page: Page, score_name: str, key: str) -> Response:
    """Show a rubric or a candidate, with what it was mined from and what other sessions say."""
    trials = page.lake.read(TRIALS, ALL, RubricTrial)
    trial = next((one for one in trials if (one.score_name, one.key) == (score_name, key)), None)
    held = (one for one in page.lake.rows(RUBRICS, Rubric, SCORE_NAMES) if one.key == key)
    shown = next((one for one in held if one.score_name == score_name), None)
    one = shown or (trial.rubric if trial else None)
    if one is None:
        raise InputError(
            f"{score_name}/{key}", "is no rubric of this lake", "Choose one of the list."
        )
    quotes = _quotes(page.lake, one)
    titles = _sessions(page, {each.session_id for each in quotes})
    return page.render(
        "rubrics/rubric.html",
        title=one.name,
        rubric=one,
        trial=trial,
        meaning=MEANINGS[one.score_name],
        scale=sorted(scale_points(one.scoring_criteria).items()),
        quotes=[(each, titles.get(each.session_id)) for each in quotes],
        sides=_sides(page, one) if shown else None,
    )


def _quotes(lake: Lake, one: Rubric) -> list[RubricEvidence]:
    """Return the quotes of the sessions that a rubric was mined from."""
    rows = (
        row
        for week in lake.partitions(EXTRACTED)
        for row in lake.read(EXTRACTED, week, ExtractedRubric, ("id", one.sources))
    )
    return list(dict.fromkeys(piece for row in rows for piece in row.evidence))[:_QUOTES]


def _sessions(page: PageContext, ids: Iterable[str]) -> dict[str, SessionRow]:
    chosen = list(ids)
    marks = ", ".join("?" * len(chosen))
    return {row.id: row for row in page.index.sessions(f"id IN ({marks})", chosen)}


def _sides(page: PageContext, one: Rubric) -> RubricSides | None:
    """Return what sessions say of a rubric that it was not mined from.

    Good sessions that show it and bad ones that do not speak for it, the others against it.
    """
    values = {
        row.session_id: value
        for row in page.lake.rows("session_scores", _Efficiencies)
        if (value := row.value(one.score_name)) is not None
    }
    only = ("rubric_key", {one.key})
    levels = {
        row.session_id: row.score
        for week in page.lake.partitions(EVALUATIONS)
        for row in page.lake.read(EVALUATIONS, week, _Level, only)
        if row.score is not None
        and row.score_name == one.score_name
        and row.session_id in values
        and row.session_id not in one.sessions
    }
    if not levels:
        return None
    middle = median(values[id_] for id_ in levels)
    ranked = sorted(levels, key=lambda id_: (values[id_], id_))
    from_ends = [
        ranked[place // 2 if place % 2 else -1 - place // 2] for place in range(len(ranked))
    ]
    sides: dict[bool, list[str]] = {True: [], False: []}
    for id_ in from_ends:
        if levels[id_] >= _HIGH or levels[id_] <= _LOW:
            sides[(values[id_] > middle) == (levels[id_] >= _HIGH)].append(id_)
    shown = {side: ids[:_SHOWN] for side, ids in sides.items()}
    rows = _sessions(page, [*shown[True], *shown[False]])
    reasons = _reasons(page.lake, one, rows)

    def made(ids: list[str]) -> tuple[SessionSide, ...]:
        return tuple(
            SessionSide(
                row=rows[id_],
                level=levels[id_],
                value=values[id_],
                is_good=values[id_] > middle,
                reasoning=reasons.get(id_, ""),
                turn=next(cited_turns(reasons.get(id_, "")), None),
            )
            for id_ in ids
            if id_ in rows
        )

    return RubricSides(
        judged=len(levels),
        count_for=len(sides[True]),
        count_against=len(sides[False]),
        speak_for=made(shown[True]),
        speak_against=made(shown[False]),
    )


def _reasons(lake: Lake, one: Rubric, rows: Mapping[str, SessionRow]) -> dict[str, str]:
    only = ("session_id", list(rows))
    return {
        row.session_id: row.reasoning
        for week in sorted({row.week for row in rows.values()})
        for row in lake.read(EVALUATIONS, week, RubricEvaluation, only)
        if (row.score_name, row.rubric_key) == (one.score_name, one.key)
    }
