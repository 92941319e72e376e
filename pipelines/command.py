"""The ``debrief`` command: the library's commands and those that launch the graph."""

from __future__ import annotations

import gc
import signal
import sys
from datetime import datetime
from typing import Annotated

import typer

from debrief.cli.app import SESSIONS, TEAM, app
from debrief.cli.options import takes
from debrief.cli.run_options import Places, RunOptions, UiOptions
from debrief.cli.shared import (
    DryRun,
    LakeUrl,
    console,
    existing_lake,
)
from debrief.errors import InputError


@app.command()
def start(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Default: 3000, or any that is free.")
    ] = 0,
    browser: Annotated[bool, typer.Option(help="Open the pages in a browser.")] = True,
) -> None:
    """Read this machine's sessions and show them at once: what **debrief** alone does.

    No model is asked. Sessions appear while they are read, and while they run. Ctrl-C stops it.
    """
    from debrief.cli.start import start as show

    show(port, browser=browser)


@app.command()
def demo(
    lake: Annotated[
        str, typer.Option("--lake", help="The lake's folder. Default: ~/.debrief/demo.")
    ] = "",
) -> None:
    """Run the whole graph on the bundled sample sessions: no key, no network, a quarter minute.

    The samples are made up, and with them every difference between them: nothing is a finding.
    Reviews, judgments and rubrics are answers that a model gave once. The tests of some sessions
    are run again, in a sandbox, where there is one.
    """
    from debrief.cli.run_options import demo_options
    from debrief.evaluators import make_evaluators
    from debrief.execution.sample_runs import execute_samples
    from debrief.lake import Lake
    from debrief.questions.run import ask_about_lines
    from debrief.samples import REVIEWER
    from debrief.stages.friction import refresh_effects
    from pipelines.run import run_stages

    options = demo_options(lake)
    with options.applied() as settings:
        executed = execute_samples(Lake(settings.lake), settings)
        run_stages(options, of_demo=not lake)
        opened = Lake(settings.lake)
        ask_about_lines(opened, make_evaluators(settings, no_model=False))
        refresh_effects(opened)
    for line in executed.lines():
        console().print(line)
    console().print(
        "These sessions are invented, and a model's answers about them were recorded once "
        f"({REVIEWER}): the results show what output looks like and mean nothing."
    )


@app.command()
@takes(RunOptions)
def run(options: RunOptions) -> None:
    """Run the pipeline on your own sessions: read, review, judge, mine, export.

    Only what changed since the last run is done, and no model is asked twice. Stopped or killed,
    the same command goes on. The estimated cost is printed before a model is asked.
    """
    from pipelines.reviewing import offer_review, review_newest
    from pipelines.run import run_stages

    if options.newest:
        review_newest(options)
        return
    run_stages(options)
    if not (options.dry_run or options.is_partial):
        offer_review(options, console())


@app.command()
@takes(UiOptions)
def ui(options: UiOptions) -> None:
    """Start the pages of a lake, and Dagster's UI with its schedule and backfills at `/dagster`.

    When one of its processes ends, it stops the others and ends too. Ctrl-C or SIGTERM stops it.
    """
    from pipelines.ui import start_ui

    start_ui(options)


