"""Where Dagster keeps what it knows of the runs over a lake."""

import os
from pathlib import Path

import dagster as dg

from assets.handing_out import in_queue
from debrief.recorder.durable import locked
from debrief.settings import Settings
from pipelines.queue import prepare_queue_home
from pipelines.team_home import (
    URL,
    dagster_database_url,
    is_team_home,
    make_schema,
    team_home,
    write_configuration,
)

# One database for the events of all runs: the default, one for each run and a shared index beside
# them, takes four times as long an event. Both storages keep their connections open.
DAGSTER_YAML = """\
telemetry:
  enabled: false
nux:
  enabled: false
run_storage:
  module: pipelines.local_storage
  class: SqliteRuns
  config:
    base_dir:
      env: DAGSTER_HOME
event_log_storage:
  module: pipelines.local_storage
  class: SqliteEvents
  config:
    base_dir:
      env: DAGSTER_HOME
retention:
  schedule:
    purge_after_days: 90
  sensor:
    purge_after_days: {skipped: 7, failure: 90, success: 90}
"""


WORKSPACE_YAML = """\
load_from:
  - python_module:
      module_name: pipelines.definitions
      location_name: debrief
"""


_OPENING = 60.0
"""Seconds that another process may take to open the same storage."""


def dagster_home(settings: Settings) -> Path:
    """Return the folder of Dagster's own storage: ``DAGSTER_HOME``, else one beside the lake.

    A lake that ``debrief up`` was used for has it where that does, on Postgres. Another local
    lake carries its history in ``.dagster``, so that the two are moved, copied and deleted
    together; for one in an object store it is kept under ``DEBRIEF_HOME``.
    """
    if settings.dagster_home:
        return settings.dagster_home.absolute()
    if is_team_home(settings):
        return team_home(settings)
    if "://" in settings.lake:
        return settings.home / "dagster"
    return Path(settings.lake) / ".dagster"


def prepare_home(settings: Settings) -> Path:
    """Make the folder, with a configuration if it has none, and point this process at it."""
    home = dagster_home(settings)
    home.mkdir(parents=True, exist_ok=True)
    if in_queue(settings):
        prepare_queue_home(home)
    configuration = home / "dagster.yaml"
    if not configuration.exists() and settings.dagster_database_url:
        write_configuration(settings, home)
    elif not configuration.exists():
        configuration.write_text(DAGSTER_YAML, encoding="utf-8")
    if not os.environ.get(URL) and URL in configuration.read_text(encoding="utf-8"):
        url = dagster_database_url(settings)
        make_schema(url)
        os.environ[URL] = url
    os.environ["DAGSTER_HOME"] = str(home)
    return home


def prepare_workspace(home: Path) -> Path:
    """Write the file that tells Dagster's UI what to load, wherever it is started from."""
    workspace = home / "workspace.yaml"
    workspace.write_text(WORKSPACE_YAML, encoding="utf-8")
    return workspace


def open_instance(settings: Settings) -> dg.DagsterInstance:
    """Return the instance whose runs the UI shows for the lake of ``settings``.

    One process at a time: two that make the tables of a new SQLite storage at once both fail.
    """
    home = dagster_home(settings)
    home.mkdir(parents=True, exist_ok=True)
    with locked(home / ".opening", patience=_OPENING):
        return dg.DagsterInstance.from_config(str(prepare_home(settings)))
