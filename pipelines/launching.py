"""``debrief run``: launch the graph, then the training sets that follow from it."""

from __future__ import annotations

import logging
import shlex
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from debrief.cli.asking import AskingEstimate, agree, estimate_of, print_notes
from debrief.cli.shared import console, warn
from debrief.cli.summary import check_answers, print_problems, print_summary
from debrief.conditions import parse_where
from debrief.conversion import open_lake
from debrief.errors import DebriefError, InputError, readable
from debrief.lake import Lake
from debrief.markdown import counted
from debrief.models.recorded import is_recorded
from debrief.scope import Scope
from debrief.settings import Settings, load_settings
from debrief.stages.configuration import EvaluatorChoice, SessionSources
from debrief.stages.current import rest_is_current, weeks_are_current
from debrief.stages.rehearsal import SCORES, rehearse
from debrief.stages.rehearsal import added_up as asked_together
from debrief.stages.run import StageRun
from debrief.stages.training import settle, stale_pairs
from debrief.summary import Content, content_of
from debrief.weekly import Done, added_up
from pipelines.home import CONFIGURATION, dagster_home
from pipelines.options import RunOptions, left_of, limits_of, run_config
from pipelines.progress import ShownProgress, shown_progress, stopped

if TYPE_CHECKING:
    import dagster as dg

_progress = logging.getLogger("debrief.progress")
_NOTHING_ASKED = "Nothing is asked: no model has anything to do."
_BY_TAG = "user"
"""Dagster's tag of who launched a run; without it, its pages say "manually"."""
_OF_CODE_TAG = ".dagster/repository"
"""Dagster's tag of the code that a run is of; without it, the job's page does not list the run."""

_APART = {
    "labels_labels_were_read",
    "raw_sessions_servers_were_read",
    "langfuse_scores_scores_are_written",
}
"""Steps that training sets do not need: when they fail, the run goes on to its end, and fails."""
_OF_MODELS = ("session_scores", "judge_evaluations")
"""Tables with rows of models that somebody paid for."""
_MARGIN_WITH_RUBRICS = 2.0
"""As ``USUAL_MARGIN``, for rubrics as well, which are mined from what is still to be scored."""


def run_graph(
    options: RunOptions,
    weeks: tuple[str, ...],
    *,
    of_demo: bool = False,
    yes: bool = False,
    dry_run: bool = False,
) -> None:
    """Run the whole graph and print what came of it.

    Sessions are read before a model is asked, so that what asking takes is counted and not
    guessed; it is said, and asked for.

    Args:
        options: of the command.
        weeks: to take; empty: all.
        of_demo: the sessions are the samples.
        yes: whatever a model takes is agreed to.
        dry_run: read sessions, and say what a model would take.

    Raises:
        DebriefError: an option is wrong, nobody agreed to the cost, somebody stopped it, or a
            stage or every question of one failed.
    """
    settings = options.apply()
    resources = options.resources(settings)
    started = time.monotonic()
    screen = console()
    has_no_model = resources["evaluator"]["no_model"]
    evaluators = None
    if not has_no_model:
        # Found out now, and not a minute into the run, that a judge or a key is wrong.
        evaluators = EvaluatorChoice(**resources["evaluator"]).open()
        print_notes(evaluators.models)
    screen.print(f"Debrief: sessions → {settings.lake}")
    graphs: list[RunOutcome] = []
    parts: list[Done] = []
    with shown_progress(settings) as shown:
        lake = open_lake(settings.lake)
        found = weeks_with_sessions(lake, resources, weeks)
        work = _work_left(settings, lake, found, resources)
        if dry_run and work is not WorkLeft.WEEKS:
            console(stderr=True).print(_NOTHING_ASKED)
            return
        if work is WorkLeft.NOTHING:
            settle(lake)
        else:
            # Dagster takes seconds to load, and is not needed where there is nothing to do.
            from assets.reports import done_in
            from pipelines.instance import end_dead_runs, open_instance

            with open_instance(settings) as instance:
                end_dead_runs(instance)
                taken = found[-1:]
                if work is WorkLeft.WEEKS:
                    taken = found
                    is_paid = not has_no_model and not is_recorded(resources["evaluator"]["model"])
                    if dry_run or is_paid:
                        read_first(instance, lake, found, resources)
                    if is_paid:
                        if lost := lost_rows(lake, found, resources["evaluator"]["model"]):
                            warn(f"{lost} That goes with this run.")
                        _agree(lake, found, resources, settings, shown, yes=yes, dry_run=dry_run)
                    if dry_run:
                        console(stderr=True).print(_NOTHING_ASKED)
                        return
                for graph in _graph_runs(instance, lake, taken, found, resources):
                    graphs.append(graph)
                    parts.extend(done_in(graph.events))
        content = content_of(lake, found)
        with shown.log.open("a", encoding="utf-8") as file:
            print_problems(content, console(file=file))
    where = " --demo" if of_demo else f" --lake {shlex.quote(options.lake)}" * bool(options.lake)
    print_summary(lake, content, screen, where, added_up("", parts))
    screen.print(f"Took {time.monotonic() - started:.0f} s. All lines: {readable(str(shown.log))}")
    for graph in graphs:
        graph.check()
    if evaluators is not None:
        check_answers(content, evaluators)


