"""``deploy/dagster.yaml`` as Dagster reads it, on a real Postgres: every setting is what it says."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import dagster as dg
import psycopg2
import pytest
import yaml
from dagster import DagsterRunStatus
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.instance.config import PoolGranularity
from dagster._core.scheduler.instigation import TickStatus
from dagster._core.storage.tags import GRPC_INFO_TAG

from debrief.recorder.postgres import EmbeddedPostgres
from debrief.settings import load_settings
from pipelines import instance as instances
from pipelines.dead_runs import end_orphans
from pipelines.definitions import defs
from pipelines.instance import open_instance
from tests.postgres import database


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as ``debrief up`` prepares it."""
    settings = load_settings({"DEBRIEF_HOME": str(tmp_path_factory.mktemp("up") / "home")})
    return instances.prepare_team_home(settings, settings.home / "code.sock")


@pytest.fixture(scope="module")
def url(postgres_server: EmbeddedPostgres) -> Iterator[str]:
    with database(postgres_server, "template0") as url:
        yield url


@pytest.fixture(scope="module")
def instance(home: Path, url: str) -> Iterator[dg.DagsterInstance]:
    with pytest.MonkeyPatch.context() as here:
        here.setenv("DAGSTER_HOME", str(home))
        here.setenv(instances.URL, instances.in_schema(url))
        instances.main()
        found = dg.DagsterInstance.get()
    with found:
        yield found


def test_runs_events_and_schedules_are_in_a_schema_of_postgres(
    instance: dg.DagsterInstance, url: str
) -> None:
    assert type(instance.run_storage).__name__ == "PostgresRunStorage"
    assert type(instance.event_log_storage).__name__ == "PostgresEventLogStorage"
    assert type(instance.schedule_storage).__name__ == "PostgresScheduleStorage"
    with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT schemaname, tablename FROM pg_tables")
        tables = set(cursor.fetchall())
    wanted = ("runs", "event_logs", "instigators", "alembic_version")
    assert {("dagster", name) for name in wanted} <= tables
    assert not any(schema == "public" for schema, _ in tables)


def test_a_run_is_kept_and_read_back(instance: dg.DagsterInstance) -> None:
    @dg.asset
    def thing() -> dg.MaterializeResult[None]:
        return dg.MaterializeResult(metadata={"rows": 3})

    assert dg.materialize([thing], instance=instance).success
    event = instance.get_latest_materialization_event(thing.key)
    assert event is not None
    assert event.asset_materialization is not None
    assert event.asset_materialization.metadata["rows"].value == 3


def test_dead_and_endless_runs_are_found_and_retried_without_multiplying(
    instance: dg.DagsterInstance,
) -> None:
    assert instance.run_monitoring_enabled
    assert instance.run_monitoring_poll_interval_seconds == 20
    assert instance.run_monitoring_start_timeout_seconds == 300
    assert instance.run_monitoring_cancel_timeout_seconds == 120
    assert instance.run_monitoring_max_runtime_seconds == 43_200
    assert instance.run_monitoring_settings["free_slots_after_run_end_seconds"] == 60
    assert instance.run_retries_enabled
    assert instance.run_retries_max_retries == 2
    assert not instance.run_retries_retry_on_asset_or_op_failure


def test_a_lake_in_an_object_store_takes_as_many_runs_as_there_are_cores(tmp_path: Path) -> None:
    told = {"DEBRIEF_HOME": str(tmp_path), "DEBRIEF_LAKE": "s3://bucket/lake"}
    home = instances.prepare_team_home(load_settings(told), tmp_path / "code.sock")
    written = yaml.safe_load((home / "dagster.yaml").read_text())
    runs = written["concurrency"]["runs"]
    assert runs["max_concurrent_runs"] == min(len(os.sched_getaffinity(0)), 8)


def test_runs_at_once_are_bounded_and_so_are_the_steps_that_ask_the_outside_world(
    instance: dg.DagsterInstance,
) -> None:
    config = instance.get_concurrency_config()
    queue = config.run_queue_config
    assert queue is not None
    assert queue.max_concurrent_runs == 1, "a lake in a folder has one writer"
    assert queue.max_user_code_failure_retries == 3
    assert [limit["key"] for limit in queue.tag_concurrency_limits] == [
        "dagster/partition",
        "dagster/asset_partition_range_start",
    ]
    assert config.pool_config.pool_granularity is PoolGranularity.OP
    assert config.pool_config.default_pool_limit == 2
    assert limits_of(instance) == dict(instances.POOLS)


