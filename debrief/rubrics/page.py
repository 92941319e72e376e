"""Rubrics to read: a page, what changed in a set, and advice for a file that agents read.

What held is a link between what people do and how sessions went, not its cause; each line of
advice has the evidence beside it, so that whoever takes the line knows how much it is worth.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from io import StringIO
from typing import Literal

from msgspec import Struct

from debrief.errors import without_controls
from debrief.lake import Lake
from debrief.markdown import interval, plain, table
from debrief.models.fencing import injection_signs
from debrief.rubrics.judging import rubric_digest
from debrief.rubrics.linting import Mark, lint, scale_points
from debrief.rubrics.model import (
    ALL,
    RUBRICS,
    SEARCHES,
    ExtractedRubric,
    Rubric,
    RubricSearch,
    RubricTrial,
)
from debrief.rubrics.trial import MEANINGS
from debrief.scoring.model import SCORE_NAMES, ScoreName

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


What = Literal["came", "went", "changed", "same"]


class RubricChange(Struct, frozen=True, kw_only=True):
    """What became of one rubric from one set to another, by its key."""

    score_name: ScoreName
    key: str
    name: str
    what: What
    weight_before: float | None = None
    weight_after: float | None = None
    place_before: str = ""
    place_after: str = ""
    reworded: bool = False
    """A judge reads another text: its scores before and after are not one series."""
    held_out_before: float | None = None
    held_out_after: float | None = None


def compare_rubrics(before: Iterable[Rubric], after: Iterable[Rubric]) -> list[RubricChange]:
    """Return a change for each rubric of either set, score name by score name.

    In the order of the later set, then those that went.
    """
    old, new = ({(each.score_name, each.key): each for each in rs} for rs in (before, after))
    keys = [*new, *(key for key in old if key not in new)]
    keys.sort(key=lambda key: SCORE_NAMES.index(key[0]))
    return [_change(key, old.get(key), new.get(key)) for key in keys]


def _change(key: tuple[ScoreName, str], old: Rubric | None, new: Rubric | None) -> RubricChange:
    reworded = bool(old and new and rubric_digest(old) != rubric_digest(new))
    what: What = "came" if old is None else "went" if new is None else "same"
    if old and new and (reworded or old.weight != new.weight):
        what = "changed"
    return RubricChange(
        score_name=key[0],
        key=key[1],
        name=new.name if new else old.name if old else "",
        what=what,
        weight_before=old.weight if old else None,
        weight_after=new.weight if new else None,
        place_before=old.id if old else "",
        place_after=new.id if new else "",
        reworded=reworded,
        held_out_before=old.held_out_effect if old else None,
        held_out_after=new.held_out_effect if new else None,
    )


HEADING = "## What went with better sessions here"
_NO_NEWLINE = "\\ No newline at end of file\n"


class Advice(Struct, frozen=True, kw_only=True):
    """A proposed line, and the rubrics that it comes from."""

    line: str
    rubrics: tuple[Rubric, ...]
    """Of one habit; those of several score names stand together."""

    @property
    def evidence(self) -> tuple[str, ...]:
        """Return what was measured, a line a rubric."""
        return tuple(
            f"{rubric.name}: {shown_effect(*_effect(rubric))} on {rubric.held_out_sessions} unseen "
            f"sessions, p {p_value(rubric.corrected_p)}; better means {MEANINGS[rubric.score_name]}"
            for rubric in self.rubrics
        )


class Advised(Struct, frozen=True, kw_only=True):
    """What can be advised, and what is missing for more."""

    advice: tuple[Advice, ...]
    missing: tuple[str, ...]
    """For each score name without a rubric that holds, why there is none."""


def advice_of(lake: Lake) -> Advised:
    """Return the advice that a lake's rubrics bear, the strongest effect first."""
    searches = list(lake.read(SEARCHES, ALL, RubricSearch))
    return advise(lake.rows(RUBRICS, Rubric, SCORE_NAMES), searches)


def advise(rubrics: Iterable[Rubric], searches: Sequence[RubricSearch]) -> Advised:
    """Return advice from rubrics that hold; what was not tried on unseen sessions gives none.

    Neither does one whose words are meant for whoever judges: they would be instructions.
    """
    lines: dict[str, list[Rubric]] = {}
    for rubric in rubrics:
        holds = (rubric.held_out_low or 0.0) > 0 and rubric.corrected_p is not None
        if holds and not injection_signs([rubric.description]):
            lines.setdefault(_line(rubric), []).append(rubric)
    advice = [
        Advice(line=line, rubrics=tuple(sorted(own, key=_strength))) for line, own in lines.items()
    ]
    advice.sort(key=lambda one: (_strength(one.rubrics[0]), one.line))
    held = {rubric.score_name for one in advice for rubric in one.rubrics}
    missing = tuple(
        f"{search.score_name.replace('_', ' ').capitalize()}: {search.said}"
        for search in searches
        if search.score_name not in held
    ) or (("No session was searched for rubrics yet.",) if not searches and not advice else ())
    return Advised(advice=tuple(advice), missing=missing)


def advice_markdown(advised: Advised) -> str:
    """Return the section for a file that agents read; empty without advice."""
    if not advised.advice:
        return ""
    note = (
        "<!-- From rubrics that held on sessions they were not mined from; no cause was tested. -->"
    )
    return f"{HEADING}\n\n{note}\n\n{_items(advised.advice)}"


def advice_patch(advised: Advised, path: str, text: str | None) -> str:
    """Return a unified diff that adds the lines which a file does not have yet; else empty.

    Args:
        advised: what to add.
        path: of the file, as the patch shall name it.
        text: what it holds; None when it does not exist.
    """
    held = text or ""
    new = tuple(one for one in advised.advice if one.line not in held)
    if not new:
        return ""
    above, heading, below = held.partition(f"{HEADING}\n")
    if heading:
        made = f"{above}{heading}\n{_items(new)}{below}"
    else:
        section = advice_markdown(Advised(advice=new, missing=()))
        made = f"{held.rstrip()}\n\n{section}" if held.strip() else section
    names = "/dev/null" if text is None else f"a/{path}", f"b/{path}"
    lines, more = StringIO(held).readlines(), StringIO(made).readlines()
    return "".join(
        line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}"
        for line in difflib.unified_diff(lines, more, *names)
    )


def _items(advice: Iterable[Advice]) -> str:
    return "".join(
        f"- {one.line}\n" + "".join(f"  <!-- {_in_comment(each)} -->\n" for each in one.evidence)
        for one in advice
    )


def _line(rubric: Rubric) -> str:
    """Return what a rubric means for the agent; one of a model in the model's own words."""
    known = _lines().get(rubric.habit)
    words = " ".join(without_controls(rubric.description).split())
    return known or f"Sessions went better where this held: {words}"


@cache
def _lines() -> dict[str, str]:
    text = (files("debrief.rubrics.habits") / "advice.toml").read_text("utf-8")
    return {key: str(line) for key, line in tomllib.loads(text).items()}


def _effect(rubric: Rubric) -> tuple[float | None, float | None, float | None]:
    return rubric.held_out_effect, rubric.held_out_low, rubric.held_out_high


def _strength(rubric: Rubric) -> float:
    return -(rubric.held_out_effect or 0.0)


def _in_comment(text: str) -> str:
    return " ".join(without_controls(text).replace("--", "–").split())
