"""``debrief validity``: whether scores say anything about success."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import Progress

from debrief.cli.shared import LakeUrl, MaxCost, Model, console, existing_lake, warn

if TYPE_CHECKING:
    from debrief.validity.measuring import Measured

_PROBLEMS = 20


def validity(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            help="With labels.csv (session_id,success,task,family,kind) and transcripts in or "
            "below it. Default: the lake's labels."
        ),
    ] = None,
    model: Model = "",
    max_cost: MaxCost = None,
    sample: Annotated[
        int, typer.Option(min=0, help="Sessions of a family that are changed and cut too.")
    ] = 40,
    shuffles: Annotated[
        int, typer.Option(min=0, help="How often scores are shuffled to look for rubrics in them.")
    ] = 0,
    people: Annotated[
        Path | None,
        typer.Option(help="A folder with sessions of people to shuffle; our samples if none."),
    ] = None,
    as_json: Annotated[Path | None, typer.Option("--json", help="Write all figures there.")] = None,
    lake: LakeUrl = "",
) -> None:
    """Hold every score to how sessions really ended.

    For each score and family: AUROC, kappa, and of a probability Brier score and calibration,
    with 95 % intervals that count a task's runs as one, beside baselines that need no evaluator.
    Then changes of which it is known how a score must move, cuts into chunks, and rubrics found in
    shuffled scores. Without **--model** the offline evaluator is measured, and nothing is asked.
    """
    import msgspec

    from debrief import samples
    from debrief.validity.measuring import shuffle_scores
    from debrief.validity.tables import report_markdown, report_of

    rows = measured(folders or [], sample, model, max_cost, lake)
    shuffled = shuffle_scores(people or samples.folder(), shuffles) if shuffles else None
    report = report_of(rows, model or "offline", shuffled)
    if as_json is not None:
        as_json.write_bytes(msgspec.json.format(msgspec.json.encode(report)))
    for paragraph in report_markdown(report):
        console().print(f"{paragraph}\n")


def measured(
    folders: list[Path],
    sample: int,
    model: str = "",
    max_cost: float | None = None,
    lake: str = "",
) -> list[Measured]:
    """Measure labelled sessions, with progress on a terminal; what cannot be used is printed.

    Raises:
        InputError: there are none.
    """
    from debrief.errors import InputError
    from debrief.evaluators import make_evaluators
    from debrief.lake import Lake
    from debrief.outcomes.tables import own_table
    from debrief.settings import load_settings
    from debrief.validity.labelled import batches_of_folder, batches_of_lake
    from debrief.validity.measuring import measure

    settings, table = load_settings(), None
    found = [batches_of_folder(folder, sample) for folder in folders]
    if not folders:
        opened = Lake(existing_lake(lake) or settings.lake)
        found = [(batches_of_lake(opened, sample), [])]
        if (table := own_table(opened)) is not None:
            warn(f"{opened.url} has a table fitted to these labels; debrief fit tests it on others")
    problems = [problem for _, own in found for problem in own]
    for problem in problems[:_PROBLEMS]:
        warn(problem)
    if len(problems) > _PROBLEMS:
        warn(f"and {len(problems) - _PROBLEMS} more of that kind")
    batches = [batch for own, _ in found for batch in own]
    by = make_evaluators(
        settings, offline=not model, model=model, max_cost_usd=max_cost, table=table
    )
    screen = console(stderr=True)
    with Progress(console=screen, transient=True, disable=not screen.is_terminal) as progress:
        bar = progress.add_task("Scoring", total=sum(len(batch.runs) for batch in batches))
        rows = measure(batches, by, partial(progress.advance, bar))
    if not rows:
        raise InputError("the labelled sessions", "could not be read, not one of them")
    return rows
