"""The files ``dagster.yaml`` of ``deploy/`` as Dagster reads them: every setting is what it says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import dagster as dg
import psycopg2
import pytest
import yaml
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.instance.config import PoolGranularity
from dagster._core.scheduler.instigation import TickStatus

from debrief.recorder.postgres import EmbeddedPostgres
from debrief.settings import load_settings
from pipelines.definitions import defs
from pipelines.instance import configuration, open_instance
from tests.postgres import database, in_dagster_schema

DEPLOY = Path(__file__).parents[2] / "deploy"
KINDS = ("dagster-local.yaml", "dagster.yaml", "dagster-queue.yaml")


@pytest.fixture(scope="module")
def url(postgres_server: EmbeddedPostgres) -> Iterator[str]:
    with database(postgres_server, "template0") as url:
        yield url


@pytest.fixture(scope="module", params=KINDS)
def instance(
    request: pytest.FixtureRequest, url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dg.DagsterInstance]:
    """An instance by each of the files."""
    given = {"DEBRIEF_HOME": str(tmp_path_factory.mktemp("instance"))}
    if request.param != "dagster-local.yaml":
        given["DAGSTER_DATABASE_URL"] = in_dagster_schema(url)
    if request.param == "dagster-queue.yaml":
        pytest.importorskip("dagster_celery")
        given |= {"DEBRIEF_LAUNCH": "queue", "DEBRIEF_BROKER": "redis://127.0.0.1:1/0"}
    settings = load_settings(given)
    assert configuration(settings) == DEPLOY / request.param
    with pytest.MonkeyPatch.context() as here:
        for name in ("DAGSTER_HOME", "DAGSTER_DATABASE_URL", "DEBRIEF_BROKER"):
            here.setenv(name, "")
        with open_instance(settings) as found:
            yield found


def kind_of(instance: dg.DagsterInstance) -> str:
    if type(instance.run_launcher).__name__ == "WatchedCeleryRunLauncher":
        return "queue"
    return "postgres" if "Postgres" in type(instance.run_storage).__name__ else "local"


def test_runs_events_and_schedules_are_in_sqlite_beside_the_lake_or_in_a_schema_of_postgres(
    instance: dg.DagsterInstance, url: str
) -> None:
    storages = [instance.run_storage, instance.event_log_storage, instance.schedule_storage]
    names = [type(storage).__name__ for storage in storages]
    if kind_of(instance) == "local":
        assert names[:2] == ["SqliteRunStorage", "ConsolidatedSqliteEventLogStorage"]
        home = Path(instance.root_directory)
        assert {path.name for path in home.glob("*.db")} == {"event_log.db", "runs.db"}
        return
    assert names == ["PostgresRunStorage", "PostgresEventLogStorage", "PostgresScheduleStorage"]
    with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT schemaname, tablename FROM pg_tables")
        tables = set(cursor.fetchall())
    wanted = ("runs", "event_logs", "instigators", "alembic_version")
    assert {("dagster", name) for name in wanted} <= tables
    assert not any(schema == "public" for schema, _ in tables)


def test_a_run_is_kept_and_read_back_and_its_pool_has_a_limit(instance: dg.DagsterInstance) -> None:
    @dg.asset(pool="language_model")
    def thing() -> dg.MaterializeResult[None]:
        return dg.MaterializeResult(metadata={"rows": 3})

    assert dg.materialize([thing], instance=instance).success
    event = instance.get_latest_materialization_event(thing.key)
    assert event is not None
    assert event.asset_materialization is not None
    assert event.asset_materialization.metadata["rows"].value == 3
    assert limits_of(instance) == {"language_model": 1}


def limits_of(instance: dg.DagsterInstance) -> dict[str, int]:
    return {info.name: info.limit for info in instance.event_log_storage.get_pool_limits()}


def test_the_file_names_every_pool_of_the_graph() -> None:
    graph = defs.resolve_asset_graph()
    pools = {p for key in graph.materializable_asset_keys for p in graph.get(key).pools or ()}
    for kind in KINDS:
        assert all(f"`{pool}`" in (DEPLOY / kind).read_text() for pool in pools)


def test_dead_and_endless_runs_are_found_and_retried_without_multiplying(
    instance: dg.DagsterInstance,
) -> None:
    waits = 604_800 if kind_of(instance) == "queue" else 300
    assert instance.run_monitoring_enabled
    assert instance.run_monitoring_poll_interval_seconds == 20
    assert instance.run_monitoring_start_timeout_seconds == waits
    assert instance.run_monitoring_cancel_timeout_seconds == 120
    assert instance.run_monitoring_max_runtime_seconds == 43_200
    assert instance.run_monitoring_settings["free_slots_after_run_end_seconds"] == 5
    assert instance.run_retries_enabled
    assert instance.run_retries_max_retries == 2
    assert not instance.run_retries_retry_on_asset_or_op_failure


def test_runs_at_once_are_bounded_by_dagsters_queue_or_by_the_workers_of_another(
    instance: dg.DagsterInstance,
) -> None:
    config = instance.get_concurrency_config()
    assert config.pool_config.pool_granularity is PoolGranularity.OP
    assert config.pool_config.default_pool_limit == 1
    queue = config.run_queue_config
    if kind_of(instance) == "queue":
        assert queue is None
        assert type(instance.compute_log_manager).__name__ == "NoOpComputeLogManager"
        return
    assert queue is not None
    assert queue.max_concurrent_runs == 1, "a lake in a folder has one writer"
    assert queue.max_user_code_failure_retries == 3
    assert [limit["key"] for limit in queue.tag_concurrency_limits] == [
        "dagster/partition",
        "dagster/asset_partition_range_start",
    ]


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


@pytest.mark.parametrize("kind", KINDS)
def test_no_secret_and_no_address_stands_in_a_file(kind: str) -> None:
    content = yaml.safe_load((DEPLOY / kind).read_text())
    assert not [value for value in leaves(content) if "://" in value]


def leaves(content: Any) -> list[str]:
    if isinstance(content, dict):
        return [leaf for value in content.values() for leaf in leaves(value)]
    if isinstance(content, list):
        return [leaf for value in content for leaf in leaves(value)]
    return [str(content)]


def test_every_file_is_in_the_wheel_and_in_the_image() -> None:
    wheel = (DEPLOY.parent / "pyproject.toml").read_text()
    image = (DEPLOY / "Dockerfile.dockerignore").read_text()
    for kind in KINDS:
        assert f'"deploy/{kind}" = "pipelines/{kind}"' in wheel
        assert f"!deploy/{kind}\n" in image
