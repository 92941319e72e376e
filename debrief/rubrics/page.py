"""The rubrics as a Markdown page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from debrief.markdown import interval, plain, table
from debrief.rubrics.linting import Mark, lint, scale_points
from debrief.rubrics.model import (
    ExtractedRubric,
    Rubric,
    RubricSearch,
    RubricTrial,
)
from debrief.rubrics.trial import MEANINGS
from debrief.scoring.model import ScoreName

_SMALLEST_P = 0.001


def rubrics_markdown(
    rubrics: Sequence[Rubric],
    *,
    extracted: Iterable[ExtractedRubric] = (),
    trials: Iterable[RubricTrial] = (),
    searches: Iterable[RubricSearch] = (),
) -> str:
    """Return a page of rubrics, score name by score name, each set with the linter's marks.

    Args:
        rubrics: of one or several score names.
        extracted: what they were merged from; gives each rubric the quotes it rests on.
        trials: on sessions that nothing was mined from; candidates that were dropped are listed
            at the end.
        searches: what the search came to for each score name.
    """
    said = {search.score_name: search.said for search in searches}
    sources = {row.id: row for row in extracted}
    parts: list[str] = []
    for score_name in dict.fromkeys((*said, *(rubric.score_name for rubric in rubrics))):
        chosen = [rubric for rubric in rubrics if rubric.score_name == score_name]
        parts += [f"# {_words(score_name).capitalize()}", f"Good means: {MEANINGS[score_name]}."]
        parts += [said[score_name]] if score_name in said else []
        parts += _table(chosen) if chosen else []
        marks = lint(chosen)
        for rubric in chosen:
            own = [mark for mark in marks if mark.rubric_id == rubric.id]
            parts += _section(rubric, sources, own)
    parts = parts or ["No rubrics: no sessions were searched for any yet."]
    return "\n\n".join([*parts, *_dropped(trials)]) + "\n"


def shown_effect(effect: float | None, low: float | None, high: float | None) -> str:
    """Return an effect with its interval; empty where there is none."""
    return interval(effect, low, high, "+.2f")


def _words(score_name: ScoreName) -> str:
    return score_name.replace("_", " ")


def p_value(p: float | None) -> str:
    """Return a p-value to read; empty where there is none."""
    return "" if p is None else "under 0.001" if p < _SMALLEST_P else f"{p:.3f}"


def _table(rubrics: Sequence[Rubric]) -> list[str]:
    rows = [
        (
            plain(rubric.name),
            f"{rubric.weight:.2f}",
            shown_effect(rubric.held_out_effect, rubric.held_out_low, rubric.held_out_high),
            p_value(rubric.corrected_p),
            str(rubric.held_out_sessions),
        )
        for rubric in rubrics
    ]
    return [
        table(("Rubric", "Weight", "Effect on unseen sessions", "p", "Sessions"), rows),
        "Effects are Cliff's delta, with 95 % intervals: how much more often a good session is "
        "above a bad one than below. Unseen are sessions that nothing was mined from. p is "
        "corrected for all candidates that were looked at.",
    ]


def _dropped(trials: Iterable[RubricTrial]) -> list[str]:
    gone = [
        f"- {plain(trial.name)}, {_words(trial.score_name)}: {plain(trial.reason)}"
        + (f", {shown}" if (shown := shown_effect(trial.effect, trial.low, trial.high)) else "")
        for trial in trials
        if not trial.kept
    ]
    return ["# Dropped", "\n".join(gone)] if gone else []


def _section(
    rubric: Rubric, sources: Mapping[str, ExtractedRubric], marks: Sequence[Mark]
) -> list[str]:
    points = scale_points(rubric.scoring_criteria)
    if set(points) == {1, 2, 3, 4, 5}:
        rows = [(str(point), plain(points[point])) for point in sorted(points)]
        scale = table(("Score", "What it looks like"), rows)
    else:
        scale = "\n".join(map(plain, rubric.scoring_criteria.splitlines()))
    quotes = dict.fromkeys(
        f"> “{plain(piece.quote)}” — session {plain(piece.session_id)}, turn {piece.turn}"
        for source in rubric.sources
        if source in sources
        for piece in sources[source].evidence
    )
    marked = "\n".join(f"- {mark.rule}: {plain(mark.message)}" for mark in marks)
    parts = [f"## {rubric.id}: {plain(rubric.name)}", plain(rubric.description), scale]
    return list(filter(None, [*parts, *list(quotes)[:3], plain(rubric.notes), marked]))
