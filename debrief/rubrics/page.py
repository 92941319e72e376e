"""Rubrics as a page to read: Markdown, safe to show whatever a rubric's texts hold."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence

from debrief.markdown import table
from debrief.rubrics.linting import Mark, scale_points
from debrief.rubrics.model import ExtractedRubric, Rubric, RubricTrial

_ACTIVE = re.compile(r"([\\`*_\[\]|~#])")
_LINK = re.compile(r"\b(?:https?|ftp|javascript|data|file)(?=:)", re.IGNORECASE)
_TITLES = {
    "excellence": "Excellence",
    "token_efficiency": "Token efficiency",
    "user_turn_efficiency": "User turn efficiency",
}


def rubrics_markdown(
    rubrics: Sequence[Rubric],
    *,
    extracted: Iterable[ExtractedRubric] = (),
    marks: Iterable[Mark] = (),
    trials: Iterable[RubricTrial] = (),
) -> str:
    """Return a page of rubrics, score name by score name.

    Args:
        rubrics: of one or several score names.
        extracted: what they were merged from; gives each rubric the quotes it rests on.
        marks: of the linter, by rubric id.
        trials: on sessions that the rubrics were not mined from; those that were dropped are
            listed at the end.
    """
    gone = _dropped(trials)
    if not rubrics:
        nothing = "No rubrics: nothing set the best sessions apart from the worst."
        return "\n".join([nothing, *gone]) + "\n"
    sources = {row.id: row for row in extracted}
    noted: dict[str, list[Mark]] = {}
    for mark in marks:
        noted.setdefault(mark.rubric_id, []).append(mark)
    parts: list[str] = []
    for score_name in dict.fromkeys(rubric.score_name for rubric in rubrics):
        chosen = [rubric for rubric in rubrics if rubric.score_name == score_name]
        parts += [f"# {_TITLES[score_name]}", "", *_table(chosen), ""]
        for rubric in chosen:
            parts += _section(rubric, sources, noted.get(rubric.id, []))
    return "\n".join([*parts, *gone]).rstrip() + "\n"


def plain(text: str) -> str:
    """Return ``text`` so that Markdown shows it as it is: no markup, no HTML, no live link."""
    line = " ".join(text.split())
    escaped = _ACTIVE.sub(r"\\\1", html.escape(line, quote=False))
    return _LINK.sub(lambda found: f"{found[0]}&#8203;", escaped)


def _table(rubrics: Sequence[Rubric]) -> list[str]:
    rows = [
        (
            plain(rubric.name),
            f"{rubric.weight:.2f}",
            _signed(rubric.effect_size),
            str(len(rubric.sessions)),
            "not tried" if rubric.held_out_effect is None else _signed(rubric.held_out_effect),
            str(rubric.held_out_sessions),
        )
        for rubric in rubrics
    ]
    return [
        table(("Rubric", "Weight", "Effect", "Sessions", "Effect on others", "Others"), rows),
        "",
        "Effects are Cliff's delta: how much more often a best session is above a worst one than "
        "below. Others are sessions that the rubric was not mined from.",
    ]


def _signed(effect: float | None) -> str:
    return "" if effect is None else f"{effect:+.2f}"


def _dropped(trials: Iterable[RubricTrial]) -> list[str]:
    gone = [trial for trial in trials if not trial.kept]
    if not gone:
        return []
    return [
        "",
        "## Dropped",
        "",
        *(
            f"- {plain(trial.name)} ({_signed(trial.effect)} on "
            f"{trial.best_count + trial.worst_count} sessions): {plain(trial.reason)}"
            for trial in gone
        ),
    ]


def _section(
    rubric: Rubric, sources: Mapping[str, ExtractedRubric], marks: Sequence[Mark]
) -> list[str]:
    lines = [f"## {rubric.id}: {plain(rubric.name)}", "", plain(rubric.description), ""]
    points = scale_points(rubric.scoring_criteria)
    if set(points) == {1, 2, 3, 4, 5}:
        rows = [(str(point), plain(points[point])) for point in sorted(points)]
        lines.append(table(("Score", "What it looks like"), rows))
    else:
        lines += [plain(line) for line in rubric.scoring_criteria.splitlines()]
    lines.append("")
    quotes = [
        f"> “{plain(piece.quote)}” — session {plain(piece.session_id)}, turn {piece.turn}"
        for source in rubric.sources
        if source in sources
        for piece in sources[source].evidence
    ]
    for quote in list(dict.fromkeys(quotes))[:3]:
        lines += [quote, ""]
    if rubric.notes:
        lines += [plain(rubric.notes), ""]
    lines += [f"- {mark.rule}: {plain(mark.message)}" for mark in marks]
    return [*lines, ""] if marks else lines
