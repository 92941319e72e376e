"""``debrief outcomes`` and ``debrief fit``: what became of the work, and P(success) from it."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.table import Table

from debrief.cli.shared import AsJson, LakeUrl, console, print_json, warn
from debrief.errors import InputError
from debrief.markdown import counted

if TYPE_CHECKING:
    from debrief.outcomes.model import Label

_HEADINGS = ("source", "labels", "sessions", "success: yes", "no", "other")


def outcomes(
    repo: Annotated[
        list[Path] | None,
        typer.Option(
            "--repo",
            help="A repository that sessions worked in; may be given more than once. "
            "Default: each session's own, where it is still there.",
        ),
    ] = None,
    labels: Annotated[
        list[Path] | None,
        typer.Option(
            "--labels",
            help="A CSV file with session_id,success[,task] or session_id,name,value[,rater]; "
            "may be given more than once, and beside DEBRIEF_LABELS.",
        ),
    ] = None,
    forget: Annotated[
        list[str] | None,
        typer.Option("--forget", help="Take back the labels that were read from this place."),
    ] = None,
    as_json: AsJson = False,
    lake: LakeUrl = "",
) -> None:
    """Look up what became of each session's work, and keep it as labels in the lake.

    Read are commits, reverts and lines still there after 7 and 30 days in the repositories; pull
    requests and CI as sessions saw them; attributions and a benchmark's rewards beside the
    transcripts; CSV files and **human_feedback.md**. No network is used. What is read again
    replaces what was known from there.
    """
    from debrief.lake import Lake
    from debrief.outcomes.gathering import outcomes_of
    from debrief.outcomes.model import PEOPLE, Labels, joined
    from debrief.outcomes.store import all_labels, put_labels, success_labels
    from debrief.rubrics.agreement_report import read_labels
    from debrief.settings import load_settings
    from debrief.snapshots.capture import find_repository
    from debrief.snapshots.plans import repository_of

    settings = load_settings()
    settings = settings.model_copy(update={"labels": (*settings.labels, *(labels or ()))})
    opened, here = Lake(lake or settings.lake), find_repository(Path())
    named = [repository_of(folder).root for folder in repo or ()]
    people = read_labels(settings, None, here.root if here else None)
    places = {name for place in forget or () for name in (place, str(Path(place).absolute()))}
    gone = Labels(read=dict.fromkeys(PEOPLE, frozenset(places)))
    put_labels(opened, joined([people, outcomes_of(opened, named, datetime.now(UTC)), gone]))
    known, decided = list(all_labels(opened)), success_labels(opened)
    if as_json:
        print_json({"labels": known, "success": decided, "problems": people.problems})
    else:
        console().print(_table(known))
        yes = sum(one.success for one in decided.values())
        console().print(
            f"{counted(len(decided), 'session')} with a known success: {yes} yes, "
            f"{len(decided) - yes} no. The strongest source decides; a session's own last check "
            "is shown and decides nothing."
        )
    for problem in people.problems:
        warn(problem)


def _table(labels: list[Label]) -> Table:
    from debrief.outcomes.model import success_of

    table = Table(*_HEADINGS, box=box.SIMPLE_HEAD)
    for source, several in groupby(labels, key=attrgetter("source")):
        found = list(several)
        said = Counter(map(success_of, found))
        counts = (len(found), len({label.session_id for label in found}))
        table.add_row(source, *map(str, (*counts, said[True], said[False], said[None])))
    return table


def fit(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what a fit would gain, and store nothing.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Store it also where it is no better, or untested.")
    ] = False,
    with_checks: Annotated[
        bool,
        typer.Option("--with-checks", help="Take a session's own last check for a label too."),
    ] = False,
    shipped: Annotated[
        bool, typer.Option("--shipped", help="Go back to the table that comes with the program.")
    ] = False,
    as_json: AsJson = False,
    lake: LakeUrl = "",
) -> None:
    """Refit P(success) to the lake's own labels, and say what that gains on held-out weeks.

    Twenty labelled sessions of a kind, with both outcomes among them, are needed. The table is
    held to the shipped one, tested on weeks that it was not fitted on, and stored in the lake
    unless it is no better there; the next run scores with it.
    """
    from debrief.lake import Lake
    from debrief.offline.success import shipped_table
    from debrief.outcomes.model import ALL_SOURCES
    from debrief.outcomes.store import WITHOUT_CHECKS
    from debrief.outcomes.tables import store_table
    from debrief.settings import load_settings
    from debrief.validity.refitting import gain_text, refit, rows_of_lake

    opened = Lake(lake or load_settings().lake)
    if shipped:
        store_table(opened, None)
        console().print("The table that comes with the program is in force again.")
        return
    rows = rows_of_lake(opened, ALL_SOURCES if with_checks else WITHOUT_CHECKS)
    if not rows:
        raise InputError(opened.url, "holds no label of success", "Run debrief outcomes first.")
    made = refit(rows, shipped_table(), force=force)
    store = made.table is not None and not dry_run
    if store:
        store_table(opened, made.table)
    if as_json:
        print_json({"stored": store, "kinds": made.gains})
        return
    for gain in made.gains:
        console().print(gain_text(gain))
    kinds = ", ".join(made.taken) or "nothing"
    if dry_run:
        console().print(f"Would be stored: {kinds}. Nothing was changed.")
    else:
        console().print(f"Stored: {kinds}." + " The next run scores with it." * store)
