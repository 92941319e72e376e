"""Dagster's instance of a lake: its folder, its configuration, and where its tables are.

Its ``dagster.yaml`` is a copy of a file in ``deploy/``: tables are in SQLite beside the lake, in
the Postgres of ``DAGSTER_DATABASE_URL`` where that is set, and workers take runs from a broker
where ``DEBRIEF_LAUNCH=queue`` is.

``python -m pipelines.instance`` copies the file and makes the tables where there are none.
"""

from __future__ import annotations

import json
import os
import socket
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote

import dagster as dg
import psutil
from dagster import DagsterEventType

from debrief.cli.shared import console
from debrief.files import atomic, locked, make_private
from debrief.processes import accepts, socket_folder
from debrief.settings import Settings, load_settings, variable_of
from pipelines.home import CONFIGURATION, dagster_home

SCHEMA = "dagster"
"""Of Dagster's tables, beside the recorder's in one database."""
UNDER_WAY = [
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]
_HEADER = "# Written by Debrief; a file without this line is left alone."
_PAGE = 500
_OPEN_TIMEOUT = 60.0
"""Seconds that another process may take to open the same storage."""
_PROCESS_TAG = "debrief/process"
"""The tag of a run that a command carries out: the machine and the process."""
_GRPC_TAG = ".dagster/grpc_info"
"""Dagster's tag of a run that names the code server it runs in."""


def open_instance(settings: Settings) -> dg.DagsterInstance:
    """Return the instance whose runs the UI shows for the lake of ``settings``.

    Runs whose process has died are marked as failed.

    One process at a time: two that make the tables of a new SQLite storage at once both fail.
    """
    home = dagster_home(settings)
    make_private(home)
    with locked(home / ".opening", timeout=_OPEN_TIMEOUT):
        copy_configuration(settings, home)
        make_schema(settings.dagster_database_url)
        # Dagster's file reads them from the environment; settings may have them from their own.
        read = {name: getattr(settings, name) for name in ("dagster_database_url", "broker")}
        os.environ |= {variable_of(name): value for name, value in read.items() if value}
        os.environ["DAGSTER_HOME"] = str(home)
        instance = dg.DagsterInstance.from_config(str(home))
        _end_dead_runs(instance)
        return instance


def copy_configuration(settings: Settings, home: Path) -> None:
    """Copy the ``dagster.yaml`` that fits into a folder, unless it has one of somebody else's."""
    path = home / CONFIGURATION
    if path.exists() and not path.read_text(encoding="utf-8").startswith(_HEADER):
        return
    with atomic(path, mode=0o666, durable=False) as file:
        file.write(configuration(settings).read_bytes())


def configuration(settings: Settings) -> Path:
    """Return the ``dagster.yaml`` that fits, in the repository or in the wheel."""
    name = "dagster.yaml" if settings.dagster_database_url else "dagster-local.yaml"
    if settings.launch == "queue":
        name = "dagster-queue.yaml"
    here = Path(__file__).resolve().parent
    source = here.parent / "deploy" / name
    return source if source.is_file() else here / name


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


def code_socket(home: Path) -> Path:
    """Return the socket of the code server that ``debrief ui`` starts for a folder of Dagster's."""
    return socket_folder(home) / "code.sock"


def tags_of_this_process() -> Mapping[str, str]:
    """Return the tags of a run that this process carries out itself.

    Dagster's monitoring cannot end such a run, and would only mark it as failed.
    """
    here = f"{socket.gethostname()} {os.getpid()}"
    return {_PROCESS_TAG: here, "dagster/max_runtime": "0"}


def _end_dead_runs(instance: dg.DagsterInstance) -> None:
    """Mark the runs as failed that a command of this machine, or its `debrief ui`, died with.

    Dagster's monitoring cannot see that: their launcher has no check of a run's health. A run that
    the UI re-executes has the tags of the one before, and another process.
    """
    code = code_socket(Path(instance.root_directory))
    for run in instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED])):
        host, _, process = run.tags.get(_PROCESS_TAG, "").partition(" ")
        server = json.loads(run.tags.get(_GRPC_TAG, "{}")).get("socket")
        of_command = host == socket.gethostname() and not (server or run.parent_run_id)
        is_dead = of_command and not psutil.pid_exists(int(process))
        if is_dead or (server == str(code) and not accepts(code)):
            instance.report_run_failed(run, "Its process was killed; what was finished stays.")
            instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)
            console(stderr=True).print(f"Killed earlier, now marked as failed: {run.run_id[:8]}")


def prepare_workspace(home: Path, code: Path) -> Path:
    """Write the file by which Dagster's programs find the code server; return it.

    Args:
        home: Dagster's, where the file is written.
        code: the socket of the code server.
    """
    location = {"grpc_server": {"socket": str(code), "location_name": "debrief"}}
    path = home / "workspace.yaml"
    with atomic(path, mode=0o666, durable=False) as file:  # others may be reading it
        file.write(json.dumps({"load_from": [location]}).encode())
    return path


def installed(program: str) -> str:
    """Return the path of a program that a library brought along, beside this Python."""
    return str(Path(sysconfig.get_path("scripts"), program))


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
    open_instance(load_settings()).dispose()
