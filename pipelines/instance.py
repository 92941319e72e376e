"""Dagster's instance of a lake: its folder, its configuration, and where its tables are.

A local lake has its history beside it, in SQLite. ``debrief up`` and deployments have theirs in
Postgres, configured by ``deploy/dagster.yaml``; so have workers, which take runs from a broker.

``python -m pipelines.instance [SOCKET]`` makes the tables where there are none, and gives pools
their limits. With a socket it then ends the runs that a former code server on this socket left
behind, which Dagster takes up again by its run retries, and becomes the code server.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import dagster as dg
from dagster import DagsterEventType

from debrief.files import atomic, locked, make_private
from debrief.settings import Settings, load_settings
from pipelines.dead_runs import end_orphans
from pipelines.home import CONFIGURATION, LAKE, dagster_home, is_team_lake, team_home

URL = "DAGSTER_DATABASE_URL"
SCHEMA = "dagster"
"""Of Dagster's tables, beside the recorder's in one database."""
BROKER = "DEBRIEF_BROKER"
QUEUE = "dagster"
"""Of runs for workers; the one that Dagster's Celery app takes from by default."""
POOLS: Mapping[str, int] = {"language_model": 1, "langfuse": 1, "execution": 1}
"""How many steps of a pool run at once unless somebody chose otherwise. Each makes
``DEBRIEF_CONCURRENCY`` calls at once itself, and of two runs over the same weeks the second finds
the first one's rows; Langfuse takes one writer best."""
_HEADER = "# Written by Debrief; a file without this line is left alone."
_MOST_RUNS, _PAGE = 8, 500
_OPEN_TIMEOUT = 60.0
"""Seconds that another process may take to open the same storage."""
_QUEUE_TIMEOUT = 7 * 86_400
"""Seconds that a run may wait for a worker: it counts as starting all the while."""


def open_instance(settings: Settings) -> dg.DagsterInstance:
    """Return the instance whose runs the UI shows for the lake of ``settings``.

    One process at a time: two that make the tables of a new SQLite storage at once both fail.

    Raises:
        StorageError: its tables are in the embedded Postgres, which does not run.
    """
    home = dagster_home(settings)
    make_private(home)
    with locked(home / ".opening", timeout=_OPEN_TIMEOUT):
        return dg.DagsterInstance.from_config(str(prepare_home(settings)))


def prepare_home(settings: Settings) -> Path:
    """Make the folder with its configuration, and point this process at it; return it.

    Raises:
        StorageError: its tables are in the embedded Postgres, which does not run.
    """
    from debrief.recorder.postgres import database_url

    home = dagster_home(settings)
    make_private(home)
    write_configuration(settings, home)
    configuration = (home / CONFIGURATION).read_text(encoding="utf-8")
    if not os.environ.get(URL) and URL in configuration:
        # A schema of their own, in the database that is named, else in the embedded server's.
        url = settings.dagster_database_url or in_schema(database_url(settings))
        make_schema(url)
        os.environ[URL] = url
    os.environ["DAGSTER_HOME"] = str(home)
    return home


def prepare_workspace(home: Path, code: Path | None = None) -> Path:
    """Write the file by which Dagster's programs find the code; return it.

    Args:
        home: Dagster's, where the file is written.
        code: the socket of a code server; None has each program load the code for itself.
    """
    module = {"module_name": "pipelines.definitions", "location_name": "debrief"}
    server = {"socket": str(code), "location_name": "debrief"}
    location = {"grpc_server": server} if code else {"python_module": module}
    path = home / ("workspace.yaml" if code else "module.yaml")
    _write(path, {"load_from": [location]})
    return path


def prepare_team_home(settings: Settings, code: Path) -> Path:
    """Make the folder of ``debrief up``, with its configuration and workspace; return it.

    Args:
        settings: whose home and lake.
        code: the socket of the code server.
    """
    home = team_home(settings)
    make_private(home)
    (home / LAKE).write_text(settings.lake, encoding="utf-8")
    write_configuration(settings, home)
    prepare_workspace(home, code)
    return home


def write_configuration(settings: Settings, home: Path) -> None:
    """Write ``dagster.yaml`` into a folder, unless it has one that somebody else wrote."""
    path = home / CONFIGURATION
    former = path.read_text(encoding="utf-8") if path.exists() else _HEADER
    if not former.startswith(_HEADER):
        return
    is_team = home == team_home(settings) and is_team_lake(settings)
    if settings.launch == "queue":
        _write(path, queue_configuration())
    elif settings.dagster_database_url or is_team:
        _write(path, _team_configuration())
    else:
        _write(path, _local_configuration(home))


def packaged_configuration() -> dict[str, Any]:
    """Return the ``dagster.yaml`` that comes along, in the repository or in the wheel."""
    import yaml

    here = Path(__file__).resolve().parent
    source = here.parent / "deploy" / CONFIGURATION
    path = source if source.is_file() else here / CONFIGURATION
    content: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return content


def in_schema(url: str) -> str:
    """Return the address of a database in which tables are looked for in ``SCHEMA``.

    Raises:
        ConfigurationError: ``url`` is not a Postgres address.
    """
    from debrief.recorder.storage.connecting import address_of

    address = address_of(url).set(drivername="postgresql")
    former = address.query.get("options", "")
    options = " ".join([former] if isinstance(former, str) else former)
    query = {**address.query, "options": f"{options} -csearch_path={SCHEMA}".strip()}
    return address.set(query=query).render_as_string(hide_password=False)