@app.command(rich_help_panel=SESSIONS)
def forget(
    sessions: Annotated[
        list[str] | None,
        typer.Argument(metavar="SESSION", help="Ids, or the first six characters or more."),
    ] = None,
    person: Annotated[
        str,
        typer.Option(
            help="All sessions of a person, and the labels that the person gave: the name of a "
            "home folder, of who pushed, of a rater, or a Langfuse user's id."
        ),
    ] = "",
    repository: Annotated[str, typer.Option(help="All sessions of a repository.")] = "",
    before: Annotated[
        datetime | None,
        typer.Option(formats=["%Y-%m-%d"], help="All sessions that ended before that day (UTC)."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would go and what would remain, no more.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    lake: LakeUrl = "",
) -> None:
    """Forget sessions: take them, and all that holds their words, away from every place.

    That is the lake, captures, records, training sets and exports, kept answers, the pages' index,
    logs, Dagster's storage, and our scores on Langfuse. They are not read in again. Killed half
    way, the same command goes on.
    """
    from debrief.cli.receipt import print_receipt
    from debrief.forgetting.choosing import Choice
    from debrief.forgetting.forget import ForgetReceipt
    from pipelines.forgetting import forget_sessions

    existing_lake(lake)
    if sum(map(bool, (sessions, person, repository, before))) != 1:
        raise InputError(
            "forget", "takes sessions, or one of --person, --repository and --before", "Give one."
        )
    choice = Choice(
        sessions=tuple(sessions or ()),
        person=person,
        repository=repository,
        before=before.date() if before else None,
    )
    out = console()

    def agrees(receipt: ForgetReceipt) -> bool:
        if dry_run or not yes:
            print_receipt(receipt, out)
        if dry_run or yes:
            return not dry_run
        return typer.confirm("This cannot be undone. Forget them?")

    with Places(lake=lake).applied() as settings:
        receipt = forget_sessions(settings, choice, agrees)
    if receipt.is_done:
        print_receipt(receipt, out)
    elif not dry_run:
        out.print("Nothing was changed.")


runs = typer.Typer(no_args_is_help=True, help="What Dagster remembers of runs, looked after.")
app.add_typer(runs, name="runs", rich_help_panel=TEAM)


@app.command(rich_help_panel=TEAM)
def audit(
    days: Annotated[float, typer.Option(min=0, help="How far to look back.")] = 30.0,
) -> None:
    """Print who changed what on the pages and in Dagster's UI, one line a change.

    Labels, notes, names of prompts, and every mutation of Dagster's: runs, schedules, backfills.
    """
    import time
    from datetime import UTC, datetime

    from debrief.settings import load_settings
    from debrief.state import DAY, open_state

    out = console()
    for change in open_state(load_settings()).changes(since=time.time() - days * DAY):
        when = datetime.fromtimestamp(change.at, UTC)
        out.print(f"{when:%Y-%m-%d %H:%M:%S}  {change.person}  {change.role}  {change.change}")


@app.command(rich_help_panel=TEAM)
def metrics(
    serve: Annotated[
        bool, typer.Option("--serve", help="Keep giving them out, for Prometheus to scrape.")
    ] = False,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 9464,
) -> None:
    """Print the figures of runs, calls, costs and failures in Prometheus' form.

    With **--serve** they are at `/metrics`, and `/health` says whether all of them can be had.
    """
    from contextlib import ExitStack, suppress

    from debrief.settings import load_settings
    from pipelines.metrics import Metrics, exposition, make_exporter, sources

    with ExitStack() as stack:
        collected = Metrics(sources(load_settings(), stack))
        if not serve:
            sys.stdout.write(exposition(collected).decode())
            return
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with make_exporter(collected, host, port) as server:
            typer.echo(f"http://{host}:{port}/metrics")
            with suppress(KeyboardInterrupt):
                server.serve_forever()


@runs.command()
def prune(
    older_than: Annotated[
        str, typer.Option("--older-than", help="Such as 90d; DEBRIEF_KEEP_RUNS_DAYS, else 90d.")
    ] = "",
    dry_run: DryRun = False,
) -> None:
    """Delete old runs and their events from Dagster's storage; the lake is not touched.

    Runs stay that made what is newest of a partition. The job **prune_runs** does the same every
    night.
    """
    from debrief.settings import load_settings
    from pipelines.instance import open_instance
    from pipelines.pruning import prune as delete

    number = older_than.removesuffix("d")
    if older_than and not (number.isascii() and number.isdecimal()):
        raise InputError(f"--older-than {older_than}", "is no number of days", "Such as 90d.")
    settings = load_settings()
    with open_instance(settings) as instance:
        done = delete(instance, float(number or settings.keep_runs_days), dry_run=dry_run)
    verb = "would go" if dry_run else "are gone"
    typer.echo(f"{len(done.runs)} runs {verb}; {done.kept} old ones are still needed.")


@runs.command()
def migrate() -> None:
    """Bring Dagster's tables to what the installed Dagster works with. Make a backup first."""
    from debrief.settings import load_settings
    from pipelines.instance import open_instance

    with open_instance(load_settings()) as instance:
        instance.upgrade(typer.echo)
    typer.echo("Dagster's tables are as this Dagster needs them.")


@app.command(rich_help_panel=TEAM)
def worker(
    name: Annotated[str, typer.Option(help="Of the worker, in logs. Default: its queue.")] = "",
) -> None:
    """Take runs from the queue and carry them out, on as many machines as you start it on.

    Needs DEBRIEF_BROKER, DAGSTER_DATABASE_URL, DEBRIEF_LAKE and DEBRIEF_REDACTION_KEY, the same
    everywhere; the processes that launch runs need DEBRIEF_LAUNCH=queue too. SIGTERM or Ctrl-C
    ends it after the run under way.
    """
    from debrief.settings import load_settings
    from pipelines.worker import work

    work(load_settings(), name=name)


def main() -> None:
    """Run the command line."""
    gc.set_threshold(50_000)  # rows hold no cycles, and come by the hundred thousand
    if len(sys.argv) == 1 and sys.stdin.isatty() and sys.stdout.isatty():
        sys.argv.append("start")
    app()


if __name__ == "__main__":
    main()