def run_quietly(options: RunOptions) -> Content:
    """Run the whole graph for somebody who is doing something else; return what there is then.

    The settings of this process are afterwards what they were.

    Raises:
        DebriefError: there is no session, somebody stopped it, or a stage failed as a whole.
    """
    with options.applied() as settings:
        return _run_quietly(options, settings)


def _run_quietly(options: RunOptions, settings: Settings) -> Content:
    resources = options.resources(settings)
    with shown_progress(settings):
        lake = open_lake(settings.lake)
        found = weeks_with_sessions(lake, resources)
        if _work_left(settings, lake, found, resources) is not WorkLeft.NOTHING:
            from pipelines.instance import end_dead_runs, open_instance

            with open_instance(settings) as instance:
                end_dead_runs(instance)
                for graph in _graph_runs(instance, lake, found, found, resources):
                    graph.check()
    return content_of(lake, found)


def _graph_runs(
    instance: dg.DagsterInstance,
    lake: Lake,
    taken: Sequence[str],
    found: Sequence[str],
    resources: dict[str, dict[str, Any]],
) -> Iterator[RunOutcome]:
    """Carry out the whole graph over some weeks, then the training sets that follow from all.

    Args:
        instance: where runs are recorded.
        lake: that is filled.
        taken: the weeks to take.
        found: all weeks.
        resources: the runs' configuration; its limits hold for all runs together.
    """
    from assets.partitions import pair_key
    from assets.reports import done_in
    from pipelines.queueing import runs_over

    parts: list[Done] = []
    for assets, weeks in runs_over(instance, lake, taken):
        config = run_config({**resources, "evaluator": left_of(resources["evaluator"], parts)})
        graph = carry_out(instance, "whole_graph", weeks, config, assets)
        if not graph.failed_steps <= _APART:
            graph.check()
        parts.extend(done_in(graph.events))
        yield graph
    config = run_config(resources)
    if stale := sorted(pair_key(*pair) for pair in stale_pairs(lake, found)):
        for _, pairs in runs_over(instance, lake, stale, ["training_sets"]):
            carry_out(instance, "training_sets_job", pairs, config).check()
    settle(lake)


def _agree(
    lake: Lake,
    weeks: Sequence[str],
    resources: dict[str, dict[str, Any]],
    settings: Settings,
    shown: ShownProgress,
    *,
    yes: bool,
    dry_run: bool,
) -> None:
    """Count what models would be asked, have it agreed to, and keep the run to that.

    Raises:
        ConfigurationError: nobody is there to agree.
    """
    estimate = estimated(lake, weeks, resources)
    with shown.pause():
        limited = agree(estimate, settings, yes=yes, dry_run=dry_run)
    resources["evaluator"] |= limits_of(limited)
    shown.expect(estimate.calls)


def estimated(
    lake: Lake, weeks: Sequence[str], resources: dict[str, dict[str, Any]]
) -> AskingEstimate:
    """Return what a run over sessions that are read would ask models, and what that takes.

    Raises:
        ConfigurationError: settings do not name what is chosen, or a judge is wrong.
    """
    found = rehearse(configured_run(lake, counting(resources), weeks))
    waiting = next(rehearsal.sessions for rehearsal in found if rehearsal.stage == SCORES)
    model = resources["evaluator"]["model"] or "the judges' models"
    return estimate_of(model, asked_together(found), len(waiting), margin=_MARGIN_WITH_RUBRICS)


