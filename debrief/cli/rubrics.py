"""``debrief rubrics``: read the final rubrics, check rubrics, compare two sets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from debrief.cli.console import console, print_json
from debrief.cli.options import AsJson, LakeUrl
from debrief.errors import InputError

if TYPE_CHECKING:
    from debrief.lake import Lake
    from debrief.rubrics.comparing import RubricChange
    from debrief.rubrics.linting import Lintable
    from debrief.rubrics.model import Rubric, RubricTrial
    from debrief.scoring.model import ScoreName

app = typer.Typer(
    no_args_is_help=True, help="The rubrics that were mined: read them, check them, compare them."
)
FORMS = ("text", "markdown", "json")


@app.command("show")
def rubrics_show(
    lake: LakeUrl = "",
    score_name: Annotated[
        str, typer.Option(help="excellence, token_efficiency or user_turn_efficiency; all if none.")
    ] = "",
    form: Annotated[str, typer.Option("--format", help="text, markdown or json.")] = "text",
) -> None:
    """Show the final rubrics, how they did on other sessions, and which were dropped."""
    from debrief.rubrics.linting import lint
    from debrief.rubrics.model import EXTRACTED, TRIALS, ExtractedRubric, RubricTrial
    from debrief.rubrics.page import rubrics_markdown
    from debrief.scoring.model import SCORE_NAMES

    _check_known("--format", form, FORMS)
    if score_name:
        _check_known("--score-name", score_name, SCORE_NAMES)
    names = [name for name in SCORE_NAMES if score_name in ("", name)]
    store = _open(lake)
    rubrics = _by_score_name(store)
    trials = {name: list(store.read(TRIALS, name, RubricTrial)) for name in names}
    if not any(rubrics[name] or trials[name] for name in names):
        raise InputError(store.url, "holds no rubrics", f"Run: debrief run --lake {store.url}")
    if form == "json":
        print_json(
            {
                "rubrics": [rubric for name in names for rubric in rubrics[name]],
                "trials": [trial for name in names for trial in trials[name]],
            }
        )
    elif form == "markdown":
        extracted = [
            row
            for week in store.partitions(EXTRACTED)
            for row in store.read(EXTRACTED, week, ExtractedRubric)
        ]
        for name in names:
            own = rubrics[name]
            print(rubrics_markdown(own, extracted=extracted, marks=lint(own), trials=trials[name]))
    else:
        for name in names:
            _print_set(name, rubrics[name], trials[name])


@app.command("lint")
def rubrics_lint(
    path: Annotated[
        Path | None,
        typer.Argument(
            help="A JSON file: an array of rubrics, or an object with one in rubrics; those of the "
            "lake if none."
        ),
    ] = None,
    lake: LakeUrl = "",
    as_json: AsJson = False,
) -> None:
    """Mark what makes a rubric hard to judge by; exit code 1 when anything is marked."""
    from debrief.rubrics.files import rubrics_in_file
    from debrief.rubrics.linting import lint

    sets: dict[str, Sequence[Lintable]]
    if path is not None:
        sets = {title or str(path): rubrics for title, rubrics in rubrics_in_file(path).items()}
    else:
        store = _open(lake)
        sets = {str(name): own for name, own in _by_score_name(store).items()}
        if not any(sets.values()):
            raise InputError(store.url, "holds no rubrics", "Name a JSON file, or another --lake.")
    marks = [(title, mark) for title, rubrics in sets.items() for mark in lint(rubrics)]
    if as_json:
        print_json(
            [
                {"set": title, "rubric": m.rubric_id, "rule": m.rule, "message": m.message}
                for title, m in marks
            ]
        )
    else:
        out = console()
        for title, mark in marks:
            out.print(f"{title}: {mark.rubric_id}: {mark.rule}: {mark.message}")
        out.print(f"{sum(map(len, sets.values()))} rubrics, {len(marks)} marks")
    raise typer.Exit(1 if marks else 0)


@app.command("compare")
def rubrics_compare(
    before: Annotated[str, typer.Argument(help="A lake, or a Monday: the set as of that week.")],
    after: Annotated[str, typer.Argument(help="Likewise.")],
    lake: LakeUrl = "",
    as_json: AsJson = False,
) -> None:
    """Compare two sets by the rubrics' keys: what came, went, weighs more, was reworded."""
    from debrief.rubrics.comparing import compare_rubrics
    from debrief.scoring.model import SCORE_NAMES

    changes = compare_rubrics(_set(before, lake), _set(after, lake))
    if as_json:
        print_json(changes)
        return
    out = console()
    for name in SCORE_NAMES:
        own = [change for change in changes if change.score_name == name]
        if own:
            out.print(_changes(name, own))
    counts = {what: sum(c.what == what for c in changes) for what in ("came", "went", "changed")}
    out.print(", ".join(f"{count} {what}" for what, count in counts.items()))


