"""An instance and a lake as they are after years: many weeks, pairs, sessions and runs.

What the UI shows of a partition is copied from the materializations of a real run over the
samples, so that tables, plots and descriptions have the sizes that they have.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import dagster as dg
from dagster import DagsterEvent, DagsterEventType, DagsterInstance, DagsterRunStatus
from dagster._core.events import StepMaterializationData
from msgspec import Struct

from assets.partitions import FINGERPRINT, TASK, WEEKS
from debrief.judging.model import JudgeEvaluation
from debrief.lake import Lake
from debrief.scoring.model import SessionScores
from debrief.sessions.heads import SessionHead
from pipelines.definitions import defs
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
) -> tuple[str, str]:
    """Tell an instance of all that made it so; return a run over all weeks, and one over one."""
    weeks = weeks_until(last, size.weeks)
    pairs = observed(size)
    instance.add_dynamic_partitions(TASK, sorted({task for task, _ in pairs}))
    instance.add_dynamic_partitions(FINGERPRINT, sorted({name for _, name in pairs}))
    for _ in range(size.runs):
        instance.create_run_for_job(
            defs.resolve_job_def("weekly_report_job"), status=DagsterRunStatus.SUCCESS
        )
    keys = [dg.MultiPartitionKey({TASK: task, FINGERPRINT: name}) for task, name in pairs]
    _run(instance, "training_sets_job", _events(["training_sets"], keys, shown))
    weekly = [
        key.to_user_string()
        for key in defs.resolve_asset_graph().toposorted_asset_keys
        if defs.resolve_asset_graph().get(key).partitions_def == WEEKS
    ]
    whole = _run(instance, "sessions_job", _events(weekly, weeks, shown))
    return whole, _run(instance, "sessions_job", _events(weekly, weeks[-1:], shown))


def _run(instance: DagsterInstance, job: str, events: Iterable[dg.AssetMaterialization]) -> str:
    run = instance.create_run_for_job(
        defs.resolve_job_def(job), status=DagsterRunStatus.NOT_STARTED
    )
    instance.report_dagster_event(_engine(DagsterEventType.RUN_START, job), run.run_id)
    for made in events:
        name = made.asset_key.to_user_string()
        event = DagsterEvent(
            event_type_value=DagsterEventType.ASSET_MATERIALIZATION.value,
            job_name=job,
            step_key=name,
            event_specific_data=StepMaterializationData(made, []),
            message=f"Materialized value {name}.",
        )
        instance.report_dagster_event(event, run.run_id)
    instance.report_dagster_event(_engine(DagsterEventType.RUN_SUCCESS, job), run.run_id)
    return run.run_id


def _engine(kind: DagsterEventType, job: str) -> DagsterEvent:
    return DagsterEvent(event_type_value=kind.value, job_name=job)


def _events(
    names: Iterable[str], partitions: Iterable[str], shown: Mapping[str, Shown]
) -> Iterator[dg.AssetMaterialization]:
    kept = list(partitions)
    for name in names:
        for partition in kept:
            metadata = shown[name].last if partition == kept[-1] else shown[name].usual
            yield dg.AssetMaterialization(
                asset_key=name, partition=partition, metadata=dict(metadata)
            )


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
