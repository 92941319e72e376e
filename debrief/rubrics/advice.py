"""Advice: lines for a file that agents read, from rubrics that hold on unseen sessions alone.

What held is a link between what people do and how sessions went, not its cause; each line has the
evidence beside it, so that whoever takes the line knows how much it is worth.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from io import StringIO

from msgspec import Struct

from debrief.errors import without_controls
from debrief.lake import Lake
from debrief.models.injection import injection_signs
from debrief.rubrics.model import ALL, RUBRICS, SEARCHES, Rubric, RubricSearch
from debrief.rubrics.page import p_value, shown_effect
from debrief.rubrics.trial import MEANINGS
from debrief.scoring.model import SCORE_NAMES

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
