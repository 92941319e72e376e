"""An instance and a lake as they are after years: many weeks, pairs, sessions and runs.

What the UI shows of a partition is copied from the materializations of a real run over the
samples, so that tables, plots and descriptions have the sizes that they have.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg
from dagster import DagsterEvent, DagsterEventType, DagsterInstance, DagsterRunStatus
from dagster._core.definitions.assets.graph.asset_graph_subset import AssetGraphSubset
from dagster._core.definitions.events import AssetKeyPartitionKey
from dagster._core.definitions.timestamp import TimestampWithTimezone
from dagster._core.events import StepMaterializationData
from dagster._core.execution.asset_backfill import AssetBackfillData
from dagster._core.execution.backfill import BulkActionStatus, PartitionBackfill
from dagster._core.execution.plan.objects import StepSuccessData
from dagster._core.storage.tags import BACKFILL_ID_TAG
from msgspec import Struct

from assets.partitions import FINGERPRINT, TASK, WEEKS
from debrief.judging.model import JudgeEvaluation
from debrief.lake import Lake
from debrief.scoring.model import SessionScores
from debrief.sessions.heads import SessionHead
from pipelines.definitions import defs
from pipelines.ranges import range_tags, week_ranges
from tests.benchmarks.generated import weeks_until

Metadata = Mapping[str, Any]


class Size(Struct, frozen=True, kw_only=True):
    """How much there is."""

    weeks: int = 200
    tasks: int = 100
    fingerprints: int = 100
    pairs: int = 2_000
    sessions: int = 20_000
    runs: int = 1_000


class Grown(Struct, frozen=True, kw_only=True):
    """What there is to look at."""

    week: str
    """The run over one week."""
    large: str
    """The run over as many weeks as one run takes."""
    backfill: str
    """The backfill over all weeks."""


class Shown(Struct, frozen=True):
    """What the UI shows of an asset's partitions."""

    usual: Metadata
    last: Metadata
    """Of the last partition of a run, which has the plots over all of them."""


def shown_in(instance: DagsterInstance) -> dict[str, Shown]:
    """Return what an instance shows of every asset."""
    found = {}
    for key in instance.all_asset_keys():
        records = instance.fetch_materializations(key, limit=5).records
        made = [record.asset_materialization for record in records]
        metadata = [each.metadata for each in made if each is not None]
        found[key.to_user_string()] = Shown(metadata[-1], metadata[0])
    return found


def observed(size: Size) -> list[tuple[str, str]]:
    """Return so many pairs of task and fingerprint, every task and every fingerprint in some."""
    return [
        (
            f"task-{number % size.tasks:03}",
            f"{(number * 7 + number // size.tasks) % size.fingerprints:08x}-{0:08x}",
        )
        for number in range(size.pairs)
    ]


def fill_lake(lake: Lake, size: Size, last: str) -> None:
    """Write heads, judge evaluations and scores of so many sessions, evenly over the weeks."""
    weeks = weeks_until(last, size.weeks)
    tasks = observed(size)
    for place, week in enumerate(weeks):
        ids = range(place, size.sessions, size.weeks)
        heads = [_head(number, week, tasks[number % len(tasks)][0]) for number in ids]
        lake.write("raw_sessions", week, heads, SessionHead)
        lake.write("judge_evaluations", week, map(_evaluation, heads), JudgeEvaluation)
        lake.write("session_scores", week, map(_scores, heads), SessionScores)


def fill_instance(
    instance: DagsterInstance, size: Size, last: str, shown: Mapping[str, Shown]
) -> Grown:
    """Tell an instance of all that made it so, as runs of the size that runs have."""
    weeks = weeks_until(last, size.weeks)
    pairs = observed(size)
    instance.add_dynamic_partitions(TASK, sorted({task for task, _ in pairs}))
    instance.add_dynamic_partitions(FINGERPRINT, sorted({name for _, name in pairs}))
    for _ in range(size.runs):
        instance.create_run_for_job(
            defs.resolve_job_def("weekly_report_job"), status=DagsterRunStatus.SUCCESS
        )
    keys = [dg.MultiPartitionKey({TASK: task, FINGERPRINT: name}) for task, name in pairs]
    sets = defs.resolve_job_def("training_sets_job")
    _run(instance, sets, {}, {"training_sets": keys}, shown)
    graph = defs.resolve_asset_graph()
    weekly = [key for key in graph.toposorted_asset_keys if graph.get(key).partitions_def == WEEKS]
    backfill = _backfill(instance, weekly, weeks)
    job = defs.resolve_implicit_global_asset_job_def().get_subset(asset_selection=set(weekly))
    names = [key.to_user_string() for key in weekly]
    made: dict[int, str] = {}
    for first, end in week_ranges(weeks):
        tags = {**range_tags(first, end), BACKFILL_ID_TAG: backfill}
        taken = [week for week in weeks if first <= week <= end]
        made[len(taken)] = _run(instance, job, tags, dict.fromkeys(names, taken), shown)
    alone = range_tags(weeks[-1], weeks[-1])
    week = _run(instance, job, alone, dict.fromkeys(names, weeks[-1:]), shown)
    return Grown(week=week, large=made[max(made)], backfill=backfill)