def make_schema(url: str) -> None:
    """Make the schema that an address names, if it names one and it does not exist."""
    from sqlalchemy import create_engine
    from sqlalchemy.exc import IntegrityError
    from sqlalchemy.schema import CreateSchema

    from debrief.recorder.storage.connecting import address_of

    if f"search_path={SCHEMA}" not in unquote(url):
        return
    engine = create_engine(address_of(url), connect_args={"connect_timeout": 10})
    with suppress(IntegrityError), engine.begin() as connection:
        # The error: another process makes it at this moment.
        connection.execute(CreateSchema(SCHEMA, if_not_exists=True))
    engine.dispose()


def _local_configuration(home: Path) -> dict[str, Any]:
    """Return SQLite in two files: Dagster's default has a file of events for each run."""

    def storage(module: str, name: str) -> dict[str, Any]:
        return {"module": module, "class": name, "config": {"base_dir": str(home)}}

    packaged = packaged_configuration()
    return {
        **{name: packaged[name] for name in ("telemetry", "nux", "retention")},
        "run_storage": storage("dagster._core.storage.runs", "SqliteRunStorage"),
        "event_log_storage": storage(
            "dagster._core.storage.event_log", "ConsolidatedSqliteEventLogStorage"
        ),
    }


def _team_configuration() -> dict[str, Any]:
    configuration = packaged_configuration()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    configuration["concurrency"]["runs"]["max_concurrent_runs"] = min(cores or 1, _MOST_RUNS)
    return configuration


def queue_configuration() -> dict[str, Any]:
    """Return the configuration of every process that launches or carries out runs of a broker.

    Celery's queue takes the place of Dagster's own, so that a run waits in one place only.
    """
    configuration = packaged_configuration()
    configuration.pop("run_queue", None)
    configuration["concurrency"].pop("runs", None)
    configuration["concurrency"]["pools"] = {"granularity": "op", "default_limit": 64}
    configuration["run_monitoring"]["start_timeout_seconds"] = _QUEUE_TIMEOUT
    return {
        **configuration,
        # What a step prints stays on its worker's disk, where no page can show it and nobody would
        # ever remove it.
        "compute_logs": {
            "module": "dagster._core.storage.noop_compute_log_manager",
            "class": "NoOpComputeLogManager",
        },
        "run_coordinator": {
            "module": "dagster._core.run_coordinator",
            "class": "DefaultRunCoordinator",
        },
        "run_launcher": {
            "module": "dagster_celery.launcher",
            "class": "CeleryRunLauncher",
            "config": {
                "broker": {"env": BROKER},
                "backend": {"env": BROKER},
                "default_queue": QUEUE,
            },
        },
    }


def _write(path: Path, content: dict[str, Any]) -> None:
    """Write a file of Debrief's own, in one step: others may be reading it."""
    import yaml

    with atomic(path, mode=0o666, durable=False) as file:
        file.write(f"{_HEADER}\n{yaml.safe_dump(content, sort_keys=False)}".encode())


def set_pool_limits(instance: dg.DagsterInstance) -> None:
    """Give a limit to every pool of ours that has none."""
    limited = {info.name for info in instance.event_log_storage.get_pool_limits()}
    for pool in POOLS.keys() - limited:
        instance.event_log_storage.set_concurrency_slots(pool, POOLS[pool])


def main(socket: str = "") -> None:
    """Prepare the instance that the environment names; become its code server on a socket."""
    settings = load_settings()
    if settings.dagster_database_url:
        make_schema(settings.dagster_database_url)
    if settings.dagster_home:
        write_configuration(settings, settings.dagster_home)
    with dg.DagsterInstance.get() as instance:
        set_pool_limits(instance)
        for run_id in end_orphans(instance, socket) if socket else []:
            print(f"ended run {run_id}: its code server is gone", flush=True)
    if socket:
        server = "dagster code-server start -m pipelines.definitions --location-name debrief"
        options = ["--use-python-environment-entry-point", "--socket", socket]
        os.execv(sys.executable, [sys.executable, "-m", *server.split(), *options])


def newest_materializations(instance: dg.DagsterInstance) -> Iterator[dg.EventLogEntry]:
    """Yield what is newest of every asset, and of every partition of it; some of it twice."""
    for key in instance.all_asset_keys():
        newest = instance.get_latest_materialization_event(key)
        if newest is not None:
            yield newest
        by_partition = instance.event_log_storage.get_latest_storage_id_by_partition(
            key, DagsterEventType.ASSET_MATERIALIZATION
        )
        ids = sorted(by_partition.values())
        for start in range(0, len(ids), _PAGE):
            page = dg.AssetRecordsFilter(key, storage_ids=ids[start : start + _PAGE])
            records = instance.fetch_materializations(page, limit=_PAGE).records
            yield from (record.event_log_entry for record in records)


if __name__ == "__main__":
    os.environ.setdefault("DAGSTER_DISABLE_TELEMETRY", "1")
    main(*sys.argv[1:])