def counting(resources: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return a run's configuration with evaluators that only count what would be asked."""
    return {**resources, "evaluator": {**resources["evaluator"], "dry_run": True}}


def read_first(
    instance: dg.DagsterInstance,
    lake: Lake,
    weeks: Sequence[str],
    resources: dict[str, dict[str, Any]],
) -> None:
    """Read the sessions of some weeks, and nothing else.

    Raises:
        DebriefError: somebody stopped it, or the stage failed as a whole.
    """
    from pipelines.queueing import runs_over

    for assets, some in runs_over(instance, lake, weeks, ["raw_sessions"]):
        outcome = carry_out(instance, "", some, run_config(resources), assets)
        if not outcome.failed_steps <= _APART:
            outcome.check()


def lost_rows(lake: Lake, weeks: Sequence[str], model: str) -> str:
    """Say what the next run drops of what models said, as sessions are read otherwise now.

    A row is of one reading of a session; after an upgrade, or when a session went on, it is of
    another one than the lake has.

    Args:
        lake: with the sessions as they are read now.
        weeks: to look at.
        model: that is asked by this run, and gives its rows anew.

    Returns:
        a sentence with the models, the sessions and the remedy; empty when nothing is dropped.
    """
    from debrief.sessions.model import SessionHead
    from debrief.sessions.store import SESSIONS_TABLE

    digests = {head.id: head.digest for head in lake.rows(SESSIONS_TABLE, SessionHead, weeks)}
    lost = {
        (row.session_id, row.model)
        for table in _OF_MODELS
        for row in lake.rows(table, _OfSession, weeks)
        if row.model != model
        and row.status != "failed"
        and digests.get(row.session_id) != row.session_digest
    }
    if not lost:
        return ""
    names = sorted({name for _, name in lost})
    sessions = counted(len({session for session, _ in lost}), "session")
    return (
        f"what {', '.join(names)} said of {sessions} is of an earlier reading of them. To have it "
        f"anew: debrief run --model {names[0]}."
    )


class _OfSession(Struct, frozen=True, kw_only=True):
    session_id: str
    session_digest: str = ""
    status: str = ""
    model: str = ""


class WorkLeft(Enum):
    """What there is to do for a lake."""

    NOTHING = "nothing"
    OF_ALL_WEEKS = "of all weeks"
    """Only what is made of all weeks together; a run over one of them makes it."""
    WEEKS = "weeks"


def _work_left(
    settings: Settings, lake: Lake, weeks: Sequence[str], resources: dict[str, dict[str, Any]]
) -> WorkLeft:
    """Return what there is to do, by what the lake's tables say of themselves.

    Where a Langfuse server is configured, only a run finds out; and Dagster's storage may be new.
    """
    if not weeks:
        return WorkLeft.NOTHING
    if settings.has_langfuse or not (dagster_home(settings) / CONFIGURATION).exists():
        return WorkLeft.WEEKS
    run = configured_run(lake, resources, weeks)
    repository = EvaluatorChoice(**resources["evaluator"]).repository_folder()
    if not weeks_are_current(run, repository):
        return WorkLeft.WEEKS
    return WorkLeft.NOTHING if rest_is_current(run) else WorkLeft.OF_ALL_WEEKS


def configured_run(
    lake: Lake, resources: dict[str, dict[str, Any]], weeks: Sequence[str]
) -> StageRun:
    """Return what stages work with, before a run is launched, by the run's configuration."""
    scope = resources.get("scope", {})
    return StageRun(
        lake,
        weeks,
        sources=_sources(resources),
        scope=Scope(parse_where(scope.get("where", ())), scope.get("force", False)),
        evaluators=EvaluatorChoice(**resources["evaluator"]).open,
    )


def _sources(resources: dict[str, dict[str, Any]]) -> SessionSources:
    return SessionSources(folders=tuple(resources["sessions"].get("folders", ())))


def weeks_with_sessions(
    lake: Lake, resources: dict[str, dict[str, Any]], weeks: Sequence[str] = ()
) -> list[str]:
    """Search the folders, and return the weeks that hold sessions, among ``weeks`` if given.

    Raises:
        InputError: no session is anywhere, in the lake neither, or none in ``weeks``.
    """
    from debrief.sessions.scanning import is_reported
    from debrief.sessions.sources import no_session_in, reasons_for_none
    from debrief.sessions.store import SESSIONS_TABLE, scan_into

    sources = _sources(resources)
    places = sources.places()
    scan = scan_into(lake, places, sources.redactor(), sources.servers())
    known = scan.weeks()
    stamps = (lake.stamp(SESSIONS_TABLE, week) for week in lake.partitions(SESSIONS_TABLE))
    is_filled = any(stamp is None or stamp.rows for stamp in stamps)  # None: damaged, and made anew
    if not is_filled and (reasons := reasons_for_none(scan)) is not None:
        raise no_session_in(places, reasons)
    taken = [week for week in known if week in weeks or not weeks]
    if weeks and not taken:
        asked = weeks[0] if len(weeks) == 1 else f"{weeks[0]}..{weeks[-1]}"
        there = f"There are sessions from {known[0]} to {known[-1]}." if known else ""
        raise InputError(f"--week {asked}", "no session in that week", there)
    count = sum(map(is_reported, scan.entries))
    _progress.info(
        "found %s in %s; taking %s",
        counted(count, "transcript"),
        counted(len(known), "week"),
        counted(len(taken), "week"),
    )
    return taken


class RunOutcome(Struct, frozen=True):
    """How a run ended."""

    job: str
    run_id: str
    success: bool
    events: Sequence[dg.DagsterEvent]

    @property
    def failed_steps(self) -> set[str]:
        """Return the steps that failed; the run itself when none of them did."""
        failed = {str(event.step_key) for event in self.events if event.is_step_failure}
        return failed or (set() if self.success else {self.job})

    def check(self) -> None:
        """Raise why the run failed.

        Raises:
            DebriefError: it did.
        """
        from pipelines.jobs import failure_in, was_interrupted

        if was_interrupted(self.events):
            raise stopped()
        if not self.success:
            step, reason = failure_in(self.events, self.job)
            raise DebriefError(
                step, reason.rstrip("."), f"The whole story is in run {self.run_id}."
            )


def carry_out(
    instance: dg.DagsterInstance,
    job: str,
    partitions: Sequence[str],
    config: dict[str, Any],
    assets: Sequence[str] = (),
) -> RunOutcome:
    """Run a job, or some assets of it or of all, over some partitions, and wait for its end.

    It runs in this process; where workers take runs (``DEBRIEF_LAUNCH=queue``), on one of them.

    Args:
        instance: where the run is recorded.
        job: its name; empty for a run over ``assets`` of any.
        partitions: in Dagster's order; none for assets without. A worker takes a range of them.
        config: of the run.
        assets: those that are made; all of the job if none is named.
    """
    import dagster as dg

    from pipelines.definitions import definitions_over
    from pipelines.instance import tags_of_this_process
    from pipelines.jobs import range_tags

    name = job or ", ".join(assets)
    if load_settings().launch == "queue" and not instance.is_ephemeral:
        from pipelines.queueing import hand_over

        return RunOutcome(name, *hand_over(instance, job, partitions, config, assets))
    defs = definitions_over(partitions)
    definition = defs.resolve_job_def(job) if job else defs.resolve_implicit_global_asset_job_def()
    with _events_kept_open(instance):
        result = definition.execute_in_process(
            instance=instance,
            asset_selection=[dg.AssetKey(name) for name in assets] or None,
            tags={
                **tags_of_this_process(),
                _BY_TAG: "the debrief command",
                _OF_CODE_TAG: "__repository__@debrief",
                **(range_tags(partitions[0], partitions[-1]) if partitions else {}),
            },
            run_config=config,
            raise_on_error=False,
        )
    return RunOutcome(name, result.run_id, result.success, result.all_events)


@contextmanager
def _events_kept_open(instance: dg.DagsterInstance) -> Iterator[None]:
    """Hold a connection to a local instance's events within the block.

    Dagster opens and closes one for each statement, and SQLite merges and deletes its write-ahead
    log whenever the last connection closes: that doubles the cost of an event.
    """
    file = Path(instance.root_directory, "event_log.db")
    if not file.exists():
        yield
        return
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA schema_version").fetchone()
        yield