def _backfill(instance: DagsterInstance, keys: Sequence[dg.AssetKey], weeks: Sequence[str]) -> str:
    each = {AssetKeyPartitionKey(key, week) for key in keys for week in weeks}
    wanted = AssetGraphSubset.from_asset_partition_set(each, defs.resolve_asset_graph())
    now = time.time()
    done = AssetBackfillData(
        target_subset=wanted,
        requested_runs_for_target_roots=True,
        latest_storage_id=None,
        materialized_subset=wanted,
        requested_subset=wanted,
        failed_and_downstream_subset=AssetGraphSubset.create_empty_subset(),
        backfill_start_time=TimestampWithTimezone(now, "UTC"),
    )
    backfill = PartitionBackfill(
        backfill_id="abcdefgh",
        status=BulkActionStatus.COMPLETED_SUCCESS,
        from_failure=False,
        tags={},
        backfill_timestamp=now,
        asset_selection=list(keys),
        asset_backfill_data=done,
        backfill_end_timestamp=now + 60,
    )
    instance.add_backfill(backfill)
    return backfill.backfill_id


def _run(
    instance: DagsterInstance,
    job: dg.JobDefinition,
    tags: Mapping[str, str],
    made: Mapping[str, Sequence[str]],
    shown: Mapping[str, Shown],
) -> str:
    """Tell of a run that made some partitions of some assets; return its id."""
    run = instance.create_run_for_job(
        job,
        status=DagsterRunStatus.NOT_STARTED,
        tags=tags,
        asset_selection=job.asset_selection,
    )

    def tell(kind: DagsterEventType, step: str = "", data: Any = None, message: str = "") -> None:
        event = DagsterEvent(
            event_type_value=kind.value,
            job_name=run.job_name,
            step_key=step or None,
            event_specific_data=data,
            message=message,
        )
        instance.report_dagster_event(event, run.run_id)

    tell(DagsterEventType.RUN_START)
    for name, partitions in made.items():
        tell(DagsterEventType.STEP_START, name, message=f'Started execution of step "{name}".')
        for partition in partitions:
            metadata = shown[name].last if partition == partitions[-1] else shown[name].usual
            what = dg.AssetMaterialization(name, partition=partition, metadata=dict(metadata))
            told = f"Materialized value {name}."
            data = StepMaterializationData(what, [])
            tell(DagsterEventType.ASSET_MATERIALIZATION, name, data, told)
        took = StepSuccessData(1_000.0)  # type: ignore[no-untyped-call]
        tell(DagsterEventType.STEP_SUCCESS, name, took)
    tell(DagsterEventType.RUN_SUCCESS)
    return run.run_id


def _head(number: int, week: str, task: str) -> SessionHead:
    started = dt.datetime.fromisoformat(f"{week}T09:00:00+00:00") + dt.timedelta(minutes=number)
    name = f"{number:08x}-0000-4000-8000-000000000000"
    return SessionHead(
        id=name,
        source="claude-code",
        tool=("claude-code", "droid", "codex")[number % 3],
        models=("some-model",),
        task=task,
        repository=f"git@example.org:team/{task}.git",
        started=started,
        ended=started + dt.timedelta(minutes=20),
        lines_added=number % 300,
        digest=f"{number:064x}",
    )


def _evaluation(head: SessionHead) -> JudgeEvaluation:
    return JudgeEvaluation(
        session_id=head.id,
        session_digest=head.digest,
        started=head.started,
        judge="plan-compliance",
        weight=1.0,
        model="some-model",
        status="ok",
        score=0.5,
        feedback="Turn 3 shows a failing test that was left failing.",
        eval_fingerprint="0" * 8,
        input_tokens=9_000,
        output_tokens=300,
        cost_usd=0.004,
    )


def _scores(head: SessionHead) -> SessionScores:
    return SessionScores(
        session_id=head.id,
        session_digest=head.digest,
        started=head.started,
        ended=head.ended,
        task=head.task,
        tool=head.tool,
        model="some-model",
        scoring_fingerprint="0" * 8,
        status="ok",
        overall_quality=0.6,
        input_tokens=20_000,
        output_tokens=900,
        cost_usd=0.01,
    )