def _print_set(name: ScoreName, rubrics: list[Rubric], trials: list[RubricTrial]) -> None:
    from debrief.rubrics.linting import scale_points

    out = console()
    title = f"{name}: {len(rubrics)} rubrics" if rubrics else f"{name}: no rubrics"
    out.print(title, style="bold")
    for rubric in rubrics:
        others = rubric.held_out_effect
        tried = "not tried on others" if others is None else f"{others:+.2f} on others"
        effect = "" if rubric.effect_size is None else f", effect {rubric.effect_size:+.2f}"
        out.print(f"\n{rubric.id}  {rubric.name}", style="bold")
        out.print(f"weight {rubric.weight:.2f}{effect}, {tried}  [{rubric.key}]", style="dim")
        out.print(rubric.description)
        for point, text in sorted(scale_points(rubric.scoring_criteria).items()):
            out.print(f"  {point}  {text}")
        if rubric.notes:
            out.print(rubric.notes, style="dim")
    dropped = [trial for trial in trials if not trial.kept]
    if dropped:
        out.print("\ndropped", style="bold")
    for trial in dropped:
        effect = "" if trial.effect is None else f" ({trial.effect:+.2f})"
        out.print(f"  {trial.name}{effect}: {trial.reason}")
    out.print()


def _changes(name: str, changes: list[RubricChange]) -> Table:

    headings = ("", "rubric", "weight", "place", "on others", "text")
    table = Table(*headings, box=box.SIMPLE_HEAD, title=name, title_justify="left")
    for change in changes:
        table.add_row(
            change.what,
            Text(change.name),
            _both(change.weight_before, change.weight_after, "{:.2f}"),
            _both(_rank(change.place_before), _rank(change.place_after), "{}"),
            _both(change.held_out_before, change.held_out_after, "{:+.2f}"),
            "reworded" if change.reworded else "",
        )
    return table


def _rank(id_: str) -> str | None:
    return id_.removeprefix("rubric_").lstrip("0") or None


def _both(before: float | str | None, after: float | str | None, form: str) -> str:
    if before == after:
        return "" if after is None else form.format(after)
    return " → ".join("–" if value is None else form.format(value) for value in (before, after))


def _set(named: str, lake: str) -> list[Rubric]:
    """Return the rubrics of a lake, or of the latest set of one that a week had a part in."""
    from debrief.rubrics.model import SETS, Rubric
    from debrief.weeks import is_week

    if not is_week(named):
        store = _open(named)
        rubrics = [rubric for own in _by_score_name(store).values() for rubric in own]
        if not rubrics:
            raise InputError(store.url, "holds no rubrics", "Name a lake, or a Monday of one.")
        return rubrics
    store = _open(lake)
    latest: dict[str, str] = {}
    for key in sorted(store.partitions(SETS)):
        score_name, _, week = key.partition(".")
        if week <= named:
            latest[score_name] = key
    rubrics = [rubric for key in latest.values() for rubric in store.read(SETS, key, Rubric)]
    if not rubrics:
        raise InputError(store.url, f"holds no set of rubrics of {named} or before")
    return rubrics


def _by_score_name(store: Lake) -> dict[ScoreName, list[Rubric]]:
    from debrief.rubrics.model import RUBRICS, Rubric
    from debrief.scoring.model import SCORE_NAMES

    return {name: list(store.read(RUBRICS, name, Rubric)) for name in SCORE_NAMES}


def _check_known(option: str, given: str, known: Sequence[str]) -> None:
    if given not in known:
        raise InputError(option, f"{given!r} is not known", f"Known: {', '.join(known)}.")


def _open(lake: str) -> Lake:
    from debrief.lake import Lake
    from debrief.settings import load_settings

    return Lake(lake or load_settings().lake)
