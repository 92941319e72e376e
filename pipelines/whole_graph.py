"""The whole graph as one job, from transcripts to reports.

One Dagster run has partitions of one kind, and the graph has three: weeks, score names, and pairs
that are known only after judging. So this job's steps launch the stage jobs one after the other,
in their own process, as real runs over ranges of partitions; each is linked to its parent by a
tag and can be launched alone just as well. The schedule, the ``demo`` and ``run`` commands and
the launchpad all go through here.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg
from dagster._core.storage.tags import MAX_RETRIES_TAG, RETRY_STRATEGY_TAG

from assets.doings import done_for
from assets.handing_out import in_queue
from assets.many_pairs import config_of, runs_over
from assets.partitions import SCORES, add_pairs
from assets.progress import PROGRESS
from assets.weekly_report import report_path
from debrief.sessions.scanning import is_reported
from debrief.sessions.store import scan_into
from debrief.settings import load_settings
from debrief.state.leases import stop_with_parent
from debrief.state.watch import watch_of
from debrief.training.pairs import observed_pairs
from debrief.weekly.report import headline, report_of
from pipelines.distribution import carry_out, describe, pieces_of
from pipelines.failures import first_failure
from pipelines.queue import COORDINATORS, QUEUE_TAG, TASK_TAG
from pipelines.ranges import Tags, range_tags, tags_of, week_ranges
from pipelines.telling import tell, tell_death, tell_failure
from resources.attendance import ACCOUNT_TAG, PARENT_TAG, account_of, steps_have_processes
from resources.lake import LakeResource
from resources.sessions import SessionStore

SCHEDULE_TAG = "dagster/schedule_name"


class Weeks(dg.Config):
    """Which weeks to take."""

    weeks: list[str] = []
    """Mondays, as ``2026-11-16``; empty means every week in which a session was found. One
    without any is passed over: what it holds in the lake is left as it is."""


@dg.op(description="Search the configured folders and settle which weeks to take.")
def find_sessions(
    context: dg.OpExecutionContext, config: Weeks, lake: LakeResource, sessions: SessionStore
) -> list[str]:
    """Return the weeks to take, in order."""
    scan = scan_into(lake.open(), sessions.places(), server=sessions.server())
    weeks = [week for week in scan.weeks() if week in config.weeks or not config.weeks]
    found = sum(map(is_reported, scan.entries))
    told = f"found {found} transcripts in {len(scan.weeks())} weeks; taking {len(weeks)} weeks"
    context.log.info(told)
    logging.getLogger(PROGRESS).info(told)
    return weeks


@dg.op(description="Read, snapshot, judge and score the weeks' sessions, and mine rubrics.")
def take_sessions(context: dg.OpExecutionContext, weeks: list[str]) -> list[str]:
    """Run the ``sessions_job`` over the weeks."""
    launch_over(context, "sessions_job", week_ranges(weeks))
    return weeks


@dg.op(description="Consolidate the rubrics of every score name.")
def take_rubrics(context: dg.OpExecutionContext, weeks: list[str]) -> list[str]:
    """Run the ``rubrics_job`` over the score names."""
    if weeks:
        names = SCORES.get_partition_keys()
        launch_over(context, "rubrics_job", [(names[0], names[-1])])
    return weeks


@dg.op(description="Hold the weeks' sessions against the rubrics.")
def take_rubric_evaluations(context: dg.OpExecutionContext, weeks: list[str]) -> list[str]:
    """Run the ``rubric_evaluations_job`` over the weeks."""
    launch_over(context, "rubric_evaluations_job", week_ranges(weeks))
    return weeks


@dg.op(description="Compare people's labels with what was judged.")
def take_agreement(context: dg.OpExecutionContext, weeks: list[str]) -> str:
    """Run the ``agreement_job``; return why it failed, for training sets may go on without."""
    try:
        if weeks:
            launch(context, "agreement_job", {})
    except dg.Failure as failure:
        return failure.description or "agreement_job failed"
    return ""


@dg.op(description="Write the training sets of the pairs that the weeks' sessions belong to.")
def take_training_sets(
    context: dg.OpExecutionContext, weeks: list[str], agreement: str, lake: LakeResource
) -> list[str]:
    """Run the ``training_sets_job`` over the pairs observed in the weeks.

    It comes after the agreement that its cards tell of, whether or not that could be measured.
    """
    if agreement:
        context.log.warning(agreement)
    pairs = observed_pairs(lake.open(), weeks)
    add_pairs(context.instance, pairs)
    for keys in runs_over(pairs):
        tags = tags_of((keys[0], keys[0]), keys)
        launch(context, "training_sets_job", tags, config_of("training_sets", keys))
    return weeks


@dg.op(description="Draw the reports over everything.")
def take_reports(context: dg.OpExecutionContext, weeks: list[str]) -> list[str]:
    """Run the ``reports_job``."""
    if weeks:
        launch(context, "reports_job", {})
    return weeks


@dg.op(description="Write the page of each week, show the last one here, and send its headline.")
def take_weekly_report(
    context: dg.OpExecutionContext,
    weeks: list[str],
    agreement: str,
    lake: LakeResource,
) -> None:
    """Run the ``weekly_report_job``, and tell what it says.

    Raises:
        dg.Failure: it failed, or agreement could not be measured.
    """
    for first, last in week_ranges(weeks):
        launch(context, "weekly_report_job", range_tags(first, last))
    if weeks:
        done = done_for(context.instance, account_of(context.run))
        report = report_of(lake.open(), weeks[-1], done)
        page = lake.open().read_bytes(report_path(weeks[-1])) or b""
        context.add_output_metadata(
            {"page": dg.MetadataValue.md(page.decode()), "headline": headline(report)}
        )
        if report.did_something or SCHEDULE_TAG in context.run.tags:
            tell(context.log, f"Debrief: {headline(report)}.", context.run_id)
    if agreement:
        raise dg.Failure(agreement, allow_retries=False)


@dg.job(
    description=(
        "From transcripts to training sets and reports. Takes every week that holds sessions, "
        "or those named in the configuration; what has not changed is not done again."
    ),
    hooks={tell_failure},
    # A retry may come to a machine that has nothing of the outputs of steps; they are cheap.
    tags={RETRY_STRATEGY_TAG: "ALL_STEPS", QUEUE_TAG: COORDINATORS},
)
def whole_graph() -> None:
    """Every stage, in the order of the graph."""
    weeks = take_rubric_evaluations(take_rubrics(take_sessions(find_sessions())))
    agreement = take_agreement(weeks)
    take_weekly_report(take_reports(take_training_sets(weeks, agreement)), agreement)


@dg.run_failure_sensor(
    monitored_jobs=[whole_graph],
    default_status=dg.DefaultSensorStatus.RUNNING,
    description=(
        "Sends word to the webhook of a run of the whole graph that was killed; of steps that "
        "failed, the run itself does."
    ),
)
def killed_runs(context: dg.RunFailureSensorContext) -> dg.SkipReason:
    """Tell of a run that could not tell of its end itself."""
    told = tell_death(context.instance, context.dagster_run, context.log)
    return dg.SkipReason("Told of." if told else "The run told of it.")


def launch_over(
    context: dg.OpExecutionContext, job: str, ranges: Sequence[tuple[str, str]]
) -> None:
    """Run a stage job over ranges of partitions: here, or by the workers that take from the queue.

    Raises:
        dg.Failure: a run failed; what the runs had finished stays.
    """
    if not in_queue(load_settings()):
        for first, last in ranges:
            launch(context, job, range_tags(first, last))
        return
    pieces = pieces_of(job, ranges, _tags(context), _inherited(context.run_config))
    failed = carry_out(context.instance, pieces, like=context.run)
    if failed:
        raise dg.Failure(
            describe(failed),
            {"runs": ", ".join(each.run_id for each in failed)},
            allow_retries=False,
        )


def launch(
    context: dg.OpExecutionContext, job: str, tags: Tags, config: Mapping[str, Any] | None = None
) -> None:
    """Run a stage job here and now, on the same instance and resources.

    Args:
        context: of the step that launches it.
        job: its name.
        tags: of the run.
        config: of its steps.

    Raises:
        dg.Failure: the run failed; what it had finished stays.
    """
    from pipelines.definitions import defs

    if steps_have_processes(context):
        stop_with_parent(watch_of(context.run_id))
    result = defs.resolve_job_def(job).execute_in_process(
        instance=context.instance,
        run_config={**_inherited(context.run_config), **(config or {})},
        tags={**tags, **_tags(context), **_worker(context)},
        raise_on_error=False,
    )
    if not result.success:
        step, reason = first_failure(result)
        raise dg.Failure(f"{step}: {reason}", {"run": result.run_id}, allow_retries=False)


def _tags(context: dg.OpExecutionContext) -> Tags:
    tags = {PARENT_TAG: context.run_id, MAX_RETRIES_TAG: "0"}
    account = account_of(context.run)
    return tags if account == context.run_id else {**tags, ACCOUNT_TAG: account}


def _worker(context: dg.OpExecutionContext) -> Tags:
    """Return by what is found out whether whoever carries out this run is alive."""
    task = context.run.tags.get(TASK_TAG)
    return {TASK_TAG: task} if task else {}


def _inherited(run_config: Mapping[str, Any]) -> dict[str, Any]:
    return {key: run_config[key] for key in ("resources", "loggers") if key in run_config}
