"""``debrief rubrics``: read the final rubrics, check rubrics, compare two sets."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Literal

import msgspec
from rich import box
from rich.table import Table
from rich.text import Text

from debrief.cli.console import console
from debrief.errors import InputError
from debrief.lake import Lake
from debrief.rubrics.comparing import RubricChange, compare_rubrics
from debrief.rubrics.files import rubrics_in_file
from debrief.rubrics.linting import Mark, lint, scale_points
from debrief.rubrics.model import (
    EXTRACTED,
    RUBRICS,
    SETS,
    TRIALS,
    ExtractedRubric,
    Rubric,
    RubricTrial,
)
from debrief.rubrics.page import rubrics_markdown
from debrief.scoring.model import SCORE_NAMES, ScoreName
from debrief.settings import load_settings
from debrief.weeks import is_week

Form = Literal["text", "markdown", "json"]
FORMS: tuple[Form, ...] = ("text", "markdown", "json")


def show_rubrics(where: str, score_name: str, form: str) -> None:
    """Print the final rubrics of a lake.

    Raises:
        InputError: the lake has none, or the score name or the form is not known.
    """
    chosen = _one_of("--format", form, FORMS)
    names = _names(score_name)
    lake = _lake(where)
    rubrics = [rubric for name in names for rubric in lake.read(RUBRICS, name, Rubric)]
    trials = [trial for name in names for trial in lake.read(TRIALS, name, RubricTrial)]
    if not rubrics and not trials:
        raise InputError(lake.url, "holds no rubrics", "Run: debrief run --lake " + lake.url)
    if chosen == "json":
        _print_json({"rubrics": rubrics, "trials": trials})
    elif chosen == "markdown":
        extracted = [
            row
            for week in lake.partitions(EXTRACTED)
            for row in lake.read(EXTRACTED, week, ExtractedRubric)
        ]
        for name in names:
            own = [rubric for rubric in rubrics if rubric.score_name == name]
            tried = [trial for trial in trials if trial.score_name == name]
            sys.stdout.write(
                rubrics_markdown(own, extracted=extracted, marks=lint(own), trials=tried) + "\n"
            )
    else:
        for name in names:
            _print_set(name, [r for r in rubrics if r.score_name == name], trials)


def lint_rubrics(path: Path | None, where: str, as_json: bool) -> int:
    """Print what the linter says of a file's rubrics, or of a lake's; return how many marks.

    A file holds a JSON array of rubrics, or an object with the array in ``rubrics``, the form
    that models answer in and that ``show --format json`` prints.

    Raises:
        InputError: there is nothing to lint, or the file cannot be read.
    """
    marks: list[tuple[str, Mark]] = []
    count = 0
    if path is not None:
        for title, found in rubrics_in_file(path).items():
            count += len(found)
            marks += [(title or str(path), mark) for mark in lint(found)]
    else:
        lake = _lake(where)
        for name in SCORE_NAMES:
            rubrics = list(lake.read(RUBRICS, name, Rubric))
            count += len(rubrics)
            marks += [(name, mark) for mark in lint(rubrics)]
        if not count:
            raise InputError(lake.url, "holds no rubrics", "Name a JSON file, or another --lake.")
    if as_json:
        _print_json(
            [
                {"set": title, "rubric": m.rubric_id, "rule": m.rule, "message": m.message}
                for title, m in marks
            ]
        )
        return len(marks)
    out = console()
    for title, mark in marks:
        out.print(f"{title}: {mark.rubric_id}: {mark.rule}: {mark.message}", soft_wrap=True)
    out.print(f"{count} rubrics, {len(marks)} marks")
    return len(marks)


def compare_sets(before: str, after: str, where: str, as_json: bool) -> None:
    """Print what changed between two sets: two lakes, or two weeks of one.

    Raises:
        InputError: one of the two has no rubrics.
    """
    changes = compare_rubrics(_set(before, where), _set(after, where))
    if as_json:
        _print_json(changes)
        return
    out = console()
    for name in SCORE_NAMES:
        own = [change for change in changes if change.score_name == name]
        if own:
            out.print(_changes(name, own))
    counts = {what: sum(c.what == what for c in changes) for what in ("came", "went", "changed")}
    out.print(", ".join(f"{count} {what}" for what, count in counts.items()))


def _print_set(name: ScoreName, rubrics: list[Rubric], trials: list[RubricTrial]) -> None:
    out = console()
    title = f"{name}: {len(rubrics)} rubrics" if rubrics else f"{name}: no rubrics"
    out.print(title, style="bold")
    for rubric in rubrics:
        held = rubric.held_out_effect
        tried = "not tried on others" if held is None else f"{held:+.2f} on others"
        effect = "" if rubric.effect_size is None else f", effect {rubric.effect_size:+.2f}"
        out.print(f"\n{rubric.id}  {rubric.name}", style="bold")
        out.print(f"weight {rubric.weight:.2f}{effect}, {tried}  [{rubric.key}]", style="dim")
        out.print(rubric.description)
        for point, text in sorted(scale_points(rubric.scoring_criteria).items()):
            out.print(f"  {point}  {text}")
        if rubric.notes:
            out.print(rubric.notes, style="dim")
    gone = [trial for trial in trials if trial.score_name == name and not trial.kept]
    if gone:
        out.print("\ndropped", style="bold")
    for trial in gone:
        effect = "" if trial.effect is None else f" ({trial.effect:+.2f})"
        out.print(f"  {trial.name}{effect}: {trial.reason}")
    out.print()


def _changes(name: str, changes: list[RubricChange]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, title=name, title_justify="left")
    for heading in ("", "rubric", "weight", "place", "on others", "text"):
        table.add_column(heading)
    for change in changes:
        table.add_row(
            change.what,
            Text(change.name),
            _both(change.weight_before, change.weight_after, "{:.2f}"),
            _both(_place(change.place_before), _place(change.place_after), "{}"),
            _both(change.held_out_before, change.held_out_after, "{:+.2f}"),
            "reworded" if change.reworded else "",
        )
    return table


def _place(id_: str) -> str | None:
    return id_.removeprefix("rubric_").lstrip("0") or None


def _both(before: float | str | None, after: float | str | None, form: str) -> str:
    if before == after:
        return "" if after is None else form.format(after)
    return " → ".join("–" if value is None else form.format(value) for value in (before, after))


def _set(named: str, where: str) -> list[Rubric]:
    """Return the rubrics of a lake, or of the latest set of one that a week had a part in."""
    if not is_week(named):
        lake = _lake(named)
        found = [rubric for name in SCORE_NAMES for rubric in lake.read(RUBRICS, name, Rubric)]
        if not found:
            raise InputError(lake.url, "holds no rubrics", "Name a lake, or a Monday of one.")
        return found
    lake = _lake(where)
    partitions = lake.partitions(SETS)
    found = []
    for name in SCORE_NAMES:
        weeks = [key.removeprefix(f"{name}.") for key in partitions if key.startswith(f"{name}.")]
        if upto := [week for week in weeks if week <= named]:
            found += list(lake.read(SETS, f"{name}.{max(upto)}", Rubric))
    if not found:
        raise InputError(lake.url, f"holds no set of rubrics of {named} or before")
    return found


def _names(score_name: str) -> tuple[ScoreName, ...]:
    return (_one_of("--score-name", score_name, SCORE_NAMES),) if score_name else SCORE_NAMES


def _one_of(option: str, given: str, allowed: tuple[Any, ...]) -> Any:
    if given not in allowed:
        raise InputError(option, f"{given!r} is not known", f"Known: {', '.join(allowed)}.")
    return given


def _lake(where: str) -> Lake:
    return Lake(where or load_settings().lake)


def _print_json(value: object) -> None:
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")
