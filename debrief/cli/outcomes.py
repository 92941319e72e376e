"""``debrief outcomes``: what became of the work, kept as labels."""

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
from debrief.markdown import counted

if TYPE_CHECKING:
    from debrief.outcomes.store import Label

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
            help="A CSV file with session_id,success[,task] or "
            "session_id,name,value[,rater,blind]; may be given more than once, and beside "
            "DEBRIEF_LABELS.",
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

    Read are, in the repositories, which of a session's own lines were kept, reverts, and own lines
    still there after 7 and 30 days; pull requests and CI as sessions saw them; a benchmark's
    rewards beside the transcripts; CSV files and **human_feedback.md**. No network is used. What
    is read again replaces what was known from there.
    """
    from debrief.conversion import open_lake
    from debrief.outcomes.gathering import outcomes_of, read_labels
    from debrief.outcomes.store import (
        PEOPLE,
        Labels,
        all_labels,
        joined,
        only_label_writer,
        put_labels,
        success_labels,
        without_forgotten,
    )
    from debrief.redaction.redactor import Redactor, key_of
    from debrief.sessions.forgotten import Forgotten
    from debrief.settings import load_settings
    from debrief.snapshots.capture import find_repository
    from debrief.snapshots.plans import repository_of

    settings = load_settings()
    settings = settings.model_copy(update={"labels": (*settings.labels, *(labels or ()))})
    opened, here = open_lake(lake or settings.lake), find_repository(Path())
    named = [repository_of(folder).root for folder in repo or ()]
    people = read_labels(settings, None, here.root if here else None)
    places = {name for place in forget or () for name in (place, str(Path(place).absolute()))}
    gone = Labels(read=dict.fromkeys(PEOPLE, frozenset(places)))
    found = joined([people, outcomes_of(opened, named, datetime.now(UTC)), gone])
    forgotten = Forgotten.of(opened, Redactor(key_of(settings)))
    with only_label_writer(opened, settings.home):
        put_labels(opened, without_forgotten(found, forgotten))
    known, decided = list(all_labels(opened)), success_labels(opened)
    if as_json:
        print_json({"labels": known, "success": decided, "problems": people.problems})
    else:
        console().print(_table(known))
        yes = sum(success.success for success in decided.values())
        console().print(
            f"{counted(len(decided), 'session')} with a known success: {yes} yes, "
            f"{len(decided) - yes} no. The strongest source decides."
        )
    for problem in people.problems:
        warn(problem)


def _table(labels: list[Label]) -> Table:
    from debrief.outcomes.store import success_of

    table = Table(*_HEADINGS, box=box.SIMPLE_HEAD)
    for source, several in groupby(labels, key=attrgetter("source")):
        found = list(several)
        said = Counter(map(success_of, found))
        counts = (len(found), len({label.session_id for label in found}))
        table.add_row(source, *map(str, (*counts, said[True], said[False], said[None])))
    return table