def limits_of(instance: dg.DagsterInstance) -> dict[str, int]:
    return {info.name: info.limit for info in instance.event_log_storage.get_pool_limits()}


def test_every_pool_of_the_graph_has_a_limit() -> None:
    graph = defs.resolve_asset_graph()
    pools = {p for key in graph.materializable_asset_keys for p in graph.get(key).pools or ()}
    assert pools == set(instances.POOLS)


def test_a_limit_that_somebody_chose_stays(instance: dg.DagsterInstance) -> None:
    instance.event_log_storage.set_concurrency_slots("language_model", 7)
    instances.set_pool_limits(instance)
    assert limits_of(instance)["language_model"] == 7


def test_ticks_are_forgotten_after_their_time_and_nothing_goes_out(
    instance: dg.DagsterInstance,
) -> None:
    assert instance.get_tick_retention_settings(InstigatorType.SCHEDULE) == dict.fromkeys(
        (TickStatus.STARTED, TickStatus.SKIPPED, TickStatus.SUCCESS, TickStatus.FAILURE), 90
    )
    for kind in (InstigatorType.SENSOR, InstigatorType.AUTO_MATERIALIZE):
        kept = instance.get_tick_retention_settings(kind)
        assert (kept[TickStatus.SKIPPED], kept[TickStatus.SUCCESS]) == (7, 90)
    assert not instance.telemetry_enabled
    assert not instance.nux_enabled


def test_no_secret_stands_in_the_file() -> None:
    content = instances.packaged_configuration()
    assert content["storage"]["postgres"] == {"postgres_url": {"env": instances.URL}}
    assert not [value for value in leaves(content) if "://" in value]


def leaves(content: Any) -> list[str]:
    if isinstance(content, dict):
        return [leaf for value in content.values() for leaf in leaves(value)]
    if isinstance(content, list):
        return [leaf for value in content for leaf in leaves(value)]
    return [str(content)]


def test_the_runs_of_a_code_server_that_went_away_are_ended_and_no_others(
    instance: dg.DagsterInstance,
) -> None:
    @dg.job
    def nothing() -> None: ...

    def made(status: DagsterRunStatus, socket: str) -> str:
        tags = {GRPC_INFO_TAG: f'{{"host": "localhost", "socket": "{socket}"}}'}
        return instance.create_run_for_job(nothing, status=status, tags=tags).run_id

    ours = made(DagsterRunStatus.STARTED, "/run/ours")
    stopping = made(DagsterRunStatus.CANCELING, "/run/ours")
    others = made(DagsterRunStatus.STARTED, "/run/others")
    over = made(DagsterRunStatus.SUCCESS, "/run/ours")
    assert set(end_orphans(instance, "/run/ours")) == {ours, stopping}
    found = {run.run_id: run.status for run in instance.get_runs(dg.RunsFilter(job_name="nothing"))}
    assert found == {
        ours: DagsterRunStatus.FAILURE,
        stopping: DagsterRunStatus.CANCELED,
        others: DagsterRunStatus.STARTED,
        over: DagsterRunStatus.SUCCESS,
    }


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("postgres://u:p%40@h:5433/d", "postgresql://u:p%40@h:5433/d?options=-csearch_path%3Ddagster"),
        (
            "postgresql+psycopg2://u@/d?host=%2Frun&options=-cjit%3Doff",
            "postgresql://u@/d?host=%2Frun&options=-cjit%3Doff+-csearch_path%3Ddagster",
        ),
    ],
)  # fmt: skip
def test_an_address_keeps_all_its_parts_and_gets_the_schema(given: str, made: str) -> None:
    assert instances.in_schema(given) == made


def test_other_commands_on_the_same_lake_use_the_same_instance(
    home: Path, url: str, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DAGSTER_HOME", instances.URL):
        monkeypatch.setenv(name, "")
    environment = {"DEBRIEF_HOME": str(home.parent), "DATABASE_URL": url}
    with open_instance(load_settings(environment)) as found:
        assert found.get_runs_count() == instance.get_runs_count()
        assert type(found.run_storage).__name__ == "PostgresRunStorage"
    monkeypatch.setenv("DAGSTER_HOME", "")
    elsewhere = {**environment, "DEBRIEF_LAKE": str(home.parent / "other")}
    with open_instance(load_settings(elsewhere)) as found:
        assert "Sqlite" in type(found.run_storage).__name__
