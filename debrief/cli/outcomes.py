"""``debrief outcomes``, ``fit`` and ``validity``: what became of the work, and what scores say."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.progress import Progress
from rich.table import Table

from debrief.cli.shared import (
    AsJson,
    DryRun,
    LakeUrl,
    MaxCost,
    Model,
    Yes,
    checked_limit,
    console,
    existing_lake,
    print_json,
    warn,
)
from debrief.errors import InputError
from debrief.markdown import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from debrief.evaluators import Evaluators
    from debrief.outcomes.store import Label
    from debrief.scoring.model import SessionScores
    from debrief.settings import Settings
    from debrief.validity.references import Corpus

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

    Read are, in the repositories, which of a session's own lines were kept, reverts, and own lines
    still there after 7 and 30 days; pull requests and CI as sessions saw them; a benchmark's
    rewards beside the transcripts; CSV files and **human_feedback.md**. No network is used. What
    is read again replaces what was known from there.
    """
    from debrief.lake import Lake
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
    opened, here = Lake(lake or settings.lake), find_repository(Path())
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
            f"{len(decided) - yes} no. The strongest source decides; a session's own last check "
            "is shown and decides nothing."
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
    """Refit the order to the lake's own labels, and say what that gains on held-out tasks.

    Twenty labelled sessions of a kind, with both outcomes among them, are needed. Weights are held
    to those before, and stored in the lake where the probability that the work was done beats the
    base rate on tasks that they were not fitted on. Pages and reports show it from then on.
    """
    from debrief.lake import Lake
    from debrief.outcomes.store import DECIDING, store_table
    from debrief.scoring.order import shipped_table
    from debrief.settings import load_settings
    from debrief.validity.refitting import gain_text, refit, rows_of_lake

    opened = Lake(lake or load_settings().lake)
    if shipped:
        store_table(opened, None)
        console().print("The table that comes with the program is in force again.")
        return
    rows = rows_of_lake(opened, (*DECIDING, "check") if with_checks else DECIDING)
    if not rows.labels:
        label_first = "Label sessions on the pages, or run debrief outcomes."
        raise InputError(opened.url, "holds no label of success", label_first)
    if not rows.sessions:
        raise InputError(opened.url, "holds no scores", "Run debrief run first.")
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
        console().print(f"Stored: {kinds}.")


_PROBLEMS = 20


def validity(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            help="With readers' verdicts (*.jsonl), or labels.csv and transcripts in or below it. "
            "Default: what people said of the lake's sessions."
        ),
    ] = None,
    sessions: Annotated[
        Path | None,
        typer.Option(help="Where the sessions are that readers read. Default: sessions beside it."),
    ] = None,
    model: Model = "",
    max_cost: MaxCost = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    changed: Annotated[
        int, typer.Option(min=0, help="Sessions whose verdict is looked at after changes, too.")
    ] = 100,
    wordings: Annotated[
        Path | None,
        typer.Option(help="A TOML file of sentences for these changes, instead of ours."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Draws other sentences.")] = 0,
    as_json: Annotated[Path | None, typer.Option("--json", help="Write all figures there.")] = None,
    lake: LakeUrl = "",
) -> None:
    """Compare verdicts and the order with those who know how sessions ended.

    That is: readers' verdicts, people's labels, a benchmark's results. Every figure has its 95 %
    interval, and says where it cannot be told from chance. Then sessions are changed so that it is
    known how the verdict must move. With **--model** its scores are compared with the no_model
    verdict on the same sessions; what that costs is said before it is asked.
    """
    import msgspec

    from debrief.lake import Lake
    from debrief.outcomes.store import own_table
    from debrief.settings import load_settings
    from debrief.validity.changes import wordings_from
    from debrief.validity.figures import report_of
    from debrief.validity.measuring import Changing, drawn, measure
    from debrief.validity.references import corpora_in, corpus_of_lake
    from debrief.validity.report import report_markdown

    settings, table = (
        load_settings().with_given(model=model, max_cost_usd=checked_limit(max_cost)),
        None,
    )
    found = [corpora_in(folder, sessions) for folder in folders or ()]
    if not found:
        opened = Lake(existing_lake(lake) or settings.lake)
        found = [([corpus_of_lake(opened)], [])]
        if (table := own_table(opened)) is not None:
            warn(f"{opened.url} has an order fitted to these labels; debrief fit tests others")
    problems = [problem for _, own in found for problem in own]
    for problem in problems[:_PROBLEMS]:
        warn(problem)
    if len(problems) > _PROBLEMS:
        warn(f"and {len(problems) - _PROBLEMS} more of that kind")
    corpora = [corpus for own, _ in found for corpus in own]
    changing = Changing(wordings_from(wordings), drawn(corpora, changed), seed)
    scores = _scores_by_model(settings, corpora, yes, dry_run) if model else None
    with console(stderr=True).status("Reading and judging sessions …"):
        rows = measure(corpora, table, changing)
    if not rows:
        raise InputError("the labelled sessions", "could not be read, not one of them")
    report = report_of(rows, model, scores)
    if as_json is not None:
        as_json.write_bytes(msgspec.json.format(msgspec.json.encode(report)))
    console().print(report_markdown(report))


def _scores_by_model(
    settings: Settings, corpora: Sequence[Corpus], yes: bool, dry_run: bool
) -> dict[str, SessionScores]:
    """Say what asking the model takes, and ask it when that is agreed to."""
    from debrief.cli.asking import agreed
    from debrief.validity.measuring import scores_by

    def count(by: Evaluators) -> None:
        scores_by(by.chunk_scorer, corpora, by.concurrency)

    sessions = sum(len(corpus.references) for corpus in corpora)
    asking = agreed(settings, count, yes, dry_run=dry_run, sessions=sessions)
    screen = console(stderr=True)
    with Progress(console=screen, transient=True, disable=not screen.is_terminal) as progress:
        bar = progress.add_task("Scoring", total=sessions)
        return scores_by(
            asking.chunk_scorer, corpora, asking.concurrency, partial(progress.advance, bar)
        )
